// Rate limiting: refuses calls (429) for too high a rate, too many concurrent calls, or too long a queue.
#pragma once

#include <cstdint>
#include <functional>
#include <map>
#include <optional>
#include <string>
#include <utility>

#include "core/base/result.h"
#include "core/config/limits.h"
#include "core/limits/rate_limits.h"
#include "jobq/job.h"
#include "jobq/mutex.h"
#include "jobq/node_store.h"
#include "jobq/rate_limiter.h"
#include "jobq/time.h"

namespace jobq {

/// Values of the RateLimit-* headers (core/http/API.md, "Headers of limits").
struct RateLimitStatus {
  RateLimit limit;
  std::uint32_t remaining = 0;
  Millis retryAfter{0};  ///< set in a refusal, otherwise 0
};

/// The present load of an endpoint. Any thread may call the functions; running() and waiting() throw
/// StorageError.
class EndpointLoad {
 public:
  virtual ~EndpointLoad() = default;

  /// Returns the number of nodes that share the limits of the endpoint. Throws nothing.
  virtual std::uint32_t nodes() const = 0;

  /// Returns the number of busy workers on all nodes.
  virtual std::uint32_t running(const EndpointId& endpoint) const = 0;

  /// Returns the number of queued jobs.
  virtual std::uint64_t waiting(const EndpointId& endpoint) const = 0;
};

/// Checks a call twice. enter() comes before the body is read and checks the concurrent calls, the length of the queue,
/// and known exceeded rates. Permit::count() comes when parameters and body are known to be good, and only counted
/// calls use up the rate. Malformed calls have a separate rate of the same size. Any thread.
class RateLimitGate {
 public:
  /// The referenced objects outlive the gate.
  struct Deps {
    RateLimiter& limiter;
    Clock& clock;
    const EndpointLoad& load;
  };
  /// Copies `config`.
  RateLimitGate(const LimitsConfig& config, const Deps& deps) : config_(config), table_(config), deps_(deps) {}

  /// A refusal with the sentence for the caller.
  struct Refused {
    std::string sentence;
    std::optional<RateLimitStatus>
        rateLimitStatus;  ///< nullopt without a limit; retryAfter is 0 if the queue is too long
  };

  /// The place of a call among the concurrent calls of an operation, returned by the destructor, and the way to count
  /// the call against the rate. The gate outlives the permit. One thread. A default permit belongs to an unlimited call
  /// and neither counts nor refuses.
  class Permit {
   public:
    Permit() = default;
    Permit(RateLimitGate& gate, std::string key, Operation operation, const RateLimit& limit)
        : gate_(&gate), key_(std::move(key)), operation_(operation), limit_(limit) {}
    Permit(Permit&& other) noexcept
        : gate_(std::exchange(other.gate_, nullptr)),
          key_(std::move(other.key_)),
          operation_(other.operation_),
          limit_(other.limit_),
          counted_(other.counted_) {}
    Permit& operator=(Permit&& other) noexcept {
      std::swap(gate_, other.gate_);
      std::swap(key_, other.key_);
      std::swap(operation_, other.operation_);
      std::swap(limit_, other.limit_);
      std::swap(counted_, other.counted_);
      return *this;
    }
    ~Permit() {
      if (gate_ != nullptr) gate_->deps_.limiter.leave(key_);
    }

    /// Counts a well-formed call against the rate. Fails if other calls have used up the rate since enter(). Sets
    /// `rateLimitStatus` in both cases.
    Result<void, Refused> count(std::optional<RateLimitStatus>& rateLimitStatus);

    /// Counts the call as malformed. Fails if the rate of malformed calls is exceeded.
    Result<void, Refused> countMalformed();

    /// Leaves the call out of both counts. The call stays one of the concurrent calls.
    void skipCounting() noexcept { counted_ = true; }

    /// Returns true after count(), countMalformed() or skipCounting(), or for an unlimited call.
    bool isCounted() const noexcept { return gate_ == nullptr || counted_; }

