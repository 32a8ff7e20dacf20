#include <algorithm>
#include <array>
#include <deque>
#include <optional>
#include <utility>
#include <variant>

#include "jobq/transitions.h"
#include "simulation_callers.h"

namespace jobq::model {
namespace {

constexpr Millis kWait{600'000};
constexpr std::size_t kCalls = 8;  // number of waiting calls

// Returns the job that a call with the result waits for.
const JobId& awaitedBy(const InsertResult& result, const JobId& submitted) {
  const auto* first = std::get_if<Duplicate>(&result);
  return first == nullptr ? submitted : first->id;
}

}  // namespace

void Clients::submit(const Move& move, bool waits) {
  JobSpec job;
  const EndpointPtr& at = world_.endpoint(move.a);
  job.id = "j" + std::to_string(jobs_.size());
  job.endpoint = at->spec.id;
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
    const JobId id = job.id;
    const Millis time = move.b % 4 < 2 ? Millis(0) : kWait;
    auto submission = machine_.process().jobs.submitAwaited(std::move(job), *at, idempotency, time);
    result = std::move(submission.inserted);
    // Half of the clients leave at once. A poll of a wait that is over stores the job.
    if (submission.wait && move.b % 2 == 0) {
      wait({++calls_, {at->spec.id, awaitedBy(result, id)}, world_.clock->now() + time, std::move(submission.wait)});
    }
  } else if (move.b % 2 == 0 && world_.plan.judged && machine_.process().later.arePossible()) {
    result = submitLater(std::move(job), at, std::move(idempotency));
  } else {
    result = machine_.process().jobs.submit(std::move(job), *at, idempotency);
  }
  if (!std::holds_alternative<Inserted>(result)) jobs_.pop_back();
}

// A turn of the reactor thread: the judge tells the result before submit() returns, and the announcement ends the turn.
InsertResult Clients::submitLater(JobSpec job, const EndpointPtr& at, std::optional<Idempotency> idempotency) {
  LaterSubmissions& later = machine_.process().later;
  const auto submission = later.submit(std::move(job), at, std::move(idempotency));
  auto result = submission->poll({nullptr, 0});
  later.announce();
  return std::move(result.value());
}

const JobKey& Clients::recent(std::uint32_t number) const {
  return jobs_[jobs_.size() - 1 - number % std::min<std::size_t>(jobs_.size(), 12)];
}

void Clients::await(const Move& move) {
  if (jobs_.empty()) return;
  const JobKey& key = recent(move.a);
  wait({++calls_, key, world_.clock->now() + kWait, machine_.process().jobs.await(key, kWait)});
}

void Clients::wait(WaitingCall call) {
  if (const auto ended = call.wait->poll({{&machine_.process().resumed, call.id}})) {
    if (ended->job && terminal(ended->job->state)) world_.rules.told(call.job.id, ended->job->state);
    return;
  }
  std::deque<WaitingCall>& calls = machine_.process().calls;
  calls.push_back(std::move(call));
  if (calls.size() > kCalls) calls.pop_front();
}

std::vector<JobKey> Clients::resume() {
  Process& process = machine_.process();
  std::deque<WaitingCall> calls = std::exchange(process.calls, {});
  for (WaitingCall& call : calls) {
    if (process.resumed.extractResumed(call.id) || call.until <= world_.clock->now()) {
      wait(std::move(call));
    } else {
      process.calls.push_back(std::move(call));
    }
  }
  std::vector<JobKey> waiting;
  for (const WaitingCall& call : process.calls) waiting.push_back(call.job);
  return waiting;
}

void Clients::change(const Move& move) {
  if (jobs_.empty()) return;
  const JobKey& key = recent(move.a);
  if (move.act == Act::cancel) {
    const CancelResult result = machine_.process().jobs.cancel(key);
    const auto* cancelled = std::get_if<Cancelled>(&result);
    if (cancelled != nullptr) machine_.process().supervisor.stopRun(cancelled->lease);
    return;
  }
  if (move.act == Act::ttl) {
    (void)machine_.process().jobs.setTtl(key, jumpOf(move.b));
    return;
  }
  if (move.act == Act::stream) {
    const auto offset = move.b % 2 == 0 ? std::nullopt : std::optional<std::uint64_t>(move.b / 2 % 3);
    const auto page = machine_.process().jobs.chunks({key, offset, 1 + move.b % 9});
    if (page && terminal(page->state)) world_.rules.told(key.id, page->state);
    return;
  }
  const auto at = std::find_if(world_.endpoints.begin(), world_.endpoints.end(),
                               [&](auto& each) { return each->spec.id == key.endpoint; });
  const RequeueResult result = machine_.process().jobs.retry(key, **at);
  if (std::holds_alternative<Requeued>(result)) world_.rules.retried(key.id);
}

}  // namespace jobq::model
