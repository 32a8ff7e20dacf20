// The API's rate limits as data: the table of api.md, "Limits", what core/decisions/limits.md adds, and what the
// configuration changes.
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>

#include "core/config/limits.h"
#include "jobq/rate_limiter.h"

namespace jobq {

/// The limits of one operation at one endpoint.
struct RateRow {
  RateLimit base;
  std::uint32_t perWorker = 0;  ///< requests that each running worker is good for

  /// The effective limit: the higher of the base and `running` x perWorker. The calls at once grow in proportion: a
  /// limit on them that stayed would undo the other (core/decisions/limits.md).
  RateLimit with(std::uint32_t running) const noexcept;
};

/// `base` with what an endpoint says instead.
RateRow rowWith(const RateRow& base, const LimitSetting& own) noexcept;

class RateLimits {
 public:
  explicit RateLimits(const LimitsConfig& config);

  const RateRow& at(Operation operation) const noexcept { return rows_[static_cast<std::size_t>(operation)]; }

 private:
  std::array<RateRow, kOperations> rows_{};
};

/// core/decisions/limits.md: a line is too long with more than this many jobs, and more than workersMax times that.
inline constexpr std::uint64_t kLineFree = 50;
inline constexpr std::uint64_t kLinePerWorker = 500;

}  // namespace jobq
