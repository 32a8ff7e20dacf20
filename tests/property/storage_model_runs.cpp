// The model's leases, chunks and outbox.
#include <algorithm>
#include <set>

#include "storage_model.h"

namespace jobq::model {

ClaimedJob StorageModel::take(Entry& entry, const WorkerId& worker, const Holder& holder) {
  Job& job = entry.job;
  job.state = next(job.state, Trigger::claim).value();
  ++job.attempt;
  job.startedAt = now;
  job.workerId = worker;
  entry.deadline = now + entry.spec.policy.executionTimeout;
  if (holder.kind == Holder::Kind::timed) entry.leaseEnd = now + holder.lease;
  ClaimedJob claimed;
  claimed.lease = {job.id, job.attempt};
  claimed.endpoint = job.endpoint;
  claimed.worker = worker;
  claimed.input = entry.spec.input;
  claimed.webhook = entry.spec.webhook;
  claimed.s3Config = entry.spec.s3Config;
  claimed.policy = entry.spec.policy;
  claimed.submittedAt = job.submittedAt;
  claimed.startedAt = now;
  claimed.deadline = std::min(entry.deadline, job.expiresAt);
  return claimed;
}

std::vector<ClaimedJob> StorageModel::claim(std::span<const ClaimWant> wants, const Holder& holder) {
  std::vector<ClaimedJob> claimed;
  for (const ClaimWant& want : wants) {
    for (const WorkerId& worker : want.workers) {
      Entry* entry = first(want.endpoint);
      if (entry == nullptr) break;
      claimed.push_back(take(*entry, worker, holder));
    }
  }
  return claimed;
}

std::vector<LeaseState> StorageModel::renew(std::span<const LeaseRef> leases, Millis lease) {
  std::vector<LeaseState> states;
  for (const LeaseRef& ref : leases) {
    Entry* entry = at(ref.job);
    if (entry == nullptr || entry->job.attempt != ref.attempt || entry->ownerDied) {
      states.push_back(LeaseState::lost);
    } else if (entry->job.state == JobState::inProgress) {
      if (entry->leaseEnd) entry->leaseEnd = now + lease;
      states.push_back(LeaseState::held);
    } else {
      states.push_back(entry->job.state == JobState::cancelled ? LeaseState::cancelled : LeaseState::lost);
    }
  }
  return states;
}

ReportResult StorageModel::finish(const LeaseRef& lease, const Outcome& outcome) {
  Entry* entry = held(lease);
  if (entry == nullptr) return ReportResult::staleAttempt;
  if (const auto* completed = std::get_if<Completed>(&outcome)) {
    end(*entry, Trigger::complete, "", completed->output);
  } else {
    end(*entry, Trigger::fail, std::get<Failed>(outcome).error, std::get<Failed>(outcome).output);
  }
  return ReportResult::accepted;
}

ReportResult StorageModel::progress(const LeaseRef& lease, const std::string& json) {
  Entry* entry = held(lease);
  if (entry == nullptr) return ReportResult::staleAttempt;
  entry->job.progress = json;
  return ReportResult::accepted;
}

void StorageModel::sendBack(Entry& entry, Trigger trigger) {
  entry.job.state = next(entry.job.state, trigger).value();
  ++entry.job.attempt;
  entry.job.progress.clear();
  entry.leaseEnd.reset();
  entry.ownerDied = false;
  entry.chunks.clear();
  entry.taken = 0;
}

std::size_t StorageModel::release(std::span<const LeaseRef> leases) {
  std::size_t released = 0;
  for (const LeaseRef& ref : leases) {
    Entry* entry = held(ref);
    if (entry == nullptr) continue;
    sendBack(*entry, Trigger::release);
    ++released;
  }
  return released;
}

void StorageModel::lose(Entry& entry, SweepResult& swept) {
  Job& job = entry.job;
  swept.stopped.push_back({job.id, job.attempt});
  ++job.losses;
  ++job.retries;
  ++counters_[job.endpoint].retried;
  if (job.losses < entry.spec.maxAttempts) {
    sendBack(entry, Trigger::lose);
    swept.requeuedAt.push_back(job.endpoint);
  } else {
    swept.finished.push_back({job.endpoint, job.id});
    end(entry, Trigger::loseLast, kAnyError, "");
  }
}

SweepResult StorageModel::sweep() {
  SweepResult swept;
  for (const Entry& entry : entries_) {
    if (entry.job.expiresAt > now) continue;
    ++swept.removed;
    if (entry.job.state == JobState::inProgress) swept.stopped.push_back({entry.job.id, entry.job.attempt});
  }
  removeIf([this](const Entry& entry) { return entry.job.expiresAt <= now; });
  for (Entry& entry : entries_) {
    if (entry.job.state != JobState::inProgress) continue;
    if (entry.deadline <= now) {
      swept.stopped.push_back({entry.job.id, entry.job.attempt});
      swept.finished.push_back({entry.job.endpoint, entry.job.id});
      end(entry, Trigger::timeOut, kAnyError, "");
    } else if (entry.ownerDied || (entry.leaseEnd && *entry.leaseEnd <= now)) {
      lose(entry, swept);
    }
  }
  std::erase_if(idempotencyKeys_, [this](const auto& idempotency) { return idempotency.second.endsAt <= now; });
  std::erase_if(outbox_, [this](const Owed& owed) {
    return owed.delivery.state != DeliveryState::owed && owed.settledAt + kDeliveryRecordLife <= now;
  });
  const std::set<EndpointId> once(swept.requeuedAt.begin(), swept.requeuedAt.end());
  swept.requeuedAt.assign(once.begin(), once.end());
  return swept;
}

void StorageModel::processDied() {
  for (Entry& entry : entries_) {
    if (entry.job.state == JobState::inProgress && !entry.leaseEnd) entry.ownerDied = true;
  }
}

ReportResult StorageModel::append(const LeaseRef& lease, const std::vector<Chunk>& chunks) {
  Entry* entry = held(lease);
  if (entry == nullptr) return ReportResult::staleAttempt;
  entry->chunks.insert(entry->chunks.end(), chunks.begin(), chunks.end());
  return ReportResult::accepted;
}

std::optional<ChunkPage> StorageModel::read(const JobKey& key, std::uint64_t offset, std::size_t maxBytes) const {
  const Entry* entry = at(key);
  if (entry == nullptr) return std::nullopt;
  ChunkPage page{{}, offset, false, entry->job.state, entry->job.attempt};
  std::size_t bytes = 0;
  for (; page.next < entry->chunks.size(); ++page.next) {
    const Chunk& chunk = entry->chunks[page.next];
    bytes += chunk.output.size() + chunk.metrics.size();
    if (!page.chunks.empty() && bytes > maxBytes) break;
    page.chunks.push_back(chunk);
  }
  page.more = page.next < entry->chunks.size();
  return page;
}

std::optional<ChunkPage> StorageModel::take(const JobKey& key, std::size_t maxBytes) {
  Entry* entry = at(key);
  if (entry == nullptr) return std::nullopt;
  auto page = read(key, entry->taken, maxBytes);
  entry->taken = page->next;
  return page;
}

ReportResult StorageModel::appendLog(const LeaseRef& lease, std::vector<LogLine> lines) {
  Entry* entry = held(lease);
  if (entry == nullptr) return ReportResult::staleAttempt;
  for (LogLine& line : lines) {
    line.at = now;
    entry->log.push_back(std::move(line));
  }
  if (entry->log.size() > kMaxLogLines) {
    entry->log.erase(entry->log.begin(), entry->log.end() - static_cast<std::ptrdiff_t>(kMaxLogLines));
  }
  return ReportResult::accepted;
}

std::optional<std::vector<LogLine>> StorageModel::readLog(const JobKey& key) const {
  const Entry* entry = at(key);
  return entry != nullptr ? std::optional(entry->log) : std::nullopt;
}

Owed* StorageModel::delivery(std::string_view id) {
  for (Owed& owed : outbox_) {
    const bool outlived = owed.delivery.state != DeliveryState::owed && owed.settledAt + kDeliveryRecordLife <= now;
    if (owed.delivery.id == id && !outlived) return &owed;
  }
  return nullptr;
}

Owed* StorageModel::claimed(const DeliveryClaim& claim) {
  Owed* row = delivery(claim.id);
  const bool isLast =
      row != nullptr && row->delivery.state == DeliveryState::owed && row->delivery.claims == claim.number;
  return isLast ? row : nullptr;
}

DueHosts StorageModel::dueHosts(std::string_view after, std::size_t max) const {
  std::map<std::string, bool> owed;  // by host; true if a delivery is due
  for (const Owed& each : outbox_) {
    const Delivery& delivery = each.delivery;
    if (delivery.state == DeliveryState::owed && delivery.host > after) owed[delivery.host] |= delivery.dueAt <= now;
  }
  DueHosts page;
  std::size_t seen = 0;
  for (const auto& [host, isDue] : owed) {
    if (seen++ == max) return page;
    if (isDue) page.hosts.push_back(host);
    page.next = host;
  }
  page.next.clear();
  return page;
}

std::vector<Delivery> StorageModel::claimDue(std::span<const HostPlaces> hosts, Millis lease) {
  std::vector<std::pair<std::size_t, Owed*>> due;  // with its position among the deliveries of its host
  for (const HostPlaces& host : hosts) {
    std::vector<Owed*> queue;
    for (Owed& owed : outbox_) {
      const Delivery& delivery = owed.delivery;
      if (delivery.state == DeliveryState::owed && delivery.host == host.host && delivery.dueAt <= now) {
        queue.push_back(&owed);
      }
    }
    std::stable_sort(queue.begin(), queue.end(),
                     [](auto* a, auto* b) { return a->delivery.dueAt < b->delivery.dueAt; });
    if (queue.size() > host.places) queue.resize(host.places);
    for (std::size_t turn = 0; turn < queue.size(); ++turn) due.emplace_back(turn, queue[turn]);
  }
  // Deliveries due at the same time come in the order of outbox_, oldest first.
  std::sort(due.begin(), due.end(), [](const auto& a, const auto& b) {
    return std::tie(a.first, a.second->delivery.dueAt, a.second) <
           std::tie(b.first, b.second->delivery.dueAt, b.second);
  });
  std::vector<Delivery> claimed;
  for (const auto& [turn, owed] : due) {
    owed->delivery.dueAt = now + lease;
    ++owed->delivery.claims;
    claimed.push_back(owed->delivery);
  }
  return claimed;
}

bool StorageModel::settle(const DeliveryClaim& claim, DeliveryState state) {
  Owed* row = claimed(claim);
  if (state == DeliveryState::owed || row == nullptr) return false;
  row->delivery.state = state;
  row->settledAt = now;
  return true;
}

bool StorageModel::reschedule(const DeliveryClaim& claim, Millis delay) {
  Owed* row = claimed(claim);
  if (row == nullptr) return false;
  row->delivery.dueAt = now + delay;
  return true;
}

bool StorageModel::recordAttempt(const DeliveryClaim& claim, DeliveryAttempt attempt) {
  Owed* row = claimed(claim);
  if (row == nullptr) return false;
  attempt.at = now;
  auto& attempts = row->delivery.attempts;
  attempts.push_back(std::move(attempt));
  if (attempts.size() > kMaxAttempts) attempts.erase(attempts.begin());
  ++row->delivery.tries;
  return true;
}

bool StorageModel::replay(std::string_view id) {
  Owed* row = delivery(id);
  if (row == nullptr) return false;
  row->delivery.state = DeliveryState::owed;
  row->delivery.dueAt = now;
  row->owedAt = now;
  row->delivery.tries = 0;
  ++row->delivery.claims;
  return true;
}

std::vector<Delivery> StorageModel::list(std::string_view endpoint, std::string_view job, std::size_t limit) const {
  std::vector<Delivery> listed;
  for (const Owed& owed : outbox_) {
    const Delivery& delivery = owed.delivery;
    const bool outlived = delivery.state != DeliveryState::owed && owed.settledAt + kDeliveryRecordLife <= now;
    const bool elsewhere = delivery.job.endpoint != endpoint && !(endpoint.empty() && !job.empty());
    if (outlived || elsewhere || (!job.empty() && delivery.job.id != job)) continue;
    listed.push_back(delivery);
    listed.back().input.clear();
    listed.back().job.output.clear();
    listed.back().job.error = listedError(listed.back().job.error);
    if (!job.empty()) continue;
    for (DeliveryAttempt& attempt : listed.back().attempts) attempt.reply.clear();
  }
  if (job.empty()) std::reverse(listed.begin(), listed.end());
  if (listed.size() > limit) listed.resize(limit);
  return listed;
}

}  // namespace jobq::model
