#include "core/limits/rate_limits.h"

#include <algorithm>
#include <limits>

namespace jobq {
namespace {

// Running workers for which the base limit is meant.
constexpr std::uint32_t kWorkersForBase = 10;

std::uint32_t narrow(std::uint64_t number) noexcept {
  return static_cast<std::uint32_t>(std::min<std::uint64_t>(number, std::numeric_limits<std::uint32_t>::max()));
}

}  // namespace

RateLimit partOf(const RateLimit& limit, std::uint32_t nodes) noexcept {
  const auto part = [nodes](std::uint32_t whole) { return whole / nodes + (whole % nodes == 0 ? 0 : 1); };
  return {part(limit.requests), limit.window, part(limit.concurrent)};
}

RateLimits::RateLimits(const LimitsConfig& config) {
  for (std::size_t i = 0; i < kOperations; ++i) {
    const LimitSetting& setting = config.operations[i];
    RateRow& row = rows_[i];
    row.base.requests = setting.requests.value_or(kOperationLimits[i].requests);
    row.base.window = setting.window.value_or(kLimitWindowDefault);
    row.base.concurrent = setting.concurrent.value_or(kOperationLimits[i].concurrent);
    row.perWorker = setting.perWorker.value_or(row.base.requests / kWorkersForBase);
  }
}

RateRow rowWith(const RateRow& base, const LimitSetting& own) noexcept {
  RateRow row = base;
  row.base.requests = own.requests.value_or(base.base.requests);
  row.base.window = own.window.value_or(base.base.window);
  row.base.concurrent = own.concurrent.value_or(base.base.concurrent);
  if (own.requests) row.perWorker = *own.requests / kWorkersForBase;
  row.perWorker = own.perWorker.value_or(row.perWorker);
  return row;
}

RateLimit RateRow::with(std::uint32_t running) const noexcept {
  RateLimit limit = base;
  const std::uint64_t scaled = std::uint64_t{running} * perWorker;
  if (base.requests == 0 || scaled <= base.requests) return limit;
  limit.requests = narrow(scaled);
  limit.concurrent = narrow(std::uint64_t{base.concurrent} * limit.requests / base.requests);
  return limit;
}

}  // namespace jobq
