#include "core/limits/rate_limit_gate.h"

#include <algorithm>

namespace jobq {
namespace {

// Greatest age of the counts of an endpoint.
constexpr Millis kCountFreshness{1'000};
constexpr Millis kRefusalFreshness{100};  // age of a queue that is too long: a purge makes the queue short at once

std::string tooFast(const RateLimit& limit, Operation operation) {
  const std::string name(kOperationNames[static_cast<std::size_t>(operation)]);
  std::string sentence = "too many requests: the limit of " + name + " is " + std::to_string(limit.requests) + " in " +
                         std::to_string(limit.window.count()) + " ms";
  if (limit.concurrent > 0) sentence += " and " + std::to_string(limit.concurrent) + " at once";
  return sentence + " (limits." + name + " of the settings, or rateLimits of the endpoint); try again after " +
         "Retry-After, and double the pause each time";
}

// RateVerdict::retryAfter of a refusal by the concurrent calls alone.
constexpr Millis kUntilAPlaceIsFree{1'000};

// Most remembered rates. Beyond the number open rates are forgotten, and their callers see the whole limit as
// remaining.
constexpr std::size_t kMostRates = 10'000;

std::string tooMalformed(const RateLimit& limit, Operation operation) {
  return "too many malformed requests: more than " + std::to_string(limit.requests) + " in " +
         std::to_string(limit.window.count()) + " ms (limits." +
         std::string(kOperationNames[static_cast<std::size_t>(operation)]) +
         "); correct them, and try again after Retry-After";
}

}  // namespace

Result<RateLimitGate::Passed, RateLimitGate::Refused> RateLimitGate::enter(const EndpointId& endpoint,
                                                                           Operation operation, const OwnLimits& own) {
  return enterOr(true, endpoint, operation, own).value();
}

std::optional<Result<RateLimitGate::Passed, RateLimitGate::Refused>> RateLimitGate::enterKnown(
    const EndpointId& endpoint, Operation operation, const OwnLimits& own) {
  return enterOr(false, endpoint, operation, own);
}

std::optional<Result<RateLimitGate::Passed, RateLimitGate::Refused>> RateLimitGate::enterOr(bool mayAsk,
                                                                                            const EndpointId& endpoint,
                                                                                            Operation operation,
                                                                                            const OwnLimits& own) {
  using Entry = Result<Passed, Refused>;
  Passed passed;
  const Instant now = deps_.clock.now();
  if (config_.enabled) {
    const auto known = limitOf(endpoint, operation, own.operations, now, mayAsk);
    if (!known) return std::nullopt;
    const RateLimit& limit = *known;
    std::string key = endpoint + '/' + std::string(kOperationNames[static_cast<std::size_t>(operation)]);
    const auto remaining = remainingOf(key, operation, limit, now);
    if (!remaining) return Entry(remaining.failure());
    const RateVerdict place = deps_.limiter.enter(key, {0, limit.window, limit.concurrent}, now);
    if (!place.allowed) {
      return Entry(Refused{tooFast(limit, operation), RateLimitStatus{limit, 0, place.retryAfter}});
    }
    passed.permit = Permit(*this, std::move(key), operation, limit);
    passed.rateLimitStatus = RateLimitStatus{limit, *remaining, Millis(0)};
  }
  if (config_.queue && (operation == Operation::run || operation == Operation::runsync)) {
    const Line line = lineOf(endpoint, own.maxQueued, now, mayAsk);
    if (!line.isKnown) return std::nullopt;
    if (line.tooLong) {
      return Entry(Refused{"the queue of " + endpoint + " is full: " + std::to_string(*line.tooLong) +
                               " jobs wait, and the limit is " + std::to_string(own.maxQueued) +
                               " (maxQueued of the endpoint, or limits.maxQueued of the settings); try again when " +
                               "some are done",
                           passed.rateLimitStatus});
    }
  }
  return Entry(std::move(passed));
}

std::optional<RateLimit> RateLimitGate::limitOf(const EndpointId& endpoint, Operation operation,
                                                const LimitSettings& own, Instant now, bool mayAsk) {
  const RateRow row = rowWith(table_.at(operation), own[static_cast<std::size_t>(operation)]);
  const auto running = row.perWorker == 0 ? std::optional<std::uint32_t>(0) : runningAt(endpoint, now, mayAsk);
  if (!running) return std::nullopt;
  const RateLimit limit = row.perWorker == 0 ? row.base : row.with(*running);
  return partOf(limit, deps_.load.nodes());
}

// Returns the remaining requests of the rate, as last known. Fails if the call would not be counted, whatever its body:
// such a call is refused unread.
Result<std::uint32_t, RateLimitGate::Refused> RateLimitGate::remainingOf(const std::string& key, Operation operation,
                                                                         const RateLimit& limit, Instant now) {
  Lock lock(mutex_);
  const auto found = rates_.find(key);
  const bool known =
      found != rates_.end() && found->second.requests == limit.requests && found->second.window == limit.window;
  if (!known) return limit.requests;
  if (now >= found->second.exhaustedUntil) return found->second.remaining;
  return Refused{tooFast(limit, operation), RateLimitStatus{limit, 0, found->second.exhaustedUntil - now}};
}

// Counts a request if the rate allows it. Sets retryAfter on a refusal.
RateLimitStatus RateLimitGate::count(const std::string& key, const RateLimit& limit) {
  const Instant now = deps_.clock.now();
  const std::string counted = key + "/counted";
  const RateVerdict verdict = deps_.limiter.enter(counted, {limit.requests, limit.window, 0}, now);
  Rate rate{Instant::min(), limit.requests, verdict.remaining, limit.window};
  if (!verdict.allowed) rate.exhaustedUntil = now + verdict.retryAfter;
  if (verdict.allowed) {
    if (limit.requests > 0 && verdict.remaining == 0) rate.exhaustedUntil = now + probeExhausted(counted, limit, now);
    deps_.limiter.leave(counted);
  }
  Lock lock(mutex_);
  if (rates_.size() >= kMostRates)
    std::erase_if(rates_, [now](const auto& each) { return each.second.exhaustedUntil <= now; });
  rates_[key] = rate;
  return {limit, verdict.remaining, verdict.allowed ? Millis(0) : verdict.retryAfter};
}

// The caller still holds its place, so a request with one place is refused and counts nothing. The refusal is certain,
// even if a thread with a later time has made the limiter free a request meanwhile.
Millis RateLimitGate::probeExhausted(const std::string& key, const RateLimit& limit, Instant now) {
  const RateVerdict verdict = deps_.limiter.enter(key, {limit.requests, limit.window, 1}, now);
  if (verdict.allowed) deps_.limiter.leave(key);
  const bool isByPlaces = verdict.retryAfter == kUntilAPlaceIsFree;
  return isByPlaces ? Millis(0) : verdict.retryAfter;
}

RateVerdict RateLimitGate::tryConsume(const std::string& key, const RateLimit& limit, Instant now) {
  const RateVerdict verdict = deps_.limiter.enter(key, {limit.requests, limit.window, 0}, now);
  if (verdict.allowed) deps_.limiter.leave(key);
  return verdict;
}

Result<void, RateLimitGate::Refused> RateLimitGate::Permit::count(std::optional<RateLimitStatus>& rateLimitStatus) {
  if (isCounted()) return {};
  counted_ = true;
  rateLimitStatus = gate_->count(key_, limit_);
  if (rateLimitStatus->retryAfter == Millis(0)) return {};
  return Refused{tooFast(limit_, operation_), rateLimitStatus};
}

Result<void, RateLimitGate::Refused> RateLimitGate::Permit::countMalformed() {
  if (isCounted()) return {};
  counted_ = true;
  const RateVerdict verdict = gate_->tryConsume(key_ + "/malformed", limit_, gate_->deps_.clock.now());
  if (verdict.allowed) return {};
  return Refused{tooMalformed(limit_, operation_), RateLimitStatus{limit_, 0, verdict.retryAfter}};
}

// Returns a number at most a second old. The first caller with an older number asks for a new number; the other callers
// use the known number meanwhile.
std::optional<std::uint32_t> RateLimitGate::runningAt(const EndpointId& endpoint, Instant now, bool mayAsk) {
  {
    Lock lock(mutex_);
    CachedCounts& known = counts_[endpoint];
    if (now < known.runningAsOf + kCountFreshness) return known.running;
    if (!mayAsk) return std::nullopt;
    known.runningAsOf = now;
  }
  const std::uint32_t running = deps_.load.running(endpoint);
  Lock lock(mutex_);
  return counts_[endpoint].running = running;
}

// Returns the number of waiting jobs if the queue is too long. Jobs admitted since the last count are added, so a burst
// does not exceed the limit within a second; the storage is asked again only when the sum is too high.
RateLimitGate::Line RateLimitGate::lineOf(const EndpointId& endpoint, std::uint64_t maxQueued, Instant now,
                                          bool mayAsk) {
  {
    Lock lock(mutex_);
    CachedCounts& known = counts_[endpoint];
    const bool fresh = now < known.waitingAsOf + kCountFreshness;
    if (fresh && known.waiting + known.admitted < maxQueued) {
      ++known.admitted;
      return {};
    }
    if (now < known.waitingAsOf + kRefusalFreshness && known.waiting >= maxQueued) {
      return {true, known.waiting};
    }
    if (!mayAsk) return {false, std::nullopt};
    known.admitted = 0;
  }
  const std::uint64_t waiting = deps_.load.waiting(endpoint);
  Lock lock(mutex_);
  CachedCounts& known = counts_[endpoint];
  known.waitingAsOf = now;
  known.waiting = waiting;
  if (waiting >= maxQueued) return {true, waiting};
  ++known.admitted;
  return {};
}

}  // namespace jobq
