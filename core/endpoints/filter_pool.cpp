#include "core/endpoints/filter_pool.h"

#include <sched.h>

#include <algorithm>
#include <set>

#include "core/base/script_name.h"
#include "core/base/words.h"
#include "jobq/error.h"

namespace jobq {
namespace {

constexpr std::string_view kPluginPrefix = "plugin/";
constexpr std::size_t kMostFilters = 16;

// Most idle instances of a shard. More instances are made when more requests are reviewed at once, and are destroyed
// afterwards.
constexpr std::size_t kMostIdle = 16;

}  // namespace

FilterName parseFilter(const std::string& name) {
  const bool isPlugin = name.starts_with(kPluginPrefix);
  const std::string word = isPlugin ? name.substr(kPluginPrefix.size()) : name;
  if (!isScriptName(word)) {
    throw ConfigError("the filter " + clipped(name) +
                      " has no name that matches [A-Za-z0-9_-]{1,64}: write <script>, or plugin/<filter>");
  }
  return isPlugin ? FilterName{word, ""} : FilterName{"lua", word};
}

void checkFilterNames(const std::vector<std::string>& names) {
  if (names.size() > kMostFilters) throw ConfigError("the list has more than 16 filters");
  std::set<std::string> seen;
  for (const std::string& name : names) {
    (void)parseFilter(name);
    if (!seen.insert(name).second) throw ConfigError("the filter " + name + " appears twice: name it once");
  }
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
