// Base of rate limiters within one process. The base finds the state of a key, counts the concurrent calls and forgets
// idle keys. The author of a limiter writes a Rate, the arithmetic of one key, and derives from KeyedRateLimiter<Rate>
// (plugins/limiter_bucket).
#pragma once

#include <algorithm>
#include <array>
#include <concepts>
#include <cstddef>
#include <cstdint>
#include <functional>
#include <string>
#include <string_view>
#include <unordered_map>

#include "jobq/mutex.h"
#include "jobq/rate_limiter.h"
#include "jobq/time.h"

namespace jobq {

/// State of one key: how much of `requests` within `window` is used up. A new object has used nothing. The owner of the
/// object, KeyedRateLimiter, makes one call at a time; instants never go back, and `requests` is above 0.
template <class T>
concept Rate = std::default_initializable<T> && requires(T rate, const T used, const RateLimit& limit, Instant now) {
  /// Returns the time in milliseconds until a further request is allowed, 0 if a request is allowed now. Counts
  /// nothing.
  { rate.wait(limit, now) } -> std::same_as<Millis>;
  /// Counts one request, at the instant and under the limit of the preceding wait(), which returned 0.
  { rate.count() } -> std::same_as<void>;
  /// Returns the number of further requests that are allowed at that instant.
  { used.remaining() } -> std::same_as<std::uint32_t>;
  /// Returns true if the object is at `now` equal to a new object. `now` is not before the instant of the last wait().
  { used.idle(now) } -> std::same_as<bool>;
};

/// Keys are spread over 64 shards, each with a mutex that is held during the arithmetic only. No thread runs in the
/// background: a later enter() into the same shard drops an idle key.
template <Rate RateOfKey>
class KeyedRateLimiter : public RateLimiter {
 public:
  RateVerdict enter(std::string_view key, const RateLimit& limit, Instant now) final {
    Shard& shard = shardOf(key);
    Lock lock(shard.mutex);
    dropIdle(shard, now);
    Visitors& visitors = find(shard, key);
    visitors.newest = std::max(visitors.newest, now);
    if (limit.requests > 0) {
      const Millis wait = visitors.rate.wait(limit, visitors.newest);
      if (wait > Millis(0)) return {false, wait, 0};
    }
    if (limit.concurrent > 0 && visitors.inside >= limit.concurrent) return {false, kUntilAPlaceIsFree, 0};
    if (limit.requests > 0) visitors.rate.count();
    ++visitors.inside;
    return {true, Millis(0), limit.requests > 0 ? visitors.rate.remaining() : 0};
  }

  void leave(std::string_view key) final {
    Shard& shard = shardOf(key);
    Lock lock(shard.mutex);
    const auto found = shard.keys.find(key);
    if (found != shard.keys.end() && found->second.inside > 0) --found->second.inside;
  }

 private:
  struct Visitors {
    RateOfKey rate;
    Instant newest = Instant::min();
    std::uint64_t inside = 0;
  };
  struct Hash {
    using is_transparent = void;
    std::size_t operator()(std::string_view key) const noexcept { return std::hash<std::string_view>()(key); }
  };
  struct alignas(64) Shard {
    Mutex mutex;
    std::unordered_map<std::string, Visitors, Hash, std::equal_to<>> keys JOBQ_GUARDED_BY(mutex);
    Instant nextCleanup JOBQ_GUARDED_BY(mutex) = Instant::min();
  };

  static constexpr std::size_t kShards = 64;
  static constexpr Millis kUntilAPlaceIsFree{1'000};
  static constexpr Millis kLatest{60'000};  // no caller passes an instant older than 60 s

  Shard& shardOf(std::string_view key) noexcept { return shards_[Hash()(key) % kShards]; }

  static Visitors& find(Shard& shard, std::string_view key) JOBQ_REQUIRES(shard.mutex) {
    const auto found = shard.keys.find(key);
    return found != shard.keys.end() ? found->second : shard.keys.try_emplace(std::string(key)).first->second;
  }

  // Drops the idle keys of a shard once in kLatest, so that few calls pay for a pass. A key is dropped only if the key
  // was idle kLatest ago. A new object is then equal to the dropped object also for a late caller with an older
  // instant.
  static void dropIdle(Shard& shard, Instant now) JOBQ_REQUIRES(shard.mutex) {
    if (now < shard.nextCleanup) return;
    shard.nextCleanup = now + kLatest;
    const Instant then = now - kLatest;
    std::erase_if(shard.keys, [then](const auto& entry) {
      const Visitors& visitors = entry.second;
      return visitors.inside == 0 && visitors.newest <= then && visitors.rate.idle(then);
    });
  }

  std::array<Shard, kShards> shards_;
};

}  // namespace jobq
