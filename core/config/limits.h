// `limits.*`: which operations of the queue API have rate limits, and what the file may say about them. The numbers of
// the API text are in access/rate_table.h.
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <optional>
#include <string_view>

#include "jobq/time.h"

namespace jobq {

/// The rows of the text's table (api.md, "Limits"), and `statusSync`, which has a bucket of its own. /retry counts as
/// `cancel`, /health as `status` (core/decisions/limits.md).
enum class Operation : std::uint8_t { run, runsync, status, statusSync, stream, cancel, purgeQueue, openai, requests };

inline constexpr std::size_t kOperations = 9;

/// As in `limits.<operation>.requests`, in the order of Operation.
inline constexpr std::array<std::string_view, kOperations> kOperationNames{
    "run", "runsync", "status", "statusSync", "stream", "cancel", "purgeQueue", "openai", "requests"};

/// What the file, or an endpoint, says instead of the table.
struct LimitSetting {
  std::optional<std::uint32_t> requests;
  std::optional<Millis> window;
  std::optional<std::uint32_t> concurrent;
  std::optional<std::uint32_t> perWorker;
};

/// In the order of Operation.
using LimitSettings = std::array<LimitSetting, kOperations>;

struct LimitsConfig {
  bool enabled = true;  ///< rates and concurrency
  bool queue = true;    ///< the length of the line
  LimitSettings operations{};
};

}  // namespace jobq
