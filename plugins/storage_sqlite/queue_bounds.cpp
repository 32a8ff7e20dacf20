#include "queue_bounds.h"

namespace jobq::sqlite {
namespace {

constexpr Millis kFreshness{1'000};
constexpr std::size_t kManyBounds = 1'000;  // from this number on, old bounds are searched and dropped

bool isFresh(const QueueBound& bound, Instant now) { return bound.asOf <= now && now < bound.asOf + kFreshness; }

}  // namespace

std::optional<QueueBound> QueueBounds::find(std::string_view endpoint, std::size_t most, Instant now) const {
  Lock lock(mutex_);
  const auto found = bounds_.find(endpoint);
  if (found == bounds_.end() || found->second.most != most || !isFresh(found->second, now)) return std::nullopt;
  return found->second;
}

void QueueBounds::remember(std::string_view endpoint, const QueueBound& bound) {
  Lock lock(mutex_);
  if (bounds_.size() >= kManyBounds) {
    std::erase_if(bounds_, [&bound](const auto& each) { return !isFresh(each.second, bound.asOf); });
  }
  bounds_.insert_or_assign(EndpointId(endpoint), bound);
}

}  // namespace jobq::sqlite
