#include "quotas.h"

#include <algorithm>
#include <cstddef>
#include <vector>

namespace jobq::lua {
namespace {

constexpr std::size_t kMostNames = 100'000;

}  // namespace

Millis Quotas::reserve(const std::string& name, std::int64_t most, Millis window) {
  const Instant now = clock_.now();
  Lock lock(mutex_);
  if (counts_.size() >= kMostNames && !counts_.contains(name)) makeRoom(now);
  Count& count = counts_[name];
  if (count.end <= now) count = {now + window, 0};
  if (count.taken >= most) return count.end - now;
  ++count.taken;
  return Millis(0);
}

// Names come from callers, and their number is unbounded. All names whose window is over are dropped. If too few are
// dropped, the tenth with the earliest ends follows, so that a flood of new names does not cost a scan for each name.
void Quotas::makeRoom(Instant now) {
  std::erase_if(counts_, [now](const auto& entry) { return entry.second.end <= now; });
  if (counts_.size() < kMostNames - kMostNames / 10) return;
  std::vector<Instant> ends;
  ends.reserve(counts_.size());
  for (const auto& [name, count] : counts_) ends.push_back(count.end);
  const auto last = ends.begin() + static_cast<std::ptrdiff_t>(kMostNames / 10);
  std::nth_element(ends.begin(), last, ends.end());
  // Windows that began together end together. Only the number of such windows still in excess is dropped.
  const Instant end = *last;
  std::size_t left =
      kMostNames / 10 - std::erase_if(counts_, [end](const auto& entry) { return entry.second.end < end; });
  std::erase_if(counts_, [&left, end](const auto& entry) { return entry.second.end == end && left > 0 && left-- > 0; });
}

}  // namespace jobq::lua
