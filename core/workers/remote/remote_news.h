// News between the nodes of a shared storage about remote workers: the content, and the text in a record of the
// storage. core/decisions/remote_workers.md has the rules.
#pragma once

#include <cstddef>
#include <cstdint>
#include <map>
#include <set>
#include <string>
#include <string_view>

#include "core/workers/remote/remote_worker.h"
#include "jobq/job.h"

namespace jobq {

/// Jobs with their attempts.
using AttemptMap = std::map<JobId, std::uint32_t>;

/// The news of a node about a worker. The second half answers a different node, which has handed out jobs to the
/// worker.
struct WorkerNews {
  AttemptMap jobs;   ///< in the hands of the worker, handed out by the node
  AttemptMap stops;  ///< jobs that have ended while the worker may still run the job; attempt 0: unknown

  bool isLeaving = false;    ///< the worker has asked the node to be replaced
  bool isConnected = false;  ///< the worker has an open connection to the node, or had a connection a moment ago
  bool isTorn = false;       ///< the last connection of the worker to the node was torn
  std::uint64_t ping = 0;    ///< number of the worker's last ping at the node; 0 without a ping
  AttemptMap listed;         ///< jobs of other nodes that the ping lists
  AttemptMap omitted;        ///< jobs of other nodes that the ping leaves out
  AttemptMap ended;          ///< stops of other nodes that the worker has obeyed
  std::set<JobId> unknown;   ///< jobs in the ping that are not known to be the job of any node
  bool isPartial = false;    ///< the text is incomplete, so silence has no meaning

  std::uint64_t asks = 0;                      ///< question for the jobs of the worker; 0 without a question
  std::map<std::string, std::uint64_t> shown;  ///< questions of other nodes that the worker has answered

  bool isEmpty() const { return *this == WorkerNews{}; }
  bool operator==(const WorkerNews&) const = default;
};

/// The news of a node about all workers of the node.
struct NodeNews {
  std::uint64_t epoch = 0;  ///< epoch of the node's life
  std::map<RemoteWorkerKey, WorkerNews> workers;
  bool operator==(const NodeNews&) const = default;

  /// Returns true if the node has a job or a stop, so that the other nodes need the news after the node has died.
  bool hasJobs() const;
};

/// Most jobs and workers in the news of a node, unless the known real ones are more.
inline constexpr std::size_t kMostNews = 20'000;

/// Returns the news as JSON text. Workers without news are left out. Beyond kMostNews an endpoint with more than an
/// fair share loses jobs that clients can make up: the unknown jobs of pings, then the stops of an unknown attempt.
/// The workers concerned are marked as partial, without the answers to questions. All other news is written.
std::string writeNews(const NodeNews& news);
/// Returns the news of a text of writeNews(), as far as the text is readable: a later version of the program may write
/// more.
NodeNews readNews(std::string_view text);

}  // namespace jobq
