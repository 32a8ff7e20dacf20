#include "core/access/rate_gate.h"

#include <algorithm>

namespace jobq {
namespace {

constexpr Millis kCountFreshness{1'000};
constexpr Millis kRefusalFreshness{100};  // of a line that is too long: a purge makes it short at once

bool isOverLine(std::uint64_t waiting, std::uint32_t workersMax) {
  return waiting > kLineFree && waiting > kLinePerWorker * workersMax;
}

std::string tooFast(const RateLimit& limit, Operation operation) {
  const std::string name(kOperationNames[static_cast<std::size_t>(operation)]);
  std::string sentence = "too many requests: the limit of " + name + " is " + std::to_string(limit.requests) + " in " +
                         std::to_string(limit.window.count()) + " ms";
  if (limit.concurrent > 0) sentence += " and " + std::to_string(limit.concurrent) + " at once";
  return sentence + "; try again after Retry-After, and double the pause each time";
}

}  // namespace

std::variant<RateGate::Passed, RateGate::Refused> RateGate::enter(const EndpointId& endpoint, Operation operation,
                                                                  std::uint32_t workersMax, const LimitSettings& own) {
  Passed passed;
  const Instant now = rooms_.clock.now();
  if (config_.enabled) {
    const RateRow row = rowWith(table_.at(operation), own[static_cast<std::size_t>(operation)]);
    const RateLimit limit = row.perWorker == 0 ? row.base : row.with(runningAt(endpoint, now));
    std::string key = endpoint + '/' + std::string(kOperationNames[static_cast<std::size_t>(operation)]);
    const RateVerdict verdict = rooms_.limiter.enter(key, limit, now);
    if (!verdict.allowed) return Refused{tooFast(limit, operation), RateStanding{limit, 0, verdict.retryAfter}};
    passed.ticket = Ticket(rooms_.limiter, std::move(key), now);
    passed.standing = RateStanding{limit, verdict.remaining, Millis(0)};
  }
  if (config_.queue && (operation == Operation::run || operation == Operation::runsync)) {
    if (const auto waiting = lineTooLong(endpoint, workersMax, now)) {
      return Refused{"the line of " + endpoint + " is too long: " + std::to_string(*waiting) +
                         " jobs wait; try again when some are done",
                     passed.standing};
    }
  }
  return passed;
}

// A second old at most. Whoever finds it too old asks, the others go on with what is known.
std::uint32_t RateGate::runningAt(const EndpointId& endpoint, Instant now) {
  {
    Lock lock(mutex_);
    Knowledge& known = known_[endpoint];
    if (now < known.runningAsOf + kCountFreshness) return known.running;
    known.runningAsOf = now;
  }
  const std::uint32_t running = rooms_.running(endpoint);
  Lock lock(mutex_);
  return known_[endpoint].running = running;
}

// How many wait, when they are too many. What was admitted since the last question counts as waiting, so that a burst
// does not run over the limit within a second; only when that is too much is the storage asked again.
std::optional<std::uint64_t> RateGate::lineTooLong(const EndpointId& endpoint, std::uint32_t workersMax, Instant now) {
  {
    Lock lock(mutex_);
    Knowledge& known = known_[endpoint];
    const bool fresh = now < known.waitingAsOf + kCountFreshness;
    if (fresh && !isOverLine(known.waiting + known.admitted, workersMax)) {
      ++known.admitted;
      return std::nullopt;
    }
    if (now < known.waitingAsOf + kRefusalFreshness && isOverLine(known.waiting, workersMax)) return known.waiting;
    known.admitted = 0;
  }
  const std::uint64_t waiting = rooms_.waiting(endpoint);
  Lock lock(mutex_);
  Knowledge& known = known_[endpoint];
  known.waitingAsOf = now;
  known.waiting = waiting;
  if (isOverLine(waiting, workersMax)) return waiting;
  ++known.admitted;
  return std::nullopt;
}

}  // namespace jobq
