#include "simulation_node.h"

#include <algorithm>
#include <array>

#include "../fault/disk.h"
#include "real_policies.h"

namespace jobq::model {
namespace {

// Moments, leases, retention and ttl; mostly the time of a lease, to get late reports.
constexpr std::array kJumps{1, 40, 700, 1'000, 4'000, 6'000, 11'000, 11'000, 11'000, 61'000, 700'000, 90'000'000};
constexpr Millis kLease{10'000};
constexpr std::uint64_t kReach = 40;  // steps of the disk until an announced power cut

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

Simulation::Simulation(SimulationPlan plan, std::uint64_t seed)
    : plan_(std::move(plan)), random_(seed), clock_(std::make_unique<testkit::ManualClock>()) {
  endpoints_ = {makeEndpoint("kept", &noHandlers, realPolicy("fair"), 1, 3),
                makeEndpoint("scaled", &noHandlers, realPolicy("deadline"), 0, 2),
                makeEndpoint("remote", nullptr, policy_, 0, 3), makeEndpoint("single", &noHandlers, policy_, 1, 1)};
  judge_ = std::make_shared<Judge>(nullptr);
  open();
}

Simulation::~Simulation() = default;

const Endpoint& Simulation::endpoint(std::uint32_t number) const {  // Half of the work is for the remote workers.
  return number % 2 == 0 ? *endpoints_[2] : *endpoints_[number / 2 % endpoints_.size()];
}

void Simulation::check(bool holds, const std::string& what) const {
  if (holds) return;
  if (found_.empty()) found_ = what;  // the core may catch exceptions of an executor
  throw Finding(what);
}

// A starting machine may have another time of day, by an hour at most.
void Simulation::wakeUpAtAnotherTime() {
  constexpr std::array kDrifts{0, 0, 0, -3'600'000, -2'000, 2'000, 3'600'000};
  furthest_ = std::max(furthest_, clock_->now());
  const Instant wanted = clock_->now() + Millis(kDrifts[random_() % kDrifts.size()]);
  auto clock = std::make_unique<testkit::ManualClock>();
  const Instant now = std::max({wanted, furthest_ - Millis(3'600'000), clock->now()});
  clock->advance(now - clock->now());
  clock_ = std::move(clock);
}

// Opens the storage like Application at its start: jobs of a dead process go back into the queue before the first
// claim.
void Simulation::open() {
  for (;;) {
    try {
      std::shared_ptr<Storage> storage = plan_.open(*clock_);
      workshop_ = std::make_unique<Workshop>(*this);
      judge_->reopen(storage);
      if (plan_.judged) judge_->inspect();
      deps_ = std::make_unique<Deps>(*this, plan_.judged ? *judge_ : *storage, "node" + std::to_string(++processes_));
      deps_->sweeper.sweepAll();
      return;
    } catch (const StorageError& error) {
      check(plan_.canCrash && fault::Disk::instance().isCut(), std::string("opening failed: ") + error.what());
      closeAfterCrash();
    }
  }
}

void Simulation::closeAfterCrash() {
  deps_.reset();
  judge_->close();
  fault::Disk::instance().restore(random_);
}

void Simulation::begins(const Run& run) {
  check(lastAttempt_[run.lease.job] < run.lease.attempt, run.lease.job + " began attempt " +
                                                             std::to_string(run.lease.attempt) + " after attempt " +
                                                             std::to_string(lastAttempt_[run.lease.job]));
  check(!succeeded_.contains(run.lease.job), "double run: " + run.lease.job + " was given out after it had succeeded");
  lastAttempt_[run.lease.job] = run.lease.attempt;
}

void Simulation::submit(const Move& move, bool waits) {
  JobSpec job;
  const Endpoint& at = endpoint(move.a);
  job.id = "j" + std::to_string(jobs_.size());
  job.endpoint = at.spec.id;
  job.apiKeyId = move.b % 3 == 0 ? "" : "key" + std::to_string(move.b % 3);
  job.input = "{\"n\":" + std::to_string(move.b) + "}";
  if (move.b % 4 == 0) job.webhook = "http://example.com/" + job.id;
  job.policy.lowPriority = move.b % 8 == 0;
  job.policy.executionTimeout = Millis(move.b % 5 == 0 ? 5'000 : 600'000);
  job.policy.ttl = Millis(move.b % 7 == 0 ? 10'000 : 86'400'000);
  job.maxAttempts = 1 + move.b % 4;
  std::optional<Idempotency> idempotency;
  if (move.b % 6 == 0) idempotency = Idempotency{"p" + std::to_string(move.b / 6 % 4), std::to_string(move.b / 24 % 3)};
  jobs_.push_back({job.endpoint, job.id});
  InsertResult result;
  if (waits) {
    const auto durable = [](const InsertResult&) {};
    const auto stays = [] { return std::stop_token(); };
    result = deps_->jobs.submitAndAwait(std::move(job), at, idempotency, Millis(0), durable, stays).inserted;
  } else {
    result = deps_->jobs.submit(std::move(job), at, idempotency);
  }
  if (!std::holds_alternative<Inserted>(result)) jobs_.pop_back();
}

void Simulation::report(const Run& run, const Move& move) {
  Storage& storage = plan_.judged ? *judge_ : judge_->real();
  const std::string number = std::to_string(move.b);
  if (move.b % 3 == 0) {
    (void)storage.leases().progress(run.lease, number);
  } else if (move.b % 3 == 1) {
    (void)storage.chunks().append(run.lease, {Chunk{number, "", false}});
  } else {
    (void)storage.chunks().appendLog(run.lease, {LogLine{{}, LogLevel::information, number}});
  }
}

// Returns true if the worker is free of its job.
bool Simulation::finish(const Run& run, const Move& move) {
  const bool succeeds = move.b % 4 != 0;
  Outcome outcome = Failed{"no", ""};
  if (succeeds) outcome = Completed{std::to_string(move.b)};
  const ReportResult fenced = deps_->reports.finish(run.lease, std::move(outcome), false);
  if (fenced == ReportResult::staleAttempt) return true;
  check(lastAttempt_[run.lease.job] == run.lease.attempt,
        "double run: the result of attempt " + std::to_string(run.lease.attempt) + " of " + run.lease.job +
            " was accepted while attempt " + std::to_string(lastAttempt_[run.lease.job]) + " runs");
  if (succeeds) check(succeeded_.insert(run.lease.job).second, "double run: " + run.lease.job + " succeeded twice");
  return true;
}

// Finishes like a worker thread: the outcome is kept until stored or stale, then the worker is free.
void Simulation::finishLocal(std::size_t which, const Move& move) {
  const Run run = workshop_->running[which];
  finish(run, move);
  workshop_->running.erase(workshop_->running.begin() + static_cast<std::ptrdiff_t>(which));
  workshop_->idle.insert({run.endpoint, run.worker});
  workshop_->events->workerReady(run.endpoint, run.worker);
}

void Simulation::finishRemote(std::size_t which, const Move& move) {
  const Run run = remote_[which];
  finish(run, move);
  remote_.erase(remote_.begin() + static_cast<std::ptrdiff_t>(which));
}

void Simulation::remoteClaim(const Move& move) {
  Storage& storage = plan_.judged ? *judge_ : judge_->real();
  std::vector<WorkerId> workers;
  for (std::uint32_t i = 0; i <= move.a % 2; ++i) workers.push_back("remote" + std::to_string(i));
  const std::vector wants{ClaimWant{"remote", workers}};
  for (const ClaimedJob& job : storage.leases().claim(wants, Holder{"far", Holder::Kind::timed, kLease})) {
    Run run{job.lease, job.endpoint, ""};
    begins(run);
    remote_.push_back(std::move(run));
  }
}

void Simulation::change(const Move& move) {
  if (jobs_.empty()) return;
  const JobKey& key = jobs_[jobs_.size() - 1 - move.a % std::min<std::size_t>(jobs_.size(), 12)];
  if (move.act == Act::cancel) {
    const CancelResult result = deps_->jobs.cancel(key);
    const auto* cancelled = std::get_if<Cancelled>(&result);
    if (cancelled != nullptr && cancelled->wasRunning) deps_->supervisor.stopRun(cancelled->lease);
    return;
  }
  if (move.act == Act::ttl) {
    (void)deps_->jobs.setTtl(key, Millis(kJumps[move.b % kJumps.size()]));
    return;
  }
  if (move.act == Act::stream) {
    const auto offset = move.b % 2 == 0 ? std::nullopt : std::optional<std::uint64_t>(move.b / 2 % 3);
    (void)deps_->jobs.chunks({key, offset, 1 + move.b % 9});
    return;
  }
  const auto at =
      std::find_if(endpoints_.begin(), endpoints_.end(), [&](auto& each) { return each->spec.id == key.endpoint; });
  const RequeueResult result = deps_->jobs.retry(key, **at);
  if (std::holds_alternative<Requeued>(result)) ++lastAttempt_[key.id];
}

// An orderly stop: no new claims, running jobs go back into the queue.
void Simulation::restart() {
  deps_->dispatcher.stop();
  for (const Run& run : workshop_->running) deps_->reports.release({run.lease}, run.endpoint);
  deps_.reset();
  judge_->close();
  wakeUpAtAnotherTime();
  open();
}

void Simulation::act(const Move& move) {
  Workshop& shop = *workshop_;
  switch (move.act) {
    case Act::submit: return submit(move, false);
    case Act::submitAndClaim: return submit(move, true);
    case Act::turn: deps_->dispatcher.runPassIfDue(); return;
    case Act::start: {
      if (shop.starting.empty()) return;
      const auto [endpoint, worker] = shop.starting.front();
      shop.starting.pop_front();
      if (move.b % 10 == 0) return shop.events->workerGone(endpoint, worker, "it does not start today");
      shop.idle.insert({endpoint, worker});
      return shop.events->workerReady(endpoint, worker);
    }
    case Act::leave: {
      if (shop.leaving.empty()) return;
      const auto [endpoint, worker] = shop.leaving.front();
      shop.leaving.pop_front();
      return shop.events->workerGone(endpoint, worker, "");
    }
    case Act::report:
      if (!shop.running.empty() && move.a % 2 == 0) return report(shop.running[move.a % shop.running.size()], move);
      if (!remote_.empty()) report(remote_[move.a % remote_.size()], move);
      return;
    case Act::finish:
      if (!shop.running.empty()) finishLocal(move.a % shop.running.size(), move);
      return;
    case Act::remoteClaim: return remoteClaim(move);
    case Act::remoteRenew: {
      if (remote_.empty()) return;
      Storage& storage = plan_.judged ? *judge_ : judge_->real();
      (void)storage.leases().renew(std::vector{remote_[move.a % remote_.size()].lease}, kLease);
      return;
    }
    case Act::remoteFinish:
      if (!remote_.empty()) finishRemote(move.a % remote_.size(), move);
      return;
    case Act::cancel:
    case Act::retry:
    case Act::ttl:
    case Act::stream: return change(move);
    case Act::purge: (void)deps_->jobs.purge(endpoint(move.a).spec.id); return;
    case Act::sweep: return deps_->sweeper.sweepAll();
    case Act::deliver: return deliver(move);
    case Act::advance: clock_->advance(Millis(kJumps[move.a % kJumps.size()])); return;
    case Act::stop: return restart();
    case Act::crash: fault::Disk::instance().cutAt(1 + move.a % kReach); return;
  }
}

// A dead machine ends its workers; remote workers live on.
void Simulation::recover() {
  if (!plan_.canCrash || !fault::Disk::instance().isCut()) return;
  closeAfterCrash();
  wakeUpAtAnotherTime();
  open();
}

// Ensures that the last power cut has come or will not come, even a cut during the checkpoint after the last commit.
void Simulation::endCrashes() {
  if (!plan_.canCrash) return;
  fault::Disk::instance().cutAt(0);
  try {
    judge_->real().check();
  } catch (const StorageError&) {
    check(fault::Disk::instance().isCut(), "the storage takes no write");
  }
  recover();
}

void Simulation::play(const std::vector<Move>& moves) {
  for (const Move& move : moves) {
    try {
      act(move);
    } catch (const StorageError& error) {
      check(plan_.canCrash && fault::Disk::instance().isCut(), std::string("the storage failed: ") + error.what());
    }
    if (!judge_->disagreement().empty()) throw Disagreement(judge_->disagreement());
    recover();
    checkWorkers();
  }
  settle();
}

}  // namespace jobq::model
