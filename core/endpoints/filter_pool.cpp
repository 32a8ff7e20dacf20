#include "core/endpoints/filter_pool.h"

#include <sched.h>

#include <algorithm>

#include "core/model/script_result.h"
#include "jobq/error.h"

namespace jobq {
namespace {

// Most idle instances of a shard. More instances are made when more requests are reviewed at once, and are destroyed
// afterwards.
constexpr std::size_t kMostIdle = 16;

}  // namespace

Result<void> FilterPool::check() const {
  if (factory_ == nullptr) return invalid(absence_);
  return scriptResult(factory_->fault(script_));
}

Decision FilterPool::review(const AdmissionRequest& job) {
  if (factory_ == nullptr) throw ConfigError(absence_);
  const int processor = sched_getcpu();
  Shard& shard = shards_[static_cast<std::size_t>(std::max(processor, 0)) % kShards];
  auto filter = acquireFilter(shard);
  // An instance is not used again after an exception, because its state is unknown.
  Decision verdict = filter->review(job);
  releaseFilter(shard, std::move(filter));
  return verdict;
}

std::unique_ptr<AdmissionFilter> FilterPool::acquireFilter(Shard& shard) {
  {
    Lock lock(shard.mutex);
    if (!shard.idle.empty()) {
      auto filter = std::move(shard.idle.back());
      shard.idle.pop_back();
      return filter;
    }
  }
  return factory_->make(script_);
}

void FilterPool::releaseFilter(Shard& shard, std::unique_ptr<AdmissionFilter> filter) {
  Lock lock(shard.mutex);
  if (shard.idle.size() < kMostIdle) {
    shard.idle.push_back(std::move(filter));
    return;
  }
  lock.unlock();
  filter.reset();
}

}  // namespace jobq
