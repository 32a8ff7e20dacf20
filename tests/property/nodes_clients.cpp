#include "nodes_clients.h"

#include <algorithm>
#include <array>
#include <optional>
#include <utility>
#include <variant>

namespace jobq::model {

JobSpec NodesClients::makeJob(const NodeMove& move) {
  constexpr std::array kTimeouts{5'000, 20'000, 600'000, 600'000, 600'000};
  JobSpec job;
  job.id = "j" + std::to_string(jobs_.size());
  job.endpoint = world_.endpoints[move.a % world_.endpoints.size()]->spec.id;
  job.apiKeyId = "key" + std::to_string(move.b % 2);
  job.policy.lowPriority = move.b % 8 == 0;
  job.policy.executionTimeout = Millis(kTimeouts[move.b / 8 % kTimeouts.size()]);
  job.policy.ttl = Millis(move.b % 11 == 0 ? 15'000 : 86'400'000);
  job.retention = Millis(86'400'000);
  job.maxAttempts = 1 + move.b % 4;
  jobs_.push_back({job.endpoint, job.id});
  return job;
}

// Returns false if the client reads 503.
bool NodesClients::submitAt(NodeProcess& process, JobSpec job, const Endpoint& at, const std::string& idempotencyKey,
                            bool waits) {
  const JobKey key{job.endpoint, job.id};
  std::optional<Idempotency> idempotency;
  if (!idempotencyKey.empty()) idempotency = Idempotency{idempotencyKey, "hash"};
  InsertResult result;
  try {
    if (waits) {
      auto submission = process.jobs().submitAwaited(std::move(job), at, idempotency, Millis(0));
      if (submission.wait) (void)submission.wait->poll({{nullptr, 0}});
      result = std::move(submission.inserted);
    } else {
      result = process.jobs().submit(std::move(job), at, idempotency);
    }
  } catch (const StorageError&) {
    return false;
  }
  const auto* first = std::get_if<Duplicate>(&result);
  const JobId id = first != nullptr ? first->id : key.id;
  world_.judge.jobs.acknowledged(id);
  if (waits) process.await({key.endpoint, id});
  return true;
}

void NodesClients::submit(const NodeMove& move, bool waits) {
  const std::string number = std::to_string(submissions_++);
  const std::string input = "{\"n\":" + number + "}";
  const std::string key = move.b % 3 == 0 ? "key" + number : "";
  for (std::uint32_t tries = 0; tries < 3; ++tries) {
    NodeProcess* const process = cluster_.host(move.node + tries).process();
    if (process == nullptr) continue;
    JobSpec job = makeJob(move);
    job.input = input;
    const Endpoint& at = endpointOf({job.endpoint, job.id});
    if (submitAt(*process, std::move(job), at, key, waits) || key.empty()) return;
  }
}

const JobKey& NodesClients::recent(std::uint32_t number) const {
  return jobs_[jobs_.size() - 1 - number % std::min<std::size_t>(jobs_.size(), 12)];
}

const Endpoint& NodesClients::endpointOf(const JobKey& key) const {
  return **std::ranges::find_if(world_.endpoints, [&](const auto& each) { return each->spec.id == key.endpoint; });
}

void NodesClients::await(const NodeMove& move) {
  NodeProcess* const process = cluster_.host(move.node).process();
  if (process != nullptr && !jobs_.empty()) process->await(recent(move.a));
}

void NodesClients::change(const NodeMove& move) {
  NodeProcess* const process = cluster_.host(move.node).process();
  if (process == nullptr || jobs_.empty()) return;
  const JobKey key = recent(move.a);
  try {
    if (move.act == NodeAct::cancel) {
      const CancelResult result = process->jobs().cancel(key);
      const auto* cancelled = std::get_if<Cancelled>(&result);
      if (cancelled == nullptr) return;
      world_.judge.jobs.cancelled(key.id);
      process->supervisor().stopRun(cancelled->lease);
    } else if (move.act == NodeAct::ttl) {
      (void)process->jobs().setTtl(key, Millis(2'000 + move.b % 20'000));
    } else {
      (void)process->jobs().retry(key, endpointOf(key));
    }
  } catch (const StorageError&) {  // the client reads 503
  }
}

}  // namespace jobq::model
