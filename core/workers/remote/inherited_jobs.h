// Jobs in the hands of workers whose node has died, until the state of each job in the storage is known.
#pragma once

#include <cstddef>
#include <deque>
#include <map>

#include "core/workers/remote/remote_news.h"
#include "core/workers/remote/remote_news_access.h"
#include "jobq/job.h"

namespace jobq {

/// Not thread-safe.
class InheritedJobs {
 public:
  static constexpr std::size_t kMost = 20'000;

  bool isEmpty() const { return questions_.empty(); }

  /// Adds the jobs and the stops of a node. Beyond kMost an endpoint with more than a fair share loses some: at first
  /// stops of an unknown attempt, because clients can make up such stops.
  void add(const NodeNews& news);

  /// Returns the jobs as news of a single node.
  NodeNews news() const;

  /// Returns the next question; the endpoints take turns. At least one question must be left.
  const RunQuestion& next();
  /// Removes the last question of next().
  void removeNext();
  /// Adds a removed question again, after the other questions of the endpoint.
  void keep(const RunQuestion& question) { questions_[question.key.endpoint].push_back(question); }

 private:
  std::map<EndpointId, std::deque<RunQuestion>> questions_;  // no list is empty
  EndpointId last_;
};

}  // namespace jobq
