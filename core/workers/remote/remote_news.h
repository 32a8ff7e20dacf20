// News between the nodes of a shared storage about remote workers: what one node says to the others, and its text in a
// record of the storage. core/decisions/remote_workers.md has the rules.
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

/// The news of a node about one worker. The second half is about a worker of which another node has jobs, and answers
/// that node.
struct WorkerNews {
  AttemptMap jobs;   ///< in the hands of the worker, handed out by the node
  AttemptMap stops;  ///< jobs that have ended while the worker may still run them; attempt 0: unknown

  bool isLeaving = false;    ///< the worker has asked the node to be replaced
  bool isConnected = false;  ///< the worker has an open connection to the node, or had one a moment ago
  bool isTorn = false;       ///< the last connection of the worker to the node was torn
  std::uint64_t ping = 0;    ///< names the last ping of the worker at the node; 0: none
  AttemptMap listed;         ///< jobs of other nodes that the ping lists
  AttemptMap omitted;        ///< jobs of other nodes that the ping leaves out
  AttemptMap ended;          ///< stops of other nodes that the worker has obeyed
  std::set<JobId> unknown;   ///< jobs that the ping lists, and of which no node is known to have them
  bool isPartial = false;    ///< the text left something out, so a silence means nothing

  std::uint64_t asks = 0;                      ///< question for the jobs of the worker; 0: none
  std::map<std::string, std::uint64_t> shown;  ///< questions of other nodes behind which the worker has shown its jobs

  bool isEmpty() const { return *this == WorkerNews{}; }
  bool operator==(const WorkerNews&) const = default;
};

/// The news of a node about all its workers.
struct NodeNews {
  std::uint64_t epoch = 0;  ///< of the life of the node
  std::map<RemoteWorkerKey, WorkerNews> workers;
  bool operator==(const NodeNews&) const = default;

  /// Returns true if the node has a job or a stop, of which the others must know when the node is gone.
  bool hasJobs() const;
};

/// Most jobs and workers in the news of a node, unless the known real ones are more.
inline constexpr std::size_t kMostNews = 20'000;

/// Returns the news as JSON text. Workers without news are left out. Beyond kMostNews an endpoint with more than its
/// share loses jobs that clients can make up: the unknown jobs of pings, then the stops of an unknown attempt. The
/// workers concerned are marked as partial, without the answers to questions. All other news is written.
std::string writeNews(const NodeNews& news);
/// Returns the news of a text of writeNews(), as far as it can be read: a later version of the program may write more.
NodeNews readNews(std::string_view text);

}  // namespace jobq
