// The rate limits of the API as data: the table of core/http/API.md, "Rate limits", and the changes of the
// configuration.
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>

#include "core/config/limits.h"
#include "jobq/rate_limiter.h"

namespace jobq {

/// The limits of an operation at an endpoint.
struct RateRow {
  RateLimit base;
  std::uint32_t perWorker = 0;  ///< requests that each running worker adds

  /// Returns the limit in force for `running` busy workers: the higher of the base and `running` x perWorker. The
  /// concurrent calls grow in proportion, because a fixed limit on them would undo the growing rate
  /// (core/decisions/limits.md).
  RateLimit with(std::uint32_t running) const noexcept;
};

/// Returns `base` with the values of `own` in their place. A changed number of requests also changes perWorker, unless
/// `own` sets perWorker.
RateRow rowWith(const RateRow& base, const LimitSetting& own) noexcept;

/// Returns the part of one of `nodes` nodes in a limit on all nodes together. Parts are rounded up: 0 would mean no
/// limit.
RateLimit partOf(const RateLimit& limit, std::uint32_t nodes) noexcept;

/// The limits of all operations. Immutable; any thread.
class RateLimits {
 public:
  /// Applies `config` to the table.
  explicit RateLimits(const LimitsConfig& config);

  /// Returns the row of `operation`, valid as long as this object.
  const RateRow& at(Operation operation) const noexcept { return rows_[static_cast<std::size_t>(operation)]; }

 private:
  std::array<RateRow, kOperations> rows_{};
};

}  // namespace jobq
