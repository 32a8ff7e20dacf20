#include "clients.h"

#include <algorithm>
#include <array>
#include <memory>
#include <string>
#include <utility>
#include <variant>

namespace jobq::model {

JobSpec Clients::makeJob(const Move& move) {
  constexpr std::array kTimeouts{5'000, 20'000, 600'000, 600'000, 600'000};
  JobSpec job;
  job.id = "j" + std::to_string(jobs_.size());
  job.endpoint = world_.endpoint(move.a).spec.id;
  job.apiKeyId = move.b % 3 == 0 ? "" : "key" + std::to_string(move.b % 3);
  job.input = "{\"n\":" + std::to_string(submissions_) + "}";
  if (move.b % 4 == 0) job.webhook = "http://example.com/" + job.id;
  job.policy.lowPriority = move.b % 8 == 0;
  job.policy.executionTimeout = Millis(kTimeouts[move.b / 8 % kTimeouts.size()]);
  job.policy.ttl = Millis(move.b % 11 == 0 ? 15'000 : 86'400'000);
  if (world_.plan.isShared()) job.retention = Millis(86'400'000);  // no schedule lasts so long
  job.maxAttempts = 1 + move.b % 4;
  jobs_.push_back({job.endpoint, job.id});
  return job;
}

// At several nodes each key is new, so a job with an input of another submission is a finding.
std::optional<Idempotency> Clients::makeKey(const Move& move) const {
  if (world_.plan.isShared()) {
    if (move.b % 3 != 0) return std::nullopt;
    return Idempotency{"key" + std::to_string(submissions_), "hash"};
  }
  if (move.b % 6 != 0) return std::nullopt;
  return Idempotency{"p" + std::to_string(move.b / 6 % 4), std::to_string(move.b / 24 % 3)};
}

// A later submission is a turn of the reactor thread: the judge tells the result before submit() returns, and the
// announcement ends the turn.
InsertResult Clients::submitAt(Process& process, JobSpec job, const std::optional<Idempotency>& idempotency,
                               const Move& move) {
  if (move.act == Act::submitAndWait) return submitAwaited(process, std::move(job), idempotency, move);
  const EndpointPtr& at = world_.endpointOf({job.endpoint, job.id});
  LaterSubmissions& later = process.later();
  if (move.b % 2 != 0 || !world_.plan.judged || !later.arePossible()) {
    return process.jobs().submit(std::move(job), *at, idempotency);
  }
  const auto submission = later.submit(std::move(job), at, idempotency);
  auto result = submission->poll({nullptr, 0});
  later.announce();
  return std::move(result.value());
}

// Half of the clients of one node leave at once. A poll of a wait that is over stores the job.
InsertResult Clients::submitAwaited(Process& process, JobSpec job, const std::optional<Idempotency>& idempotency,
                                    const Move& move) {
  const bool isShared = world_.plan.isShared();
  const JobKey key{job.endpoint, job.id};
  const Millis time = !isShared && move.b % 4 < 2 ? Millis(0) : kLongestWait;
  auto submission = process.jobs().submitAwaited(std::move(job), *world_.endpointOf(key), idempotency, time);
  if (submission.wait && (isShared || move.b % 2 == 0)) {
    const auto* first = std::get_if<Duplicate>(&submission.inserted);
    process.await({key.endpoint, first == nullptr ? key.id : first->id}, std::move(submission.wait));
  }
  return std::move(submission.inserted);
}

void Clients::submit(const Move& move) {
  ++submissions_;
  const std::optional<Idempotency> idempotency = makeKey(move);
  for (std::uint32_t tries = 0; tries < 3; ++tries) {
    Process* const process = cluster_.host(move.node + tries).process();
    if (process == nullptr) continue;
    JobSpec job = makeJob(move);
    const JobId id = job.id;
    try {
      const InsertResult result = submitAt(*process, std::move(job), idempotency, move);
      const auto* first = std::get_if<Duplicate>(&result);
      return world_.rules.jobs.acknowledged(first == nullptr ? id : first->id);
    } catch (const StorageError& error) {  // the client reads 503
      world_.failed(error);
      if (!idempotency || !world_.plan.isShared()) return;
    }
  }
}

const JobKey& Clients::recent(std::uint32_t number) const {
  return jobs_[jobs_.size() - 1 - number % std::min<std::size_t>(jobs_.size(), 12)];
}

void Clients::await(const Move& move) {
  Process* const process = cluster_.host(move.node).process();
  if (process == nullptr || jobs_.empty()) return;
  const JobKey& key = recent(move.a);
  process->await(key, process->jobs().await(key, kLongestWait));
}

void Clients::change(const Move& move) {
  Process* const process = cluster_.host(move.node).process();
  if (process == nullptr || jobs_.empty()) return;
  const JobKey key = recent(move.a);
  try {
    switch (move.act) {
      case Act::cancel: return cancel(*process, key);
      case Act::ttl: return (void)process->jobs().setTtl(key, jumpOf(move.b));
      case Act::stream: return stream(*process, key, move.b);
      default: (void)process->jobs().retry(key, *world_.endpointOf(key));
    }
  } catch (const StorageError& error) {  // the client reads 503
    world_.failed(error);
  }
}

void Clients::cancel(Process& process, const JobKey& key) {
  const CancelResult result = process.jobs().cancel(key);
  const auto* cancelled = std::get_if<Cancelled>(&result);
  if (cancelled == nullptr) return;
  world_.rules.jobs.cancelled(key.id);
  process.supervisor().stopRun(cancelled->lease);
}

void Clients::stream(Process& process, const JobKey& key, std::uint32_t number) {
  const auto offset = number % 2 == 0 ? std::nullopt : std::optional<std::uint64_t>(number / 2 % 3);
  const auto page = process.jobs().chunks({key, offset, 1 + number % 9});
  if (page) world_.rules.jobs.told(key.id, page->state);
}

}  // namespace jobq::model
