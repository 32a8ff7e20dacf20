// The store of leases: the operations of a worker. Contract: `sdk/include/jobq/lease_store.h`. The handling of jobs
// whose worker fails is in `sweep.cpp`.
#pragma once

#include <cstddef>
#include <cstdint>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include "connection/database_clock.h"
#include "jobq/call_id.h"
#include "jobq/holder.h"
#include "jobq/job.h"
#include "jobq/storage.h"
#include "jobq/time.h"
#include "reads/glance.h"
#include "reads/readers.h"
#include "storage_sql/reports_under_way.h"
#include "writes/writer.h"

namespace jobq::mysql {

/// Any thread may call the methods. The arguments of the constructor outlive the store.
class Leases final : public LeaseStore {
 public:
  Leases(Writer& writer, Readers& readers, const DatabaseClock& clock, Glances& glances)
      : writer_(writer), readers_(readers), clock_(clock), glances_(glances) {}

  ClaimResult claim(std::span<const ClaimWant> wants, const Holder& holder, CallId id,
                    std::uint64_t mostBytes) override;
  std::vector<ClaimedJob> claimed(std::span<const ClaimWant> wants, CallId id) override;
  std::vector<LeaseState> states(std::span<const LeaseRef> leases) override;
  std::vector<QueuedEndpoint> queuedEndpoints() override;
  FinishResult finish(std::span<const EndedAttempt> ends, Durability durability,
                      const std::optional<FusedClaim>& claim) override;
  ReportResult progress(const LeaseRef& lease, std::string json) override;
  SweepResult giveBack(std::span<const ReturnedJob> jobs) override;
  SweepResult sweep(std::size_t max) override;
  std::optional<std::size_t> ahead(const JobKey& key, std::size_t most) override;

 private:
  Writer& writer_;
  Readers& readers_;
  const DatabaseClock& clock_;
  Glances& glances_;
  sql::ReportsUnderWay reports_;
};

}  // namespace jobq::mysql
