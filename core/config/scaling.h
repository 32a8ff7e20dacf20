// When an endpoint gets more workers, as its owner says it (wire.md, section 4.1: `scalerType`, `scalerValue`). What is
// made of it: core/workers/scaler.h.
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

/// Nothing: no scaler has that name. Names are upper-case, as the API spells them.
constexpr std::optional<ScalerType> parseScalerType(std::string_view name) noexcept {
  for (const ScalerType type : {ScalerType::queueDelay, ScalerType::requestCount}) {
    if (nameOf(type) == name) return type;
  }
  return std::nullopt;
}

struct Scaling {
  ScalerType type = ScalerType::queueDelay;
  std::uint32_t value = 4;  ///< at least 1; queueDelay: seconds that a job may wait, requestCount: jobs a worker

  bool operator==(const Scaling&) const = default;
};

}  // namespace jobq
