// Storage, face 4: webhooks that are owed. The rows are written by job_rows.cpp, in the step that ends a job.
#pragma once

#include <cstddef>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "jobq/storage.h"
#include "jobq/time.h"
#include "readers.h"
#include "writer.h"

namespace jobq::sqlite {

/// Any thread. The writer and readers outlive it.
class Outbox final : public OutboxStore {
 public:
  Outbox(Writer& writer, Readers& readers, Clock& clock) : writer_(writer), readers_(readers), clock_(clock) {}

  std::vector<Delivery> claimDue(std::size_t max, Millis lease, std::span<const std::string> exceptHosts) override;
  bool settle(std::string_view id, DeliveryState state) override;
  bool reschedule(std::string_view id, Millis delay) override;
  bool recordAttempt(std::string_view id, DeliveryAttempt attempt) override;
  std::vector<Delivery> list(std::string_view endpoint, std::string_view job, std::size_t limit) override;
  bool replay(std::string_view id) override;

 private:
  Writer& writer_;
  Readers& readers_;
  Clock& clock_;
};

}  // namespace jobq::sqlite
