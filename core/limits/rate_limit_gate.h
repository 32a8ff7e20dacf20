// Room 3 (turnstile): too fast, too many at once, or a line that is too long? (429)
#pragma once

#include <cstdint>
#include <functional>
#include <map>
#include <optional>
#include <string>
#include <utility>
#include <variant>

#include "core/config/limits.h"
#include "core/limits/rate_limits.h"
#include "jobq/job.h"
#include "jobq/mutex.h"
#include "jobq/rate_limiter.h"
#include "jobq/time.h"
#include "jobq/worker_store.h"

namespace jobq {

/// What the RateLimit-* headers tell.
struct RateStanding {
  RateLimit limit;
  std::uint32_t remaining = 0;
  Millis retryAfter{0};  ///< of a refusal
};

/// Judges a call twice. enter() comes before its body is read: is there a place, is the line short enough, is a rate
/// known to be exceeded? Ticket::count() comes when the call has been understood, and only that counts towards the
/// rate. Malformed calls have a rate of their own, of the same size, so they use up nothing of the others'. Any thread.
/// StorageError passes through enter().
class RateLimitGate {
 public:
  struct Deps {
    RateLimiter& limiter;
    Clock& clock;
    std::function<std::uint32_t(const EndpointId&)> running;  ///< workers that hold a job, on all nodes
    std::function<std::uint64_t(const EndpointId&)> waiting;  ///< jobs in line
  };
  RateLimitGate(const LimitsConfig& config, Deps deps) : config_(config), table_(config), deps_(std::move(deps)) {}

  struct Refused {
    std::string sentence;
    std::optional<RateStanding> standing;  ///< nothing where nothing is limited; of a long line without retryAfter
  };

  /// A call's place among those at once, given back with it, and its way to be counted. The gate outlives it. One
  /// thread. A default one is of a call that is not limited: it counts nothing and refuses nothing.
  class Admission {
   public:
    Admission() = default;
    Admission(RateLimitGate& gate, std::string key, Operation operation, const RateLimit& limit)
        : gate_(&gate), key_(std::move(key)), operation_(operation), limit_(limit) {}
    Admission(Admission&& other) noexcept
        : gate_(std::exchange(other.gate_, nullptr)),
          key_(std::move(other.key_)),
          operation_(other.operation_),
          limit_(other.limit_),
          counted_(other.counted_) {}
    Admission& operator=(Admission&& other) noexcept {
      std::swap(gate_, other.gate_);
      std::swap(key_, other.key_);
      std::swap(operation_, other.operation_);
      std::swap(limit_, other.limit_);
      std::swap(counted_, other.counted_);
      return *this;
    }
    ~Admission() {
      if (gate_ != nullptr) gate_->deps_.limiter.leave(key_);
    }

    /// Counts the call as understood. Returns the refusal when the rate is exceeded: others were quicker since enter().
    /// Sets `standing` in both cases.
    std::optional<Refused> count(std::optional<RateStanding>& standing);

    /// Counts the call as malformed. Returns the refusal when there are too many of those.
    std::optional<Refused> countMalformed();

    /// Leaves the call out of both counts; it keeps its place among the calls at once.
    void waive() noexcept { counted_ = true; }

    /// Returns whether one of the three has been called, or there is nothing to count.
    bool isCounted() const noexcept { return gate_ == nullptr || counted_; }

   private:
    RateLimitGate* gate_ = nullptr;
    std::string key_;
    Operation operation_{};
    RateLimit limit_;
    bool counted_ = false;
  };

  struct Passed {
    Admission admission;
    std::optional<RateStanding> standing;  ///< nothing where nothing is limited; until the call counts, as it was last
  };

  /// `workersMax` of the endpoint decides how long its line may be; `own` are its own limits, where it has such.
  std::variant<Passed, Refused> enter(const EndpointId& endpoint, Operation operation, std::uint32_t workersMax,
                                      const LimitSettings& own = {});

 private:
  /// What is known of an endpoint; asked for again after a second.
  struct CachedCounts {
    Instant runningAsOf = Instant::min();
    std::uint32_t running = 0;
    Instant waitingAsOf = Instant::min();
    std::uint64_t waiting = 0;
    std::uint64_t admitted = 0;  ///< since `waiting` was asked for: all of them may wait
  };

  /// The rate of an operation at an endpoint, as the limiter told it last.
  struct Rate {
    Instant closedUntil = Instant::min();  ///< nothing will be counted before
    std::uint32_t requests = 0;            ///< the limit that this is about
    std::uint32_t remaining = 0;           ///< when it was last told
    Millis window{0};                      ///< of that limit
  };

  RateLimit limitOf(const EndpointId& endpoint, Operation operation, const LimitSettings& own, Instant now);
  std::optional<Refused> closed(const std::string& key, Operation operation, const RateLimit& limit, Instant now,
                                std::uint32_t& remaining);
  RateStanding count(const std::string& key, const RateLimit& limit);
  /// Returns how long no further request will be counted, without counting one; 0 when that is not known, which is also
  /// the answer when it would be exactly the pause that a limiter tells for the calls at once.
  Millis untilNext(const std::string& key, const RateLimit& limit, Instant now);
  RateVerdict enterRate(const std::string& key, const RateLimit& limit, Instant now);
  std::uint32_t runningAt(const EndpointId& endpoint, Instant now);
  std::optional<std::uint64_t> queueTooLong(const EndpointId& endpoint, std::uint32_t workersMax, Instant now);

  const LimitsConfig config_;
  const RateLimits table_;
  const Deps deps_;
  Mutex mutex_;
  std::map<EndpointId, CachedCounts, std::less<>> counts_ JOBQ_GUARDED_BY(mutex_);
  std::map<std::string, Rate, std::less<>> rates_ JOBQ_GUARDED_BY(mutex_);
};

}  // namespace jobq
