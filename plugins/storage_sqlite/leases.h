// The store of leases: the operations of a worker. Contract: `sdk/include/jobq/lease_store.h`. The handling of jobs
// whose worker fails is in `sweep.cpp`.
#pragma once

#include <cstddef>
#include <cstdint>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include "bodies/body_sweep.h"
#include "bodies/claimed_inputs.h"
#include "connection.h"
#include "jobq/call_id.h"
#include "jobq/holder.h"
#include "jobq/job.h"
#include "jobq/storage.h"
#include "jobq/time.h"
#include "queue_bounds.h"
#include "reads/job_listing.h"
#include "reads/readers.h"
#include "removal_hold.h"
#include "schema/shrink.h"
#include "storage_sql/reports_under_way.h"
#include "writes/counters.h"
#include "writes/writer.h"

namespace jobq::sqlite {

/// Any thread may call the methods. All constructor arguments outlive the store.
class Leases final : public LeaseStore {
 public:
  Leases(Writer& writer, Readers& readers, LargeBodies bodies, const CommittedState& state, Clock& clock,
         sql::ReportsUnderWay& reports, RemovalHold& hold)
      : writer_(writer),
        readers_(readers),
        bodies_(bodies),
        counters_(state.counters),
        numbers_(state.numbers),
        clock_(clock),
        reports_(reports),
        hold_(hold),
        shrinker_(writer, readers, clock),
        bodySweep_(bodies.files, writer, readers) {}

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
  std::vector<ClaimedJob> adopt(const Holder& holder) override;
  /// Ends or returns the jobs that were left out of their claims, before the storage is closed: the next start would
  /// count them as lost.
  void endLeftOutJobs() noexcept;

  Shrinker& shrinker() { return shrinker_; }
  BodySweep& bodySweep() { return bodySweep_; }

 private:
  Writer& writer_;
  Readers& readers_;
  const LargeBodies bodies_;
  const Counters& counters_;
  const JobNumbers& numbers_;
  Clock& clock_;
  QueueBounds bounds_;
  sql::ReportsUnderWay& reports_;
  RemovalHold& hold_;
  Shrinker shrinker_;
  BodySweep bodySweep_;
};

}  // namespace jobq::sqlite
