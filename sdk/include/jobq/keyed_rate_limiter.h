// A rate limiter but for its arithmetic: finds the key, counts who is inside, and forgets keys that nobody uses.
// Whoever writes a limiter of one process writes a Rate and derives from KeyedRateLimiter<Rate>
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

/// What one key has used of `requests` within `window`. One call at a time, instants never go back, `requests` is above
/// 0. A new one has used nothing. A Rate that has `uncount(at)` takes back one request that was counted at that instant
/// or, where a later one had been seen, after it; one that no longer counts is nothing.
template <class T>
concept Rate = std::default_initializable<T> && requires(T rate, const T used, const RateLimit& limit, Instant now) {
  /// How long until one more request is allowed, 0: it is now. Counts nothing.
  { rate.wait(limit, now) } -> std::same_as<Millis>;
  /// Counts one request, at the instant and under the limit of the wait() before, which was 0.
  { rate.count() } -> std::same_as<void>;
  /// How many more are allowed at that instant.
  { used.remaining() } -> std::same_as<std::uint32_t>;
  /// At `now`, is it like a new one? Never before the instant of the last wait().
  { used.idle(now) } -> std::same_as<bool>;
};

/// Keys are spread over shards; a shard's mutex is held for the arithmetic only. There is no thread: an idle key is
/// dropped by a later enter() that meets its shard.
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
  void doUncount(std::string_view key, Instant at) final {
    if constexpr (requires(RateOfKey rate) { rate.uncount(at); }) {
      Shard& shard = shardOf(key);
      Lock lock(shard.mutex);
      const auto found = shard.keys.find(key);
      if (found != shard.keys.end()) found->second.rate.uncount(at);
    }
  }

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
    Instant nextLook JOBQ_GUARDED_BY(mutex) = Instant::min();
  };

  static constexpr std::size_t kShards = 64;
  static constexpr Millis kUntilAPlaceIsFree{1'000};
  static constexpr Millis kLatest{60'000};  // no caller brings an instant that is older than this

  Shard& shardOf(std::string_view key) noexcept { return shards_[Hash()(key) % kShards]; }

  static Visitors& find(Shard& shard, std::string_view key) JOBQ_REQUIRES(shard.mutex) {
    const auto found = shard.keys.find(key);
    return found != shard.keys.end() ? found->second : shard.keys.try_emplace(std::string(key)).first->second;
  }

  // Looks once in kLatest, so that a call pays for a look at few keys. A key has to have been idle that long ago: for a
  // caller who comes late with an older instant, the new key is then what the old one was.
  static void dropIdle(Shard& shard, Instant now) JOBQ_REQUIRES(shard.mutex) {
    if (now < shard.nextLook) return;
    shard.nextLook = now + kLatest;
    const Instant then = now - kLatest;
    std::erase_if(shard.keys, [then](const auto& entry) {
      const Visitors& visitors = entry.second;
      return visitors.inside == 0 && visitors.newest <= then && visitors.rate.idle(then);
    });
  }

  std::array<Shard, kShards> shards_;
};

}  // namespace jobq
