// Access of RemoteExchange and ForeignReports to the remote workers: the news of this node, and the consequences of
// the answers of other nodes.
#pragma once

#include <cstddef>
#include <cstdint>
#include <string>
#include <vector>

#include "core/workers/node/node_lives.h"
#include "core/workers/remote/remote_elsewhere.h"
#include "core/workers/remote/remote_news.h"
#include "core/workers/remote/remote_registry.h"
#include "core/workers/remote/remote_worker.h"
#include "jobq/job.h"

namespace jobq {

/// A job about which the storage knows more than the node: does the worker have the job?
struct RunQuestion {
  RemoteWorkerKey key;
  LeaseRef lease;       ///< attempt 0: unknown
  bool isStop = false;  ///< the worker is told to stop the job
};

/// A view of RemoteRegistry. The registry outlives the view. Any thread.
class RemoteNewsAccess {
 public:
  explicit RemoteNewsAccess(RemoteRegistry& remote) : remote_(remote) {}

  /// Returns true if there are remote workers, or endpoints for them.
  bool isNeeded() const;
  /// Returns the news of this node in the life `epoch`.
  NodeNews composeNews(std::uint64_t epoch) const;
  /// Takes in the news of the other nodes. `self` is the name of this node.
  void applyNews(const std::string& self, const OtherNodes& nodes);
  /// Takes in the lives of the nodes.
  void noteLives(const NodeLives& lives) { remote_.lives().note(lives); }

  /// Returns at most `most` questions to the storage, with equal shares for the endpoints.
  std::vector<RunQuestion> collectQuestions(std::size_t most);
  /// Takes in the answer that no action is needed, or that the worker still runs an attempt that has ended.
  void endQuestion(const RunQuestion& question);
  /// Has the worker stop a job that has ended, until the pings of the worker omit the job.
  void stopJob(const RemoteWorkerKey& key, const LeaseRef& lease);

  /// Returns true if the worker is told to stop the job: a result would be for an earlier attempt.
  bool isStopped(const RemoteWorkerKey& key, const JobId& job) const;
  /// Adds a worker with a report at this node to the known workers.
  void noteReporter(const RemoteWorkerKey& key);

 private:
  RemoteRegistry& remote_;
  EndpointId lastAsked_;  // endpoint of the last stop of collectQuestions(); used by a single thread
};

}  // namespace jobq
