// The store of owed webhooks.
#include "memory_stores.h"

namespace jobq::memory {
namespace {

/// A delivery as a result, before its bodies are copied.
struct Copy {
  Delivery delivery;
  std::shared_ptr<const JobSpec> spec;
  Text output;

  std::size_t bytes() const { return spec->input.size() + (output ? output->size() : 0); }

  /// Copies the bodies. Called outside the critical section.
  Delivery whole() && {
    delivery.input = spec->input;
    if (output) delivery.job.output = *output;
    return std::move(delivery);
  }
};

Copy copy(const DeliveryRow& row) {
  return {{row.id,
           row.state,
           row.spec->webhook,
           row.host,
           row.snapshot.job,
           {},
           row.dueAt,
           row.tries,
           row.claims,
           row.attempts},
          row.spec,
          row.snapshot.output};
}

}  // namespace

DueHosts Outbox::dueHosts(std::string_view after, std::size_t max) {
  Lock lock(s_.mutex);
  return s_.deliveries.dueHosts(s_.clock.now(), after, max);
}

std::vector<Delivery> Outbox::claimDue(std::span<const HostPlaces> hosts, Millis lease) {
  std::vector<Copy> claimed;
  {
    Lock lock(s_.mutex);
    const Instant now = s_.clock.now();
    std::size_t bytes = 0;
    for (DeliveryRow* row : s_.deliveries.due(now, hosts)) {
      if (bytes >= kMaxClaimedBytes) break;
      s_.deliveries.setDue(*row, now + lease);
      ++row->claims;
      bytes += claimed.emplace_back(copy(*row)).bytes();
    }
  }
  std::vector<Delivery> deliveries;
  deliveries.reserve(claimed.size());
  for (Copy& each : claimed) deliveries.push_back(std::move(each).whole());
  return deliveries;
}

bool Outbox::finishDelivery(const DeliveryClaim& claim, DeliveryState state) {
  if (state == DeliveryState::owed) return false;
  Lock lock(s_.mutex);
  const Instant now = s_.clock.now();
  DeliveryRow* row = s_.deliveries.findClaimed(claim);
  if (row == nullptr) return s_.deliveries.hasEnded(claim, state, now);
  s_.deliveries.finishDelivery(*row, state, now);
  return true;
}

bool Outbox::reschedule(const DeliveryClaim& claim, Millis delay) {
  Lock lock(s_.mutex);
  DeliveryRow* row = s_.deliveries.findClaimed(claim);
  if (row == nullptr) return false;
  s_.deliveries.setDue(*row, s_.clock.now() + delay);
  return true;
}

bool Outbox::recordAttempt(const DeliveryClaim& claim, std::uint32_t number, DeliveryAttempt attempt) {
  Lock lock(s_.mutex);
  DeliveryRow* row = s_.deliveries.findClaimed(claim);
  if (row == nullptr) return false;
  // A repeated call finds its number as the last number.
  if (number != row->tries + 1) return number > 0 && number == row->tries;
  Deliveries::addAttempt(*row, std::move(attempt), s_.clock.now());
  row->tries = number;
  return true;
}

std::vector<Delivery> Outbox::list(std::string_view endpoint, std::string_view job, std::size_t limit,
                                   std::optional<DeliveryState> state) {
  std::vector<Delivery> listed;
  Lock lock(s_.mutex);
  const Instant now = s_.clock.now();
  const auto rows = !job.empty() ? s_.deliveries.ofJob(endpoint, job, now)
                    : state      ? s_.deliveries.ofState(endpoint, *state, now)
                                 : s_.deliveries.ofEndpoint(endpoint, limit, now);
  for (const DeliveryRow* row : rows) {
    if (listed.size() == limit) break;
    Delivery& delivery = listed.emplace_back(copy(*row).delivery);
    delivery.job.error = listedError(delivery.job.error);
    if (!job.empty()) continue;
    for (DeliveryAttempt& attempt : delivery.attempts) attempt.reply.clear();
  }
  return listed;
}

bool Outbox::replay(std::string_view id) {
  Lock lock(s_.mutex);
  const Instant now = s_.clock.now();
  DeliveryRow* row = s_.deliveries.find(id, now);
  if (row == nullptr) return false;
  s_.deliveries.setOwed(*row, now);
  row->tries = 0;
  ++row->claims;
  return true;
}

OwedDeliveries Outbox::owed(std::string_view endpoint) {
  Lock lock(s_.mutex);
  return s_.deliveries.owed(s_.clock.now(), endpoint);
}

AbandonResult Outbox::abandonOwed(const OwedBounds& bounds, std::size_t max) {
  Lock lock(s_.mutex);
  return s_.deliveries.abandonOwed(s_.clock.now(), bounds, max);
}

}  // namespace jobq::memory
