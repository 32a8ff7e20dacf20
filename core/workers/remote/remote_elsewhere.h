// The news of the other nodes of a shared storage about remote workers, and the answers of this node. A worker may
// take a job at one node, ping at the next and deliver at a third. The node that has handed out the job judges the
// silence of the worker, and reads in the news of the other nodes about calls of the worker there. Plain state, guarded
// by the mutex of RemoteRegistry. core/decisions/remote_workers.md has the rules.
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
  bool isAlive = true;  ///< if false, the jobs of the node may still run, and all other news is void
};
using OtherNodes = std::map<std::string, OtherNode>;

/// Not thread-safe. On a storage for a single process (`isShared` is false) there is no other node.
class RemoteElsewhere {
 public:
  explicit RemoteElsewhere(bool isShared) : isShared_(isShared) {}

  bool isShared() const noexcept { return isShared_; }

  /// Replaces the news of the other nodes, and applies the news to the workers of this node: pings, connections and
  /// results at the other nodes.
  void setNews(const OtherNodes& nodes, RemoteTable& table, Instant now, RemoteChanges& changes);

  /// Returns true if the news has come without a gap for a while. Only then may a silent worker count as lost.
  bool isFresh(Instant now) const;
  /// Returns true if the worker may run an attempt of the job that a different node has handed out.
  bool mayRun(const RemoteWorkerKey& key, const JobId& job) const;
  /// Returns true if a different node has the worker stop the job: a result would be for an earlier attempt.
  bool isStopped(const RemoteWorkerKey& key, const JobId& job) const;

  /// Notes a ping at this node. `worker` is the state of the worker here. Returns false if the ping lists more
  /// unknown jobs than are kept.
  bool notePing(const RemoteWorkerKey& key, const RemoteWorker& worker, const std::vector<JobId>& jobs, Instant now);
  /// Notes a result at this node; no `attempt` for a result that does not count.
  void noteResult(const RemoteWorkerKey& key, const JobId& job, std::optional<std::uint32_t> attempt);
  /// Notes that the worker has reported at this node that it has no job.
  void noteIdle(const RemoteWorkerKey& key);

  /// Adds to `stops` the jobs that other nodes want stopped, except jobs sent to the worker within the last second.
  void collectDueStops(const RemoteWorkerKey& key, Instant now, std::vector<JobId>& stops);
  /// Resumes the waiting stop calls of the workers with a stop to send.
  void resumeStops(RemoteTable& table, Instant now, RemoteChanges& changes) const;

  /// Adds to `news` this node's answers about the worker; `worker` is the worker's state here, or null.
  void addAnswers(const RemoteWorkerKey& key, const RemoteWorker* worker, Instant now, WorkerNews& news) const;
  /// Returns all workers in the news of the other nodes.
  std::vector<RemoteWorkerKey> namedWorkers() const;

  /// Returns at most `most` jobs of pings that are not known to be the job of any node, for a question to the storage,
  /// and postpones the next question about the jobs. The endpoints take turns.
  std::vector<std::pair<RemoteWorkerKey, JobId>> collectUnknown(std::size_t most, Instant now);
  /// Forgets an unknown job.
  void forgetUnknown(const RemoteWorkerKey& key, const JobId& job);

 private:
  enum class PingSays { nothing, listed, omitted };
  /// A job that the worker has or has to stop, according to the news of a node.
  struct Entry {
    std::uint32_t attempt = 0;
    bool isStop = false;
    bool isAlive = true;                ///< the node is
    bool isEnded = false;               ///< the result came here, or the worker has reported that it has no job
    PingSays ping = PingSays::nothing;  ///< the last ping here
    Instant since{};                    ///< when the job first was in the news
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
    std::map<JobId, Instant> unknown;  ///< unknown jobs of the last ping here, with the time of the next question
    std::set<JobId> unknownElsewhere;
    std::map<std::string, Ask> asks;  ///< by node
    std::uint64_t ping = 0;
    bool isConnected = false;  ///< to another node
    bool isPartial = false;    ///< the news of a node is incomplete, so silence has no meaning
    bool isTorn = false;       ///< a connection to another node was torn
    bool isLeaving = false;    ///< according to the news of a node
  };

  /// Notes for each node with the job in its news that the last ping listed the job. Returns false if no node has the
  /// job.
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
  EndpointId lastAsked_;  // endpoint of the last job of collectUnknown()
  Instant readAt_{};      // last news
  Instant freshSince_{};  // first news after the last gap
};

}  // namespace jobq
