// The descriptors that the server has for calls to receivers of webhooks.
#pragma once

#include <algorithm>
#include <cstddef>
#include <cstdint>

namespace jobq {

/// Returns the greatest number of connections to receivers, those that are kept without a call included: a sixteenth of
/// the process's `limit` of descriptors, at least 1 and at most 512, so that files keep the rest of what callers leave.
/// Pure.
constexpr std::size_t connectionsForCalls(std::uint64_t limit) noexcept {
  return static_cast<std::size_t>(std::clamp<std::uint64_t>(limit / 16, 1, 512));
}

}  // namespace jobq
