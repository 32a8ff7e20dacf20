#include "core/workers/remote/inherited_jobs.h"

#include <algorithm>

#include "core/workers/pool/endpoint_shares.h"

namespace jobq {

void InheritedJobs::add(const NodeNews& news) {
  for (const auto& [key, worker] : news.workers) {
    for (const AttemptMap* const jobs : {&worker.jobs, &worker.stops}) {
      for (const auto& [job, attempt] : *jobs) keep({key, {job, attempt}, false});
    }
  }
  CountsByEndpoint counts;
  for (const auto& [endpoint, questions] : questions_) counts[endpoint] = questions.size();
  for (const auto& [endpoint, share] : fairShares(counts, kMost)) {
    std::deque<RunQuestion>& questions = questions_[endpoint];
    if (questions.size() <= share) continue;
    std::stable_partition(questions.begin(), questions.end(),
                          [](const RunQuestion& question) { return question.lease.attempt != 0; });
    questions.erase(questions.begin() + static_cast<std::ptrdiff_t>(share), questions.end());
  }
  std::erase_if(questions_, [](const auto& entry) { return entry.second.empty(); });
}

NodeNews InheritedJobs::news() const {
  NodeNews news;
  for (const auto& [endpoint, questions] : questions_) {
    for (const RunQuestion& question : questions) {
      news.workers[question.key].jobs[question.lease.job] = question.lease.attempt;
    }
  }
  return news;
}

const RunQuestion& InheritedJobs::next() { return nextInTurn(questions_, last_)->second.front(); }

void InheritedJobs::removeNext() {
  const auto list = questions_.find(last_);
  list->second.pop_front();
  if (list->second.empty()) questions_.erase(list);
}

}  // namespace jobq
