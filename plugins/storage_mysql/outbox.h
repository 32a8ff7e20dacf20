// The store of owed webhooks. Contract: `sdk/include/jobq/outbox_store.h`. The rows are written by `job_rows.cpp`, in
// the step that ends a job.
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "connection/database_clock.h"
#include "jobq/storage.h"
#include "jobq/time.h"
#include "reads/glance.h"
#include "reads/readers.h"
#include "writes/writer.h"

namespace jobq::mysql {

/// Any thread may call the methods. The arguments of the constructor outlive the store.
class Outbox final : public OutboxStore {
 public:
  Outbox(Writer& writer, Readers& readers, const DatabaseClock& clock, Glances& glances)
      : writer_(writer), readers_(readers), clock_(clock), glances_(glances) {}

  DueHosts dueHosts(std::string_view after, std::size_t max) override;
  std::vector<Delivery> claimDue(std::span<const HostPlaces> hosts, Millis lease) override;
  bool finishDelivery(const DeliveryClaim& claim, DeliveryState state) override;
  bool reschedule(const DeliveryClaim& claim, Millis delay) override;
  bool recordAttempt(const DeliveryClaim& claim, std::uint32_t number, DeliveryAttempt attempt) override;
  std::vector<Delivery> list(std::string_view endpoint, std::string_view job, std::size_t limit) override;
  bool replay(std::string_view id) override;
  OwedDeliveries owed(std::string_view endpoint) override;
  AbandonResult abandonOwed(const OwedBounds& bounds, std::size_t max) override;

 private:
  Writer& writer_;
  Readers& readers_;
  const DatabaseClock& clock_;
  Glances& glances_;
};

}  // namespace jobq::mysql
