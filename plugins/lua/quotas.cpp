#include "quotas.h"

#include <algorithm>

namespace jobq::lua {
namespace {

constexpr std::size_t kMostNames = 100'000;

}  // namespace

Millis Quotas::take(const std::string& name, std::int64_t most, Millis window) {
  const Instant now = clock_.now();
  Lock lock(mutex_);
  if (counts_.size() >= kMostNames && !counts_.contains(name)) makeRoom(now);
  Count& count = counts_[name];
  if (count.end <= now) count = {now + window, 0};
  if (count.taken >= most) return count.end - now;
  ++count.taken;
  return Millis(0);
}

// Names are callers' words, and there may be any number of them: those whose time is over go, and if that is none, the
// one that ends first.
void Quotas::makeRoom(Instant now) {
  std::erase_if(counts_, [now](const auto& entry) { return entry.second.end <= now; });
  if (counts_.size() < kMostNames) return;
  counts_.erase(std::min_element(counts_.begin(), counts_.end(), [](const auto& left, const auto& right) {
    return left.second.end < right.second.end;
  }));
}

}  // namespace jobq::lua
