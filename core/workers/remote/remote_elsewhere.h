// The news of the other nodes of a shared storage about remote workers, and the answers of this node. A worker
// may take its job at one node, ping at the next and deliver at a third; the node that has handed out the job judges
// its silence, and hears from the others what the worker does there. Plain state, guarded by the mutex of
// RemoteWorkers. core/decisions/remote_workers.md has the rules.
#pragma once

#include <cstddef>
#include <cstdint>
#include <map>
#include <optional>
#include <set>
#include <string>
#include <utility>
#include <vector>

#include "core/workers/remote/remote_news.h"
#include "core/workers/remote/remote_table.h"
#include "core/workers/remote/remote_worker.h"
#include "jobq/job.h"
#include "jobq/time.h"

namespace jobq {

/// The news of another node.
struct OtherNode {
  NodeNews news;
  bool isAlive = true;  ///< false: its jobs may still run, and nothing else counts
};
using OtherNodes = std::map<std::string, OtherNode>;

/// One thread at a time. On a storage for one process (`isShared` is false) there is no other node.
class RemoteElsewhere {
 public:
  explicit RemoteElsewhere(bool isShared) : isShared_(isShared) {}

  bool isShared() const noexcept { return isShared_; }

  /// Replaces all that the others say, and applies it to the workers of this node: pings and connections elsewhere, and
  /// jobs whose result has come elsewhere.
  void setNews(const OtherNodes& nodes, RemoteTable& table, Instant now, RemoteChanges& changes);

  /// Returns true if the news has come without a gap for a while: only then the silence of a worker means something.
  bool isFresh(Instant now) const;
  /// Returns true if the worker may run an attempt of the job that another node has handed out.
  bool mayRun(const RemoteWorkerKey& key, const JobId& job) const;
  /// Returns true if another node has the worker stop the job: a result would be one of an earlier attempt.
  bool isStopped(const RemoteWorkerKey& key, const JobId& job) const;

  /// Notes a ping at this node. `worker` is the state of the worker here. Returns false if the ping lists more unknown
  /// jobs than are kept.
  bool notePing(const RemoteWorkerKey& key, const RemoteWorker& worker, const std::vector<JobId>& jobs, Instant now);
  /// Notes a result at this node; no `attempt` for a result that does not count.
  void noteResult(const RemoteWorkerKey& key, const JobId& job, std::optional<std::uint32_t> attempt);
  /// Notes that the worker has no job, as it said at this node.
  void noteIdle(const RemoteWorkerKey& key);

  /// Adds to `stops` the jobs that other nodes want stopped and of which the worker has not been told for a second.
  void collectDueStops(const RemoteWorkerKey& key, Instant now, std::vector<JobId>& stops);
  /// Resumes the calls for stops of the workers that have to be told of one.
  void resumeStops(RemoteTable& table, Instant now, RemoteChanges& changes) const;

  /// Adds to `news` what this node answers the others about the worker; `worker` is its state here, or null.
  void addAnswers(const RemoteWorkerKey& key, const RemoteWorker* worker, Instant now, WorkerNews& news) const;
  /// Returns all workers that the other nodes name.
  std::vector<RemoteWorkerKey> namedWorkers() const;

  /// Returns at most `most` jobs of pings of which no node is known to have them, for a question to the storage, and
  /// postpones the next question about them. The endpoints take turns.
  std::vector<std::pair<RemoteWorkerKey, JobId>> collectUnknown(std::size_t most, Instant now);
  /// Forgets an unknown job.
  void forgetUnknown(const RemoteWorkerKey& key, const JobId& job);

 private:
  enum class PingSays { nothing, listed, omitted };
  /// A job in the hands of a worker, or to be stopped by it, as another node says.
  struct Entry {
    std::uint32_t attempt = 0;
    bool isStop = false;
    bool isAlive = true;                ///< the node is
    bool isEnded = false;               ///< its result came here, or the worker said that it has no job
    PingSays ping = PingSays::nothing;  ///< the last ping here
    Instant since{};                    ///< when this node heard of the job
    Instant nextAt{};                   ///< when the worker is told of the stop
  };
  /// A question of a second node for the jobs of the worker.
  struct Ask {
    std::uint64_t number = 0;
    bool isAnswered = false;  ///< by a later ping, or by a call for jobs without any
    Instant since{};          ///< when the question was read here
  };
  using Entries = std::map<std::pair<JobId, std::string>, Entry>;  // by job and node
  struct Worker {
    Entries jobs;
    std::map<JobId, Instant> unknown;  ///< of the last ping here, with the time of the next question
    std::set<JobId> unknownElsewhere;
    std::map<std::string, Ask> asks;  ///< by node
    std::uint64_t ping = 0;
    bool isConnected = false;  ///< to another node
    bool isPartial = false;    ///< the news of a node left something out, so a silence means nothing
    bool isTorn = false;       ///< a connection to another node was
    bool isLeaving = false;    ///< by the word of another node
  };

  /// Notes for each node that names the job that the last ping listed it. Returns false if no node names it.
  static bool noteListed(Worker& worker, const JobId& job);
  Worker* find(const RemoteWorkerKey& key);
  const Worker* find(const RemoteWorkerKey& key) const;
  void addNews(const std::string& node, const OtherNode& other, std::map<RemoteWorkerKey, Worker>& workers,
               Instant now) const;
  void applyNews(const std::string& node, const NodeNews& news, RemoteTable& table, Instant now,
                 RemoteChanges& changes);

  const bool isShared_;
  std::map<RemoteWorkerKey, Worker> workers_;
  std::map<std::pair<std::string, RemoteWorkerKey>, std::uint64_t> seenPings_;
  EndpointId lastAsked_;  // of the last job of collectUnknown()
  Instant readAt_{};      // last news
  Instant freshSince_{};  // first news without a gap behind it
};

}  // namespace jobq
