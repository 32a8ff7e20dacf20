// The `limits.*` settings: operations of the queue API with rate limits, their default numbers, and the values that the
// file may change.
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <optional>
#include <string_view>

#include "core/base/bounded_integer.h"
#include "jobq/time.h"

namespace jobq {

/// The rows of the table of limits (core/http/API.md, "Rate limits").
enum class Operation : std::uint8_t { run, runsync, status, statusSync, stream, cancel, purgeQueue, openai, requests };

inline constexpr std::size_t kOperations = 9;

/// Names as in `limits.<operation>.requests`, in the order of Operation.
inline constexpr std::array<std::string_view, kOperations> kOperationNames{
    "run", "runsync", "status", "statusSync", "stream", "cancel", "purgeQueue", "openai", "requests"};

/// The default limit of an operation.
struct OperationLimit {
  std::uint32_t requests;    ///< in kLimitWindowDefault
  std::uint32_t concurrent;  ///< 0: no limit
  std::string_view calls;    ///< the counted calls, for etc/README.md and core/http/API.md
};
/// In the order of Operation, from core/http/API.md, "Rate limits".
inline constexpr std::array<OperationLimit, kOperations> kOperationLimits{{
    {1000, 200, "`/run`"},
    {2000, 400, "`/runsync`"},
    {2000, 400, "`/status`, `/health`, `/logs`, GET of `/openai`"},
    {2000, 400, "`/status-sync`"},
    {2000, 400, "`/stream`, except calls that waited"},
    {100, 20, "`/cancel`, `/retry`"},
    {2, 0, "`/purge-queue`"},
    {2000, 400, "POST of `/openai`"},
    {10, 2, "`/requests`"},
}};
inline constexpr Millis kLimitWindowDefault{10'000};

/// The bounds on the numbers of a limit, for the file and for an endpoint alike.
inline constexpr Range kLimitCount{0, 1'000'000'000};  ///< requests, concurrent requests, requests of each worker
inline constexpr Range kLimitWindow{1, 3'600'000};     ///< milliseconds
inline constexpr Range kMaxQueued{1, 1'000'000'000};   ///< waiting jobs of an endpoint

/// Values of the file, or of an endpoint, in place of the table.
struct LimitSetting {
  std::optional<std::uint32_t> requests;
  std::optional<Millis> window;
  std::optional<std::uint32_t> concurrent;
  std::optional<std::uint32_t> perWorker;
};

/// In the order of Operation.
using LimitSettings = std::array<LimitSetting, kOperations>;

/// The `limits.*` group of the file.
struct LimitsConfig {
  bool enabled = true;  ///< rates and concurrency
  bool queue = true;    ///< length of the queue
  LimitSettings operations{};
};

}  // namespace jobq
