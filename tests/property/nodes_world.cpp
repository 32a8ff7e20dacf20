#include "nodes_world.h"

#include <algorithm>
#include <stdexcept>

#include "jobq/job_handler.h"
#include "real_policies.h"

namespace jobq::model {
namespace {

constexpr Millis kFarthest{3'600'000};

/// No worker of the simulation runs a handler.
class NoHandlers final : public HandlerFactory {
  std::unique_ptr<JobHandler> make(const HandlerEnv&) override { throw JobFailed("nobody works here"); }
};
NoHandlers noHandlers;

EndpointPtr makeEndpoint(const EndpointId& id, const QueuePolicy& policy, std::uint32_t min, std::uint32_t max) {
  auto endpoint = std::make_shared<Endpoint>();
  endpoint->spec.id = id;
  auto release = std::make_shared<Release>();
  release->handler = &noHandlers;
  endpoint->release = std::move(release);
  endpoint->spec.scaling = {max == 2 ? ScalerType::queueDelay : ScalerType::requestCount, 1};
  endpoint->policy = &policy;
  endpoint->spec.workersMin = min;
  endpoint->spec.workersMax = max;
  return endpoint;
}

}  // namespace

void HostClock::waitUntil(Mutex&, Condition&, Instant) { throw std::logic_error("a simulated thread waits"); }

void HostClock::stepHost(Millis step) { hostOffset_ = std::clamp(hostOffset_ + step, -kFarthest, kFarthest); }

void HostClock::follow(Millis passed) {
  if (hostOffset_ > offset_) offset_ += std::min<Millis>(hostOffset_ - offset_, passed / 10);
}

Chance::result_type Chance::operator()() {
  state_ += 0x9e3779b97f4a7c15ULL;
  std::uint64_t mixed = state_;
  mixed = (mixed ^ (mixed >> 30)) * 0xbf58476d1ce4e5b9ULL;
  mixed = (mixed ^ (mixed >> 27)) * 0x94d049bb133111ebULL;
  return mixed ^ (mixed >> 31);
}

void Chance::restart(Instant now) {
  state_ = seed_ * 0xff51afd7ed558ccdULL ^ static_cast<std::uint64_t>(toEpochMillis(now));
  state_ = (*this)();
}

NodesWorld::NodesWorld(Twin twin, std::uint64_t seed) : flaws(flawsOf(twin)), random(seed) {
  endpoints = {makeEndpoint("kept", realPolicy("fair"), 1, 3), makeEndpoint("scaled", realPolicy("deadline"), 0, 2),
               makeEndpoint("single", policy, 1, 1)};
  store = openStore(twin, storageClock, silence);
  broken = breakStorage(twin, *store, storageClock);
  storage = std::make_unique<ObservedStorage>(broken ? *broken : *store, judge);
}

}  // namespace jobq::model
