#include "memory_deliveries.h"

#include <algorithm>
#include <iterator>

#include "memory_fencing.h"

namespace jobq::memory {
namespace {

bool outlived(const DeliveryRow& row, Instant now) {
  return row.state != DeliveryState::owed && row.settledAt + kDeliveryRecordLife <= now;
}

/// Returns whether the owed delivery is due, and was not tried yet or failed at the last try.
bool waits(const DeliveryRow& row, Instant now) {
  return row.dueAt <= now && (row.tries == 0 || row.attempts.empty() || !isDelivered(row.attempts.back()));
}

}  // namespace

void Deliveries::owe(const Row& row, Instant now) {
  DeliveryRow delivery;
  delivery.id = row.spec->id + "." + std::to_string(row.attempt);
  delivery.sequence = ++sequence_;
  delivery.spec = row.spec;
  delivery.host = names_.nameOf(row.spec->webhook);
  delivery.snapshot = found(row);
  DeliveryRow& kept = rows_.insert_or_assign(delivery.id, std::move(delivery)).first->second;
  try {
    endpoints_[kept.spec->endpoint].all.emplace(kept.sequence, &kept);
    setOwed(kept, now);
  } catch (...) {  // no memory
    erase(kept);
    throw;
  }
}

DueHosts Deliveries::dueHosts(Instant now, std::string_view after, std::size_t max) const {
  DueHosts page;
  auto at = due_.upper_bound(after);
  for (std::size_t seen = 0; seen < max && at != due_.end(); ++seen, ++at) {
    if (std::get<Instant>(*at->second.begin()) <= now) page.hosts.push_back(at->first);
  }
  if (at != due_.end() && at != due_.begin()) page.next = std::prev(at)->first;
  return page;
}

std::vector<DeliveryRow*> Deliveries::due(Instant now, std::span<const HostPlaces> hosts) const {
  using Turn = std::tuple<std::size_t, Instant, std::uint64_t, DeliveryRow*>;
  std::vector<Turn> turns;
  for (const HostPlaces& each : hosts) {
    const auto queue = due_.find(each.host);
    if (queue == due_.end()) continue;
    auto next = queue->second.begin();
    for (std::size_t i = 0; i < each.places && next != queue->second.end() && std::get<Instant>(*next) <= now; ++i) {
      const auto& [due, sequence, row] = *next++;
      turns.emplace_back(i, due, sequence, row);
    }
  }
  std::sort(turns.begin(), turns.end());
  std::vector<DeliveryRow*> rows;
  rows.reserve(turns.size());
  for (const Turn& turn : turns) rows.push_back(std::get<DeliveryRow*>(turn));
  return rows;
}

DeliveryRow* Deliveries::find(std::string_view id, Instant now) {
  const auto at = rows_.find(id);
  return at == rows_.end() || outlived(at->second, now) ? nullptr : &at->second;
}

DeliveryRow* Deliveries::findClaimed(const DeliveryClaim& claim) {
  const auto at = rows_.find(claim.id);
  if (at == rows_.end() || at->second.state != DeliveryState::owed) return nullptr;
  return isLastClaim(at->second, claim) ? &at->second : nullptr;
}

bool Deliveries::hasEnded(const DeliveryClaim& claim, DeliveryState state, Instant now) {
  const DeliveryRow* row = find(claim.id, now);
  return row != nullptr && row->state == state && isLastClaim(*row, claim);
}

void Deliveries::setDue(DeliveryRow& row, Instant due) {
  leaveIndexes(row);
  row.state = DeliveryState::owed;
  row.dueAt = due;
  due_[row.host].emplace(due, row.sequence, &row);
  endpoints_[row.spec->endpoint].owed.emplace(row.owedAt, row.sequence, &row);
}

void Deliveries::setOwed(DeliveryRow& row, Instant now) {
  leaveIndexes(row);
  row.owedAt = now;
  setDue(row, now);
}

void Deliveries::finishDelivery(DeliveryRow& row, DeliveryState state, Instant now) {
  leaveIndexes(row);
  row.state = state;
  row.settledAt = now;
  ByTime& settled = endpoints_[row.spec->endpoint].settled;
  settled.emplace(now, row.sequence, &row);
  settled_.emplace(now, row.sequence, &row);
  if (settled.size() > kMaxDeliveriesPerEndpoint) erase(*std::get<DeliveryRow*>(*settled.begin()));
}

std::vector<const DeliveryRow*> Deliveries::ofJob(std::string_view endpoint, std::string_view job, Instant now) const {
  const std::string prefix = std::string(job) + ".";
  std::vector<const DeliveryRow*> rows;
  for (auto at = rows_.lower_bound(prefix); at != rows_.end() && at->first.starts_with(prefix); ++at) {
    if ((endpoint.empty() || at->second.spec->endpoint == endpoint) && !outlived(at->second, now))
      rows.push_back(&at->second);
  }
  std::sort(rows.begin(), rows.end(), [](auto* a, auto* b) { return a->sequence < b->sequence; });
  return rows;
}

std::vector<const DeliveryRow*> Deliveries::ofEndpoint(std::string_view endpoint, std::size_t limit,
                                                       Instant now) const {
  std::vector<const DeliveryRow*> rows;
  const auto of = endpoints_.find(endpoint);
  if (of == endpoints_.end()) return rows;
  for (auto at = of->second.all.rbegin(); at != of->second.all.rend() && rows.size() < limit; ++at) {
    if (!outlived(*at->second, now)) rows.push_back(at->second);
  }
  return rows;
}

std::vector<const DeliveryRow*> Deliveries::ofState(std::string_view endpoint, DeliveryState state, Instant now) const {
  std::vector<const DeliveryRow*> rows;
  for (const auto& [id, row] : rows_) {
    const bool isHere = endpoint.empty() || row.spec->endpoint == endpoint;
    if (isHere && row.state == state && !outlived(row, now)) rows.push_back(&row);
  }
  std::sort(rows.begin(), rows.end(), [](auto* a, auto* b) { return a->sequence > b->sequence; });
  return rows;
}

std::size_t Deliveries::dropOld(Instant now, std::size_t max) {
  std::size_t dropped = 0;
  for (; dropped < max && !settled_.empty(); ++dropped) {
    DeliveryRow& oldest = *std::get<DeliveryRow*>(*settled_.begin());
    if (!outlived(oldest, now)) break;
    erase(oldest);
  }
  return dropped;
}

OwedDeliveries Deliveries::owed(Instant now, std::string_view endpoint) const {
  const auto of = endpoints_.find(endpoint);
  if (of == endpoints_.end() || of->second.owed.empty()) return {};
  return {of->second.owed.size(), now - std::get<Instant>(*of->second.owed.begin())};
}

std::vector<Deliveries::Surplus> Deliveries::surplusOf(const OfEndpoint& endpoint, Instant now,
                                                       const OwedBounds& bounds, std::size_t looks) {
  std::vector<Surplus> surplus;
  for (auto at = endpoint.owed.begin(); at != endpoint.owed.end() && looks > 0; ++at, --looks) {
    const auto& [owedAt, sequence, row] = *at;
    const bool isTooOld = owedAt + bounds.maxAge <= now;
    if (!isTooOld && endpoint.owed.size() - surplus.size() <= bounds.maxCount) break;
    if (waits(*row, now)) surplus.push_back({row, isTooOld});
  }
  return surplus;
}

AbandonResult Deliveries::abandonOwed(Instant now, const OwedBounds& bounds, std::size_t max) {
  AbandonResult result;
  std::size_t left = max;
  for (const auto& [endpoint, of] : endpoints_) {
    if (left == 0) break;
    AbandonedDeliveries done{endpoint, 0, 0};
    for (const Surplus& each : surplusOf(of, now, bounds, max)) {
      if (left == 0) break;
      --left;
      ++(each.isTooOld ? done.tooOld : done.tooMany);
      addAttempt(*each.row, {{}, 0, Millis(0), each.isTooOld ? tooOldReason(bounds) : tooManyReason(bounds), {}}, now);
      finishDelivery(*each.row, DeliveryState::abandoned, now);
    }
    if (done.tooOld + done.tooMany > 0) result.endpoints.push_back(done);
  }
  result.more = left == 0;
  return result;
}

void Deliveries::addAttempt(DeliveryRow& row, DeliveryAttempt attempt, Instant now) {
  attempt.at = now;
  row.attempts.push_back(std::move(attempt));
  if (row.attempts.size() > kMaxAttempts) row.attempts.erase(row.attempts.begin());
}

void Deliveries::leaveIndexes(DeliveryRow& row) {
  const auto line = due_.find(row.host);
  if (line != due_.end()) {
    line->second.erase({row.dueAt, row.sequence, &row});
    if (line->second.empty()) due_.erase(line);
  }
  settled_.erase({row.settledAt, row.sequence, &row});
  const auto of = endpoints_.find(row.spec->endpoint);
  if (of == endpoints_.end()) return;
  of->second.settled.erase({row.settledAt, row.sequence, &row});
  of->second.owed.erase({row.owedAt, row.sequence, &row});
}

void Deliveries::erase(DeliveryRow& row) {
  leaveIndexes(row);
  const auto of = endpoints_.find(row.spec->endpoint);
  if (of != endpoints_.end()) of->second.all.erase(row.sequence);
  if (of != endpoints_.end() && of->second.all.empty()) endpoints_.erase(of);
  rows_.erase(rows_.find(row.id));
}

}  // namespace jobq::memory
