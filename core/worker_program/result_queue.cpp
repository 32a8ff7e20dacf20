#include "core/worker_program/result_queue.h"

#include <iterator>
#include <utility>

namespace jobq::worker {

void ResultQueue::add(UnsentResult result) {
  Lock lock(mutex_);
  while (bytes_ > kMostBytes && !isAbandoned_) roomCame_.wait(mutex_);
  if (isAbandoned_) return;
  noteAdded(result.report.size());
  results_.push_back(std::move(result));
}

void ResultQueue::putBack(std::vector<UnsentResult> results) {
  Lock lock(mutex_);
  if (isAbandoned_) return;
  for (const UnsentResult& result : results) noteAdded(result.report.size());
  std::move(results.begin(), results.end(), std::back_inserter(results_));
}

void ResultQueue::putFirst(std::vector<UnsentResult> results) {
  Lock lock(mutex_);
  if (isAbandoned_) return;
  for (const UnsentResult& result : results) noteAdded(result.report.size());
  results_.insert(results_.begin(), std::move_iterator(results.begin()), std::move_iterator(results.end()));
}

void ResultQueue::noteAdded(std::size_t bytes) {
  bytes_ += bytes;
  resultCame_.notifyOne();
}

std::vector<UnsentResult> ResultQueue::awaitBatch(std::size_t most) {
  std::vector<UnsentResult> batch;
  Lock lock(mutex_);
  while (results_.empty() && !isComplete_ && !isAbandoned_) resultCame_.wait(mutex_);
  std::size_t bytes = 0;
  while (!results_.empty() && batch.size() < most) {
    UnsentResult& next = results_.front();
    const bool fits = !next.isAlone && bytes + next.report.size() <= kBatchBytes;
    if (!batch.empty() && (batch.back().isAlone || !fits)) break;
    bytes += next.report.size();
    batch.push_back(std::move(next));
    results_.pop_front();
  }
  bytes_ -= bytes;
  roomCame_.notifyAll();
  return batch;
}

void ResultQueue::endAdding() {
  Lock lock(mutex_);
  isComplete_ = true;
  resultCame_.notifyAll();
}

void ResultQueue::abandon() {
  Lock lock(mutex_);
  isAbandoned_ = true;
  results_.clear();
  bytes_ = 0;
  resultCame_.notifyAll();
  roomCame_.notifyAll();
}

}  // namespace jobq::worker
