#include <set>
#include <utility>

#include "judge_ask.h"

namespace jobq::model {
namespace {

constexpr std::size_t kAll = 1'000'000;

// Returns the first difference among all values readable without a change.
std::string difference(Storage& real, const StorageModel& model, const std::set<EndpointId>& endpoints) {
  std::string difference;
  const auto same = [&](const std::string& what, const std::string& said, const std::string& right) {
    if (difference.empty() && said != right) difference = what + " is\n  " + said + "\ninstead of\n  " + right;
  };
  for (const Entry& entry : model.entries()) {
    const JobKey key{entry.job.endpoint, entry.job.id};
    same(key.id, text(real.jobs().find(key)), text(model.find(key)));
    same("the stream of " + key.id, text(real.chunks().read(key, 0, kAll)), text(model.read(key, 0, kAll)));
    same("the log of " + key.id, text(real.chunks().readLog(key)), text(model.readLog(key)));
  }
  const PageWindow all{0, kAll};
  for (const EndpointId& endpoint : endpoints) {
    same("the list of " + endpoint, text(real.jobs().list({endpoint, {}}, all)), text(model.list({endpoint, {}}, all)));
    same("the deliveries of " + endpoint, text(real.outbox().list(endpoint, "", kAll)),
         text(model.list(endpoint, "", kAll)));
    same("what is owed by " + endpoint, text(real.outbox().owed(endpoint)), text(model.owed(endpoint)));
    if (model.hasUnswept(endpoint)) continue;
    same("the counters of " + endpoint, text(real.jobs().counts(endpoint)), text(model.counts(endpoint)));
  }
  return difference;
}

}  // namespace

Judge::Judge(std::shared_ptr<Storage> real) : real_(std::move(real)), worlds_(1) {}
Judge::~Judge() = default;

void Judge::reopen(std::shared_ptr<Storage> real) {
  real_ = std::move(real);
  worlds_.insert(worlds_.end(), doubts_.begin(), doubts_.end());
  doubts_.clear();
  for (StorageModel& world : worlds_) world.processDied();
  failed_ = false;
}

// Drops every world for which `contradiction` returns a text.
void Judge::drop(const std::string& action, const std::function<std::string(StorageModel&)>& contradiction) {
  std::string all;
  std::erase_if(worlds_, [&](StorageModel& world) {
    const std::string said = contradiction(world);
    if (!said.empty()) all += (all.empty() ? "" : "\nor, had the verb happened that failed before,\n") + said;
    return !said.empty();
  });
  if (!worlds_.empty()) return;
  worlds_.emplace_back();
  if (disagreement_.empty()) disagreement_ = action + " " + all;
  throw Disagreement(disagreement_);
}

InsertResult Judge::insert(JobSpec job, const QueuePolicy& policy, const std::optional<Idempotency>& idempotency) {
  endpoints_.insert(job.endpoint);
  return ask(
      "insert of " + job.id, [&] { return real_->jobs().insert(job, policy, idempotency); },
      [&](StorageModel& model) { return model.insert(job, policy, idempotency); });
}

std::optional<IdempotencyRecord> Judge::findByIdempotencyKey(std::string_view endpoint, std::string_view apiKeyId,
                                                             const Idempotency& idempotency) {
  return ask(
      "promise " + idempotency.key, [&] { return real_->jobs().findByIdempotencyKey(endpoint, apiKeyId, idempotency); },
      [&](StorageModel& model) { return model.findByIdempotencyKey(endpoint, apiKeyId, idempotency); });
}

std::optional<Job> Judge::find(const JobKey& key) {
  return ask(
      "find of " + key.id, [&] { return real_->jobs().find(key); },
      [&](StorageModel& model) { return model.find(key); });
}

std::vector<Job> Judge::findFinished(std::span<const JobKey> keys) { return real_->jobs().findFinished(keys); }

CancelResult Judge::cancel(const JobKey& key) {
  return ask(
      "cancel of " + key.id, [&] { return real_->jobs().cancel(key); },
      [&](StorageModel& model) { return model.cancel(key); });
}

RequeueResult Judge::requeue(const JobKey& key, const QueuePolicy& policy) {
  return ask(
      "requeue of " + key.id, [&] { return real_->jobs().requeue(key, policy); },
      [&](StorageModel& model) { return model.requeue(key, policy); });
}

std::size_t Judge::purgeQueued(std::string_view endpoint) {
  return ask(
      "purge", [&] { return real_->jobs().purgeQueued(endpoint); },
      [&](StorageModel& model) { return model.purgeQueued(endpoint); });
}

std::optional<Instant> Judge::setTtl(const JobKey& key, Millis ttl) {
  return ask(
      "ttl of " + key.id, [&] { return real_->jobs().setTtl(key, ttl); },
      [&](StorageModel& model) { return model.setTtl(key, ttl); });
}

JobPage Judge::list(const JobFilter& filter, const PageWindow& window) {
  return ask(
      "list", [&] { return real_->jobs().list(filter, window); },
      [&](StorageModel& model) { return model.list(filter, window); });
}

// Expired jobs before their sweep may still be counted.
EndpointCounts Judge::counts(std::string_view endpoint) {
  const EndpointCounts said = real_->jobs().counts(endpoint);
  drop("counts of " + std::string(endpoint), [&](StorageModel& world) -> std::string {
    world.now = real_->now();
    EndpointCounts right = world.counts(endpoint);
    if (world.hasUnswept(endpoint)) {
      right.inQueue = said.inQueue;
      right.inQueueLow = said.inQueueLow;
      right.inProgress = said.inProgress;
    }
    return text(said) == text(right) ? "" : "said\n  " + text(said) + "\ninstead of\n  " + text(right);
  });
  return said;
}

// The caller adds up the removed jobs of all batches; expired jobs may be among them.
std::size_t Judge::remove(std::string_view endpoint, std::size_t batch) {
  const std::size_t removed = ask(
      "remove", [&] { return real_->jobs().remove(endpoint, batch) < batch; },
      [&](StorageModel& model) {
        model.remove(endpoint);
        return true;
      });
  return removed;
}

std::vector<ClaimedJob> Judge::claim(std::span<const ClaimWant> wants, const Holder& holder) {
  return ask(
      "claim", [&] { return real_->leases().claim(wants, holder); },
      [&](StorageModel& model) { return model.claim(wants, holder); });
}

std::vector<LeaseState> Judge::renew(std::span<const LeaseRef> leases, Millis lease) {
  return ask(
      "renew", [&] { return real_->leases().renew(leases, lease); },
      [&](StorageModel& model) { return model.renew(leases, lease); });
}

ReportResult Judge::finish(const LeaseRef& lease, Outcome outcome) {
  const std::string action = "finish of " + lease.job + " by attempt " + std::to_string(lease.attempt);
  return ask(
      action, [&] { return real_->leases().finish(lease, outcome); },
      [&](StorageModel& model) { return model.finish(lease, outcome); });
}

ReportResult Judge::progress(const LeaseRef& lease, std::string json) {
  return ask(
      "progress of " + lease.job, [&] { return real_->leases().progress(lease, json); },
      [&](StorageModel& model) { return model.progress(lease, json); });
}

std::size_t Judge::release(std::span<const LeaseRef> leases) {
  return ask(
      "release", [&] { return real_->leases().release(leases); },
      [&](StorageModel& model) { return model.release(leases); });
}

SweepResult Judge::sweep(std::size_t max) {
  return ask(
      "sweep", [&] { return real_->leases().sweep(max); }, [&](StorageModel& model) { return model.sweep(); });
}

std::optional<std::size_t> Judge::ahead(const JobKey& key, std::size_t most) {
  return ask(
      "place of " + key.id, [&] { return real_->leases().ahead(key, most); },
      [&](StorageModel& model) { return model.ahead(key, most); });
}

ReportResult Judge::append(const LeaseRef& lease, std::vector<Chunk> chunks) {
  return ask(
      "append to " + lease.job, [&] { return real_->chunks().append(lease, chunks); },
      [&](StorageModel& model) { return model.append(lease, chunks); });
}

std::optional<ChunkPage> Judge::take(const JobKey& key, std::size_t maxBytes) {
  return ask(
      "take from " + key.id, [&] { return real_->chunks().take(key, maxBytes); },
      [&](StorageModel& model) { return model.take(key, maxBytes); });
}

std::optional<ChunkPage> Judge::read(const JobKey& key, std::uint64_t offset, std::size_t maxBytes) {
  return ask(
      "read of " + key.id, [&] { return real_->chunks().read(key, offset, maxBytes); },
      [&](StorageModel& model) { return model.read(key, offset, maxBytes); });
}

ReportResult Judge::appendLog(const LeaseRef& lease, std::vector<LogLine> lines) {
  return ask(
      "log of " + lease.job, [&] { return real_->chunks().appendLog(lease, lines); },
      [&](StorageModel& model) { return model.appendLog(lease, lines); });
}

std::optional<std::vector<LogLine>> Judge::readLog(const JobKey& key) {
  return ask(
      "log of " + key.id, [&] { return real_->chunks().readLog(key); },
      [&](StorageModel& model) { return model.readLog(key); });
}

DueHosts Judge::dueHosts(std::string_view after, std::size_t max) {
  return ask(
      "dueHosts", [&] { return real_->outbox().dueHosts(after, max); },
      [&](StorageModel& model) { return model.dueHosts(after, max); });
}

std::vector<Delivery> Judge::claimDue(std::span<const HostPlaces> hosts, Millis lease) {
  return ask(
      "claimDue", [&] { return real_->outbox().claimDue(hosts, lease); },
      [&](StorageModel& model) { return model.claimDue(hosts, lease); });
}

bool Judge::settle(const DeliveryClaim& claim, DeliveryState state) {
  return ask(
      "settle of " + claim.id, [&] { return real_->outbox().settle(claim, state); },
      [&](StorageModel& model) { return model.settle(claim, state); });
}

bool Judge::reschedule(const DeliveryClaim& claim, Millis delay) {
  return ask(
      "reschedule of " + claim.id, [&] { return real_->outbox().reschedule(claim, delay); },
      [&](StorageModel& model) { return model.reschedule(claim, delay); });
}

bool Judge::recordAttempt(const DeliveryClaim& claim, DeliveryAttempt attempt) {
  return ask(
      "attempt of " + claim.id, [&] { return real_->outbox().recordAttempt(claim, attempt); },
      [&](StorageModel& model) { return model.recordAttempt(claim, attempt); });
}

std::vector<Delivery> Judge::list(std::string_view endpoint, std::string_view job, std::size_t limit) {
  return ask(
      "deliveries of " + std::string(endpoint), [&] { return real_->outbox().list(endpoint, job, limit); },
      [&](StorageModel& model) { return model.list(endpoint, job, limit); });
}

bool Judge::replay(std::string_view id) {
  return ask(
      "replay of " + std::string(id), [&] { return real_->outbox().replay(id); },
      [&](StorageModel& model) { return model.replay(id); });
}

OwedDeliveries Judge::owed(std::string_view endpoint) {
  return ask(
      "what is owed by " + std::string(endpoint), [&] { return real_->outbox().owed(endpoint); },
      [&](StorageModel& model) { return model.owed(endpoint); });
}

AbandonResult Judge::abandonOwed(const OwedBounds& bounds, std::size_t max) {
  return ask(
      "abandonOwed", [&] { return real_->outbox().abandonOwed(bounds, max); },
      [&](StorageModel& model) { return model.abandonOwed(bounds); });
}

void Judge::inspect() {
  drop("everything", [this](StorageModel& world) {
    world.now = real_->now();
    const std::string found = difference(*real_, world, endpoints_);
    return found.empty() ? differenceInRecords(world) : found;
  });
}

}  // namespace jobq::model
