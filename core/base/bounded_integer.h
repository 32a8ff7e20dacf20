// Integers of callers, with a range.
#pragma once

#include <algorithm>
#include <cmath>
#include <cstdint>
#include <cstdlib>
#include <optional>
#include <string>

#include "jobq/json.h"

namespace jobq {

struct Range {
  std::int64_t min;
  std::int64_t max;
};

/// Treatment of a number that is no integer in the range.
enum class OutOfRange {
  refuse,
  clamp,  ///< cut down to an integer and moved into the range, for clients with such numbers (core/decisions/jobs.md)
};

/// Returns nullopt if the value is not acceptable. The ends of the range are integers that a double can hold.
inline std::optional<std::int64_t> readInteger(const json::Value& value, const Range& range, OutOfRange otherwise) {
  const auto number = json::toInteger(value, range.min, range.max);
  if (number) return number;
  if (otherwise == OutOfRange::refuse || value.kind != json::Kind::number) return std::nullopt;
  const double near = std::strtod(std::string(value.raw).c_str(), nullptr);
  return static_cast<std::int64_t>(
      std::clamp(std::floor(near), static_cast<double>(range.min), static_cast<double>(range.max)));
}

/// Returns the end of a refusal of a duration in milliseconds: a question, if the value looks like seconds because the
/// value itself is too small and the same number of seconds is in the range; else an empty text.
inline std::string secondsQuestion(const json::Value& value, const Range& range) {
  constexpr std::int64_t kMillisInSecond = 1'000;
  const auto number = json::toInteger(value, 1, range.min - 1);
  if (!number || *number * kMillisInSecond < range.min || *number * kMillisInSecond > range.max) return "";
  return "; you sent " + std::to_string(*number) + ": milliseconds?";
}

}  // namespace jobq
