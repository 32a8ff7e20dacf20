#include "memory_deliveries.h"

#include <algorithm>

#include "jobq/url_host.h"

namespace jobq::memory {
namespace {

bool outlived(const DeliveryRow& row, Instant now) {
  return row.state != DeliveryState::owed && row.settledAt + kDeliveryRecordLife <= now;
}

}  // namespace

void Deliveries::owe(const Row& row, Instant now) {
  DeliveryRow delivery;
  delivery.id = row.spec->id + "." + std::to_string(row.attempt);
  delivery.sequence = ++sequence_;
  delivery.spec = row.spec;
  delivery.host = hostOf(row.spec->webhook);
  delivery.snapshot = found(row);
  DeliveryRow& kept = rows_.insert_or_assign(delivery.id, std::move(delivery)).first->second;
  endpoints_[kept.spec->endpoint].all.emplace(kept.sequence, &kept);
  setDue(kept, now);
}

// The beginnings of all hosts' lines, merged: what is owed to a host that is passed over is not looked at.
std::vector<DeliveryRow*> Deliveries::due(Instant now, std::size_t max,
                                          std::span<const std::string> exceptHosts) const {
  std::vector<DeliveryRow*> rows;
  for (const auto& [host, line] : due_) {
    if (std::find(exceptHosts.begin(), exceptHosts.end(), host) != exceptHosts.end()) continue;
    auto next = line.begin();
    for (std::size_t i = 0; i < max && next != line.end() && std::get<Instant>(*next) <= now; ++i, ++next) {
      rows.push_back(std::get<DeliveryRow*>(*next));
    }
  }
  std::sort(rows.begin(), rows.end(),
            [](auto* a, auto* b) { return std::tie(a->dueAt, a->sequence) < std::tie(b->dueAt, b->sequence); });
  if (rows.size() > max) rows.resize(max);
  return rows;
}

DeliveryRow* Deliveries::find(std::string_view id, Instant now) {
  const auto at = rows_.find(id);
  return at == rows_.end() || outlived(at->second, now) ? nullptr : &at->second;
}

void Deliveries::setDue(DeliveryRow& row, Instant due) {
  leaveIndexes(row);
  row.state = DeliveryState::owed;
  row.dueAt = due;
  due_[row.host].emplace(due, row.sequence, &row);
}

void Deliveries::settle(DeliveryRow& row, DeliveryState state, Instant now) {
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

std::size_t Deliveries::dropOld(Instant now, std::size_t max) {
  std::size_t dropped = 0;
  for (; dropped < max && !settled_.empty(); ++dropped) {
    DeliveryRow& oldest = *std::get<DeliveryRow*>(*settled_.begin());
    if (!outlived(oldest, now)) break;
    erase(oldest);
  }
  return dropped;
}

void Deliveries::leaveIndexes(DeliveryRow& row) {
  const auto line = due_.find(row.host);
  if (line != due_.end()) {
    line->second.erase({row.dueAt, row.sequence, &row});
    if (line->second.empty()) due_.erase(line);
  }
  settled_.erase({row.settledAt, row.sequence, &row});
  endpoints_[row.spec->endpoint].settled.erase({row.settledAt, row.sequence, &row});
}

void Deliveries::erase(DeliveryRow& row) {
  leaveIndexes(row);
  const auto of = endpoints_.find(row.spec->endpoint);
  of->second.all.erase(row.sequence);
  if (of->second.all.empty()) endpoints_.erase(of);
  rows_.erase(rows_.find(row.id));
}

}  // namespace jobq::memory
