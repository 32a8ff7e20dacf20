#include "world.h"

#include <algorithm>
#include <array>
#include <optional>
#include <random>
#include <utility>

#include "../../fault/disk.h"
#include "jobq/job_handler.h"
#include "observer.h"
#include "real_policies.h"
#include "testkit/wait_for.h"

namespace jobq::model {
namespace {

constexpr Millis kFarthest{3'600'000};

/// No worker of the simulation runs a handler.
class NoHandlers final : public HandlerFactory {
  std::unique_ptr<JobHandler> make(const HandlerEnv&) override { throw JobFailed("nobody works here"); }
};
NoHandlers noHandlers;

EndpointPtr makeEndpoint(EndpointId id, const QueuePolicy& policy, std::uint32_t min, std::uint32_t max) {
  auto endpoint = std::make_shared<Endpoint>();
  if (id != kRemote) {
    auto release = std::make_shared<Release>();
    release->handler = &noHandlers;
    endpoint->release = std::move(release);
  }
  endpoint->spec.id = std::move(id);
  endpoint->spec.maxStuck = 3;
  endpoint->spec.scaling = {max == 2 ? ScalerType::queueDelay : ScalerType::requestCount, 1};
  endpoint->policy = &policy;
  endpoint->spec.workersMin = min;
  endpoint->spec.workersMax = max;
  return endpoint;
}

}  // namespace

void HostClock::waitUntil(Mutex& mutex, Condition& condition, Instant) {
  condition.waitFor(mutex, testkit::kHangDeadline);
}

void HostClock::stepHost(Millis step) { hostOffset_ = std::clamp(hostOffset_ + step, -kFarthest, kFarthest); }

void HostClock::follow(Millis passed) {
  const Millis offset = offset_;
  if (hostOffset_ > offset) offset_ = offset + std::min<Millis>(hostOffset_ - offset, passed / 10);
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

World::World(Plan how, std::uint64_t seed) : plan(std::move(how)), random(seed), rules(time, plan.isShared()) {
  endpoints = {makeEndpoint("kept", realPolicy("fair"), 1, 3), makeEndpoint("scaled", realPolicy("deadline"), 0, 2),
               makeEndpoint("single", policy, 1, 1)};
  if (!plan.isShared()) {
    endpoints.push_back(makeEndpoint(std::string(kRemote), policy, 0, 3));
    return;
  }
  store = openStore(plan.twin, storageClock, silence);
  if (plan.twin != Twin::none) broken_ = breakStorage(plan.twin, *store, storageClock);
  observed_ = observe(broken_ ? *broken_ : *store, rules);
}

const Endpoint& World::endpoint(std::uint32_t number) const {
  if (plan.isShared()) return *endpoints[number % endpoints.size()];
  return number % 2 == 0 ? *endpoints.back() : *endpoints[number / 2 % endpoints.size()];
}

const EndpointPtr& World::endpointOf(const JobKey& key) const {
  return *std::ranges::find_if(endpoints, [&](const auto& each) { return each->spec.id == key.endpoint; });
}

void World::open(Clock& clock) {
  std::shared_ptr<Storage> opened = plan.open(clock);
  judge_.reopen(std::move(opened), std::exchange(formerEnd_, FormerEnd::process));
  inspect();
  observed_ = observe(plan.judged ? judge_ : judge_.compared().real(), rules);
  for (const JobKey& key : rules.jobs.undoable()) {
    const std::optional<Job> job = storage().jobs().find(key);
    if (job) rules.jobs.told(key.id, job->state);
  }
}

void World::close() {
  observed_.reset();
  judge_.close();
  if (!isCut()) return rules.jobs.noteSynced();
  std::mt19937_64 torn(random());
  fault::Disk::instance().restore(torn);
  rules.jobs.losePower();
  formerEnd_ = FormerEnd::power;
}

bool World::isCut() const { return plan.losesPower() && fault::Disk::instance().isCut(); }

void World::failed(const StorageError& error) {
  if (!plan.isShared() && !isCut()) rules.findings.note(std::string("the storage failed: ") + error.what());
}

void World::throwFinding() const {
  if (!judge_.disagreement().empty()) throw Finding(judge_.disagreement());
  if (!rules.findings.found.empty()) throw Finding(rules.findings.found);
}

void World::inspect() {
  if (!plan.isShared() && plan.judged) judge_.inspect();
}

Millis jumpOf(std::uint32_t number) {
  constexpr std::array kJumps{1, 40, 700, 1'000, 4'000, 6'000, 11'000, 11'000, 11'000, 61'000, 700'000, 90'000'000};
  return Millis(kJumps[number % kJumps.size()]);
}

}  // namespace jobq::model
