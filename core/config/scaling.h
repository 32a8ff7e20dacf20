// The rule of an endpoint for the number of workers (core/http/API.md, "Scaling": `scalerType`, `scalerValue`). Its
// effect: core/workers/pool/scaler.h.
#pragma once

#include <cstdint>
#include <optional>
#include <string_view>

namespace jobq {

enum class ScalerType : std::uint8_t { queueDelay, requestCount };

constexpr std::string_view nameOf(ScalerType type) noexcept {
  switch (type) {
    case ScalerType::queueDelay: return "QUEUE_DELAY";
    case ScalerType::requestCount: return "REQUEST_COUNT";
  }
  return "";
}

/// Returns nullopt if no scaler has the name. Names are in upper case, as in the API.
constexpr std::optional<ScalerType> parseScalerType(std::string_view name) noexcept {
  for (const ScalerType type : {ScalerType::queueDelay, ScalerType::requestCount}) {
    if (nameOf(type) == name) return type;
  }
  return std::nullopt;
}

/// One rule and its threshold.
struct Scaling {
  ScalerType type = ScalerType::queueDelay;
  std::uint32_t value = 4;  ///< at least 1; queueDelay: seconds in the queue, requestCount: jobs for each worker

  bool operator==(const Scaling&) const = default;
};

}  // namespace jobq
