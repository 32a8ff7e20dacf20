// Room 3 (turnstile): too fast, too many at once, or a line that is too long? (429)
#pragma once

#include <cstdint>
#include <functional>
#include <map>
#include <optional>
#include <string>
#include <utility>
#include <variant>

#include "core/access/rate_table.h"
#include "core/config/limits.h"
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

/// Any thread. StorageError passes through enter().
class RateGate {
 public:
  struct Rooms {
    RateLimiter& limiter;
    Clock& clock;
    std::function<std::uint32_t(const EndpointId&)> running;  ///< workers that hold a job, on all nodes
    std::function<std::uint64_t(const EndpointId&)> waiting;  ///< jobs in line
  };
  RateGate(const LimitsConfig& config, Rooms rooms) : config_(config), table_(config), rooms_(std::move(rooms)) {}

  /// A call's place among those at once; given back with it.
  class Ticket {
   public:
    Ticket() = default;
    Ticket(RateLimiter& limiter, std::string key, Instant at) : limiter_(&limiter), key_(std::move(key)), at_(at) {}
    Ticket(Ticket&& other) noexcept
        : limiter_(std::exchange(other.limiter_, nullptr)), key_(std::move(other.key_)), at_(other.at_) {}
    Ticket& operator=(Ticket&& other) noexcept {
      std::swap(limiter_, other.limiter_);
      std::swap(key_, other.key_);
      std::swap(at_, other.at_);
      return *this;
    }
    /// The call no longer counts towards the rate; it keeps its place among those at once. At most once.
    void uncount() {
      if (limiter_ != nullptr) limiter_->uncount(key_, at_);
    }
    ~Ticket() {
      if (limiter_ != nullptr) limiter_->leave(key_);
    }

   private:
    RateLimiter* limiter_ = nullptr;
    std::string key_;
    Instant at_{};
  };

  struct Passed {
    Ticket ticket;
    std::optional<RateStanding> standing;  ///< nothing where nothing is limited
  };
  struct Refused {
    std::string sentence;
    std::optional<RateStanding> standing;  ///< nothing where nothing is limited; of a long line without retryAfter
  };

  /// `workersMax` of the endpoint decides how long its line may be; `own` are its own limits, where it has such.
  std::variant<Passed, Refused> enter(const EndpointId& endpoint, Operation operation, std::uint32_t workersMax,
                                      const LimitSettings& own = {});

 private:
  /// What is known of an endpoint; asked for again after a second.
  struct Knowledge {
    Instant runningAsOf = Instant::min();
    std::uint32_t running = 0;
    Instant waitingAsOf = Instant::min();
    std::uint64_t waiting = 0;
    std::uint64_t admitted = 0;  ///< since `waiting` was asked for: all of them may wait
  };

  std::uint32_t runningAt(const EndpointId& endpoint, Instant now);
  std::optional<std::uint64_t> lineTooLong(const EndpointId& endpoint, std::uint32_t workersMax, Instant now);

  const LimitsConfig config_;
  const RateTable table_;
  const Rooms rooms_;
  Mutex mutex_;
  std::map<EndpointId, Knowledge, std::less<>> known_ JOBQ_GUARDED_BY(mutex_);
};

}  // namespace jobq
