#include "outbox_model.h"

#include <algorithm>
#include <map>
#include <set>
#include <tuple>
#include <utility>

namespace jobq::model {
namespace {

bool isOf(const Owed& owed, std::string_view endpoint) {
  return owed.delivery.state == DeliveryState::owed && owed.delivery.job.endpoint == endpoint;
}

/// Returns true if the owed delivery is due and its last try was not delivered.
bool waits(const Delivery& delivery, Instant now) {
  return delivery.dueAt <= now && (delivery.tries == 0 || !isDelivered(delivery.attempts.back()));
}

}  // namespace

Owed* OutboxModel::delivery(std::string_view id) {
  for (Owed& owed : state_.outbox) {
    const bool outlived =
        owed.delivery.state != DeliveryState::owed && owed.settledAt + kDeliveryRecordLife <= state_.now;
    if (owed.delivery.id == id && !outlived) return &owed;
  }
  return nullptr;
}

Owed* OutboxModel::claimed(const DeliveryClaim& claim) {
  Owed* row = delivery(claim.id);
  const bool isLast =
      row != nullptr && row->delivery.state == DeliveryState::owed && row->delivery.claims == claim.number;
  return isLast ? row : nullptr;
}

DueHosts OutboxModel::dueHosts(std::string_view after, std::size_t max) const {
  std::map<std::string, bool> owed;  // by host; true if a delivery is due
  for (const Owed& each : state_.outbox) {
    const Delivery& delivery = each.delivery;
    if (delivery.state != DeliveryState::owed || delivery.host <= after) continue;
    owed[delivery.host] |= delivery.dueAt <= state_.now;
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

std::vector<Delivery> OutboxModel::claimDue(std::span<const HostPlaces> hosts, Millis lease) {
  std::vector<std::pair<std::size_t, Owed*>> due;  // with the position among the deliveries of the host
  for (const HostPlaces& host : hosts) {
    std::vector<Owed*> queue;
    for (Owed& owed : state_.outbox) {
      const Delivery& delivery = owed.delivery;
      if (delivery.state == DeliveryState::owed && delivery.host == host.host && delivery.dueAt <= state_.now) {
        queue.push_back(&owed);
      }
    }
    std::stable_sort(queue.begin(), queue.end(),
                     [](auto* a, auto* b) { return a->delivery.dueAt < b->delivery.dueAt; });
    if (queue.size() > host.places) queue.resize(host.places);
    for (std::size_t turn = 0; turn < queue.size(); ++turn) due.emplace_back(turn, queue[turn]);
  }
  // Deliveries due at the same time come in the order of the outbox, oldest first.
  std::sort(due.begin(), due.end(), [](const auto& a, const auto& b) {
    return std::tie(a.first, a.second->delivery.dueAt, a.second) <
           std::tie(b.first, b.second->delivery.dueAt, b.second);
  });
  std::vector<Delivery> claimed;
  for (const auto& [turn, owed] : due) {
    owed->delivery.dueAt = state_.now + lease;
    ++owed->delivery.claims;
    claimed.push_back(owed->delivery);
  }
  return claimed;
}

bool OutboxModel::finishDelivery(const DeliveryClaim& claim, DeliveryState state) {
  if (state == DeliveryState::owed) return false;
  Owed* row = claimed(claim);
  if (row == nullptr) {
    const Owed* ended = delivery(claim.id);
    return ended != nullptr && ended->delivery.state == state && ended->delivery.claims == claim.number;
  }
  row->delivery.state = state;
  row->settledAt = state_.now;
  return true;
}

bool OutboxModel::reschedule(const DeliveryClaim& claim, Millis delay) {
  Owed* row = claimed(claim);
  if (row == nullptr) return false;
  row->delivery.dueAt = state_.now + delay;
  return true;
}

bool OutboxModel::recordAttempt(const DeliveryClaim& claim, std::uint32_t number, DeliveryAttempt attempt) {
  Owed* row = claimed(claim);
  if (row == nullptr) return false;
  if (number > 0 && number == row->delivery.tries) return true;
  if (number != row->delivery.tries + 1) return false;
  attempt.at = state_.now;
  auto& attempts = row->delivery.attempts;
  attempts.push_back(std::move(attempt));
  if (attempts.size() > kMaxAttempts) attempts.erase(attempts.begin());
  ++row->delivery.tries;
  return true;
}

bool OutboxModel::replay(std::string_view id) {
  Owed* row = delivery(id);
  if (row == nullptr) return false;
  row->delivery.state = DeliveryState::owed;
  row->delivery.dueAt = state_.now;
  row->owedAt = state_.now;
  row->delivery.tries = 0;
  ++row->delivery.claims;
  return true;
}

std::vector<Delivery> OutboxModel::list(std::string_view endpoint, std::string_view job, std::size_t limit,
                                        std::optional<DeliveryState> state) const {
  std::vector<Delivery> listed;
  for (const Owed& owed : state_.outbox) {
    const Delivery& delivery = owed.delivery;
    const bool outlived = delivery.state != DeliveryState::owed && owed.settledAt + kDeliveryRecordLife <= state_.now;
    const bool elsewhere = delivery.job.endpoint != endpoint && !(endpoint.empty() && (state || !job.empty()));
    if (job.empty() && state && delivery.state != *state) continue;
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

OwedDeliveries OutboxModel::owed(std::string_view endpoint) const {
  OwedDeliveries owed;
  for (const Owed& each : state_.outbox) {
    if (!isOf(each, endpoint)) continue;
    ++owed.count;
    owed.oldestAge = std::max(owed.oldestAge, state_.now - each.owedAt);
  }
  return owed;
}

AbandonResult OutboxModel::abandonOwed(const OwedBounds& bounds) {
  AbandonResult result;
  std::set<EndpointId> endpoints;
  for (const Owed& each : state_.outbox) endpoints.insert(each.delivery.job.endpoint);
  for (const EndpointId& endpoint : endpoints) {
    std::vector<Owed*> oldest;
    for (Owed& each : state_.outbox) {
      if (isOf(each, endpoint)) oldest.push_back(&each);
    }
    std::stable_sort(oldest.begin(), oldest.end(), [](auto* a, auto* b) { return a->owedAt < b->owedAt; });
    AbandonedDeliveries done{endpoint, 0, 0};
    for (Owed* each : oldest) {
      const bool isTooOld = each->owedAt + bounds.maxAge <= state_.now;
      const bool areTooMany = oldest.size() - done.tooOld - done.tooMany > bounds.maxCount;
      if ((!isTooOld && !areTooMany) || !waits(each->delivery, state_.now)) continue;
      ++(isTooOld ? done.tooOld : done.tooMany);
      each->delivery.state = DeliveryState::abandoned;
      each->settledAt = state_.now;
      auto& attempts = each->delivery.attempts;
      attempts.push_back({state_.now, 0, Millis(0), isTooOld ? tooOldReason(bounds) : tooManyReason(bounds), {}});
      if (attempts.size() > kMaxAttempts) attempts.erase(attempts.begin());
    }
    if (done.tooOld + done.tooMany > 0) result.endpoints.push_back(done);
  }
  return result;
}

}  // namespace jobq::model
