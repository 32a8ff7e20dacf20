#include "simulation_world.h"

#include <array>
#include <utility>

#include "jobq/job_handler.h"
#include "real_policies.h"

namespace jobq::model {
namespace {

/// No worker of the simulation runs a handler.
class NoHandlers final : public HandlerFactory {
  std::unique_ptr<JobHandler> make(const HandlerEnv&) override { throw JobFailed("nobody works here"); }
};
NoHandlers noHandlers;

EndpointPtr makeEndpoint(const EndpointId& id, HandlerFactory* handler, const QueuePolicy& policy, std::uint32_t min,
                         std::uint32_t max) {
  auto endpoint = std::make_shared<Endpoint>();
  endpoint->spec.id = id;
  endpoint->spec.maxStuck = 3;
  if (handler != nullptr) {
    auto release = std::make_shared<Release>();
    release->handler = handler;
    endpoint->release = std::move(release);
  }
  endpoint->spec.scaling = {max == 2 ? ScalerType::queueDelay : ScalerType::requestCount, 1};
  endpoint->policy = &policy;
  endpoint->spec.workersMin = min;
  endpoint->spec.workersMax = max;
  return endpoint;
}

}  // namespace

void RunRules::check(bool holds, const std::string& what) {
  if (holds) return;
  note(what);
  throw Finding(what);
}

void RunRules::note(std::string_view what) {
  if (found_.empty()) found_ = what;
}

void RunRules::begins(const Run& run) {
  const bool wasUndone = undoable_.erase(run.lease.job) == 1;
  if (wasUndone) succeeded_.erase(run.lease.job);
  const std::uint32_t first = lastAttempt_[run.lease.job] + (wasUndone ? 0 : 1);
  check(first <= run.lease.attempt, run.lease.job + " began attempt " + std::to_string(run.lease.attempt) +
                                        " after attempt " + std::to_string(lastAttempt_[run.lease.job]));
  check(!succeeded_.contains(run.lease.job), "double run: " + run.lease.job + " was given out after it had succeeded");
  lastAttempt_[run.lease.job] = run.lease.attempt;
  if (!run.worker.empty()) runningHere_.insert_or_assign(run.lease.job, run.endpoint);
}

void RunRules::losePower() {
  undoable_.merge(runningHere_);
  undoable_.merge(untold_);
  runningHere_.clear();
  untold_.clear();
}

void RunRules::stopInOrder() {
  runningHere_.clear();
  untold_.clear();
}

void RunRules::told(const JobId& job, JobState state) {
  untold_.erase(job);
  const bool wasUndone = undoable_.erase(job) == 1 && state != JobState::completed;
  if (wasUndone) succeeded_.erase(job);
  check(state == JobState::completed || !succeeded_.contains(job),
        "a caller is told that " + job + " is " + std::string(nameOf(state)) + " after it had succeeded");
}

void RunRules::retried(const JobId& job) {
  told(job, JobState::failed);
  ++lastAttempt_[job];
}

void RunRules::accepted(const Run& run, bool succeeds) {
  check(lastAttempt_[run.lease.job] == run.lease.attempt,
        "double run: the result of attempt " + std::to_string(run.lease.attempt) + " of " + run.lease.job +
            " was accepted while attempt " + std::to_string(lastAttempt_[run.lease.job]) + " runs");
  runningHere_.erase(run.lease.job);
  if (!run.worker.empty() && run.webhook.empty()) untold_.insert_or_assign(run.lease.job, run.endpoint);
  if (succeeds) check(succeeded_.insert(run.lease.job).second, "double run: " + run.lease.job + " succeeded twice");
}

Millis jumpOf(std::uint32_t number) {
  constexpr std::array kJumps{1, 40, 700, 1'000, 4'000, 6'000, 11'000, 11'000, 11'000, 61'000, 700'000, 90'000'000};
  return Millis(kJumps[number % kJumps.size()]);
}

World::World(SimulationPlan how, std::uint64_t seed)
    : plan(std::move(how)), random(seed), clock(std::make_unique<testkit::ManualClock>()) {
  endpoints = {makeEndpoint("kept", &noHandlers, realPolicy("fair"), 1, 3),
               makeEndpoint("scaled", &noHandlers, realPolicy("deadline"), 0, 2),
               makeEndpoint("remote", nullptr, policy, 0, 3), makeEndpoint("single", &noHandlers, policy, 1, 1)};
  judge = std::make_shared<Judge>(nullptr);
}

const EndpointPtr& World::endpoint(std::uint32_t number) const {
  return number % 2 == 0 ? endpoints[2] : endpoints[number / 2 % endpoints.size()];
}

}  // namespace jobq::model
