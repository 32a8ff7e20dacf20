// The attempts of a webhook that its receiver does not take (core/decisions/webhooks.md).
#pragma once

#include <algorithm>
#include <cstdint>

#include "jobq/time.h"

namespace jobq {

/// Longest pause between two attempts.
inline constexpr Millis kLongestWebhookPause{43'200'000};

/// How often and when the server calls a receiver.
struct WebhookBackoff {
  std::uint32_t attempts = 3;  ///< calls in all, at least 1
  Millis pause{10'000};        ///< time before the second call
  std::uint32_t factor = 1;    ///< each later pause is so many times as long as the pause before, at least 1

  /// Returns the pause after `tries` calls, at least 1, and at most kLongestWebhookPause.
  Millis pauseAfter(std::uint32_t tries) const {
    Millis next = pause;
    for (std::uint32_t i = 1; i < tries && factor > 1 && next < kLongestWebhookPause; ++i) next *= factor;
    return std::min(next, kLongestWebhookPause);
  }
};

}  // namespace jobq
