#include "core/endpoints/filter_pool.h"

#include "core/base/words.h"
#include "core/endpoints/image.h"
#include "jobq/error.h"

namespace jobq {
namespace {

constexpr std::string_view kPlugin = "plugin/";

// More are made when more requests are judged at once, and go afterwards.
constexpr std::size_t kMostIdle = 64;

}  // namespace

FilterName parseFilter(const std::string& name) {
  const bool isPlugin = name.starts_with(kPlugin);
  const std::string word = isPlugin ? name.substr(kPlugin.size()) : name;
  if (!isScriptName(word)) {
    throw ConfigError("the filter " + clipped(name) +
                      " has no name that matches [A-Za-z0-9_-]{1,64}: write <script>, or" + " plugin/<filter>");
  }
  return isPlugin ? FilterName{word, ""} : FilterName{"lua", word};
}

Admission FilterPool::review(const AdmissionRequest& job) {
  if (factory_ == nullptr) throw ConfigError(absence_);
  auto filter = take();
  // One that threw is not used again: nobody knows what it has left behind.
  Admission verdict = filter->review(job);
  giveBack(std::move(filter));
  return verdict;
}

std::unique_ptr<AdmissionFilter> FilterPool::take() {
  {
    Lock lock(mutex_);
    if (!idle_.empty()) {
      auto filter = std::move(idle_.back());
      idle_.pop_back();
      return filter;
    }
  }
  return factory_->make(script_);
}

void FilterPool::giveBack(std::unique_ptr<AdmissionFilter> filter) {
  Lock lock(mutex_);
  if (idle_.size() < kMostIdle) {
    idle_.push_back(std::move(filter));
    return;
  }
  lock.unlock();
  filter.reset();
}

}  // namespace jobq
