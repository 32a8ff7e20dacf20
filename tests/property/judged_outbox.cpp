#include "judged_stores.h"

namespace jobq::model {

DueHosts JudgedOutbox::dueHosts(std::string_view after, std::size_t max) {
  return compared_.ask(
      "dueHosts", [&] { return compared_.real().outbox().dueHosts(after, max); },
      [&](StorageModel& model) { return model.outbox().dueHosts(after, max); });
}

std::vector<Delivery> JudgedOutbox::claimDue(std::span<const HostPlaces> hosts, Millis lease) {
  auto claimed = compared_.ask(
      "claimDue", [&] { return compared_.real().outbox().claimDue(hosts, lease); },
      [&](StorageModel& model) { return model.outbox().claimDue(hosts, lease); });
  if (!claimed.empty()) compared_.noteSynced();
  return claimed;
}

bool JudgedOutbox::finishDelivery(const DeliveryClaim& claim, DeliveryState state) {
  const bool finished = compared_.ask(
      "the end of the delivery " + claim.id, [&] { return compared_.real().outbox().finishDelivery(claim, state); },
      [&](StorageModel& model) { return model.outbox().finishDelivery(claim, state); });
  if (finished) compared_.noteSynced();
  return finished;
}

bool JudgedOutbox::reschedule(const DeliveryClaim& claim, Millis delay) {
  return compared_.askSynced(
      "reschedule of " + claim.id, [&] { return compared_.real().outbox().reschedule(claim, delay); },
      [&](StorageModel& model) { return model.outbox().reschedule(claim, delay); });
}

bool JudgedOutbox::recordAttempt(const DeliveryClaim& claim, std::uint32_t number, DeliveryAttempt attempt) {
  return compared_.askSynced(
      "try " + std::to_string(number) + " of " + claim.id,
      [&] { return compared_.real().outbox().recordAttempt(claim, number, attempt); },
      [&](StorageModel& model) { return model.outbox().recordAttempt(claim, number, attempt); });
}

std::vector<Delivery> JudgedOutbox::list(std::string_view endpoint, std::string_view job, std::size_t limit,
                                         std::optional<DeliveryState> state) {
  return compared_.ask(
      "deliveries of " + std::string(endpoint),
      [&] { return compared_.real().outbox().list(endpoint, job, limit, state); },
      [&](StorageModel& model) { return model.outbox().list(endpoint, job, limit, state); });
}

bool JudgedOutbox::replay(std::string_view id) {
  return compared_.askSynced(
      "replay of " + std::string(id), [&] { return compared_.real().outbox().replay(id); },
      [&](StorageModel& model) { return model.outbox().replay(id); });
}

OwedDeliveries JudgedOutbox::owed(std::string_view endpoint) {
  return compared_.ask(
      "what is owed by " + std::string(endpoint), [&] { return compared_.real().outbox().owed(endpoint); },
      [&](StorageModel& model) { return model.outbox().owed(endpoint); });
}

AbandonResult JudgedOutbox::abandonOwed(const OwedBounds& bounds, std::size_t max) {
  auto abandoned = compared_.ask(
      "abandonOwed", [&] { return compared_.real().outbox().abandonOwed(bounds, max); },
      [&](StorageModel& model) { return model.outbox().abandonOwed(bounds); });
  if (!abandoned.endpoints.empty()) compared_.noteSynced();
  return abandoned;
}

}  // namespace jobq::model