   private:
    RateLimitGate* gate_ = nullptr;
    std::string key_;
    Operation operation_{};
    RateLimit limit_;
    bool counted_ = false;
  };

  /// A call that may go on.
  struct Passed {
    Permit permit;
    std::optional<RateLimitStatus> rateLimitStatus;  ///< nullopt without a limit; the last known status until count()
  };

  /// The limits of an endpoint.
  struct OwnLimits {
    const LimitSettings& operations;  ///< in place of the server's
    std::uint64_t maxQueued;          ///< waiting jobs at which no more are accepted
  };

  /// Checks a call by its head. Fails if the call is refused unread. Throws StorageError.
  Result<Passed, Refused> enter(const EndpointId& endpoint, Operation operation, const OwnLimits& own);

  /// Does the same as enter() if the last known counts of the endpoint decide. Returns no value, and changes nothing,
  /// if enter() would read the storage. Never blocks.
  std::optional<Result<Passed, Refused>> enterKnown(const EndpointId& endpoint, Operation operation,
                                                    const OwnLimits& own);

 private:
  /// Last known counts of an endpoint. `running` is read again after 1 s, `waiting` after 1 s or, when the queue seems
  /// too long, earlier (lineOf()).
  struct CachedCounts {
    Instant runningAsOf = Instant::min();
    std::uint32_t running = 0;
    Instant waitingAsOf = Instant::min();
    std::uint64_t waiting = 0;
    std::uint64_t admitted = 0;  ///< admitted jobs since the last count of `waiting`; all of them may wait
  };

  /// The rate of an operation at an endpoint, as last reported by the limiter.
  struct Rate {
    Instant exhaustedUntil = Instant::min();  ///< requests are refused until then
    std::uint32_t requests = 0;               ///< requests of the limit in force at the report
    std::uint32_t remaining = 0;              ///< remaining requests at the report
    Millis window{0};                         ///< window of the same limit
  };

  /// The queue of an endpoint, as far as known.
  struct Line {
    bool isKnown = true;                   ///< false: the storage was not asked
    std::optional<std::uint64_t> tooLong;  ///< the number of waiting jobs, if too many wait
  };

  /// Enters, or returns no value if the storage has to be asked and `mayAsk` is false.
  std::optional<Result<Passed, Refused>> enterOr(bool mayAsk, const EndpointId& endpoint, Operation operation,
                                                 const OwnLimits& own);
  std::optional<RateLimit> limitOf(const EndpointId& endpoint, Operation operation, const LimitSettings& own,
                                   Instant now, bool mayAsk);
  Result<std::uint32_t, Refused> remainingOf(const std::string& key, Operation operation, const RateLimit& limit,
                                             Instant now);
  RateLimitStatus count(const std::string& key, const RateLimit& limit);
  /// Returns how long the rate is exhausted, found by a request to the limiter that is always refused and so counts
  /// nothing. Returns 0 if the request was refused for the concurrent calls, and also if the rate is exhausted for
  /// exactly 1,000 ms, which looks the same: the time is unknown then.
  Millis probeExhausted(const std::string& key, const RateLimit& limit, Instant now);
  RateVerdict tryConsume(const std::string& key, const RateLimit& limit, Instant now);
  std::optional<std::uint32_t> runningAt(const EndpointId& endpoint, Instant now, bool mayAsk);
  Line lineOf(const EndpointId& endpoint, std::uint64_t maxQueued, Instant now, bool mayAsk);

  const LimitsConfig config_;
  const RateLimits table_;
  const Deps deps_;
  Mutex mutex_;
  std::map<EndpointId, CachedCounts, std::less<>> counts_ JOBQ_GUARDED_BY(mutex_);
  std::map<std::string, Rate, std::less<>> rates_ JOBQ_GUARDED_BY(mutex_);
};

}  // namespace jobq
