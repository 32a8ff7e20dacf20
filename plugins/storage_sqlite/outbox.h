// The store of owed webhooks. Contract: `sdk/include/jobq/outbox_store.h`. The rows are written by `job_rows.cpp`, in
// the step that ends a job.
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "bodies/body_files.h"
#include "jobq/storage.h"
#include "jobq/time.h"
#include "reads/readers.h"
#include "writes/counters.h"
#include "writes/writer.h"

namespace jobq::sqlite {

/// Any thread may call the methods. All constructor arguments outlive the store.
class Outbox final : public OutboxStore {
 public:
  Outbox(Writer& writer, Readers& readers, const BodyFiles& files, const Counters& counters, Clock& clock)
      : writer_(writer), readers_(readers), files_(files), counters_(counters), clock_(clock) {}

  DueHosts dueHosts(std::string_view after, std::size_t max) override;
  std::vector<Delivery> claimDue(std::span<const HostPlaces> hosts, Millis lease) override;
  bool finishDelivery(const DeliveryClaim& claim, DeliveryState state) override;
  bool reschedule(const DeliveryClaim& claim, Millis delay) override;
  bool recordAttempt(const DeliveryClaim& claim, std::uint32_t number, DeliveryAttempt attempt) override;
  std::vector<Delivery> list(std::string_view endpoint, std::string_view job, std::size_t limit) override;
  bool replay(std::string_view id) override;

 private:
  OwedDeliveries owed(std::string_view endpoint) override;
  AbandonResult abandonOwed(const OwedBounds& bounds, std::size_t max) override;

  Writer& writer_;
  Readers& readers_;
  const BodyFiles& files_;
  const Counters& counters_;
  Clock& clock_;
};

}  // namespace jobq::sqlite
