// The model of the lease store: claims, reports of workers, and the sweep.
#pragma once

#include <cstddef>
#include <cstdint>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include "jobq/call_id.h"
#include "jobq/holder.h"
#include "jobq/job.h"
#include "jobq/lease_store.h"
#include "jobq/storage.h"
#include "jobq/time.h"
#include "jobq/transitions.h"
#include "model_state.h"

namespace jobq::model {

/// Each operation matches the operation of the same name of LeaseStore.
class LeaseModel {
 public:
  /// The state must outlive the model.
  explicit LeaseModel(ModelState& state) : state_(state) {}

  ClaimResult claim(std::span<const ClaimWant> wants, const Holder& holder, CallId id,
                    std::uint64_t mostBytes = kAnyBytes);
  /// Begins the first attempt of a job that was just inserted, and dates both back (Begun).
  void beginFirstRun(const JobId& job, const Begun& run);
  std::vector<ClaimedJob> claimed(std::span<const ClaimWant> wants, CallId id) const;
  std::vector<LeaseState> states(std::span<const LeaseRef> leases);
  /// Begins a life and returns its epoch (NodeStore::join on a storage of a single process).
  std::uint64_t join();
  ReportResult finish(const LeaseRef& lease, const Outcome& outcome);
  ReportResult progress(const LeaseRef& lease, const std::string& json);
  SweepResult giveBack(std::span<const ReturnedJob> jobs);
  /// Sweeps without a bound.
  SweepResult sweep();
  /// Returns `said`, the answer of the storage, if it is right, and the exact answer otherwise. The answer `most` is
  /// also right if `most` jobs were in front of the job's place at a question of the last second.
  std::optional<std::size_t> ahead(const JobKey& key, std::size_t most, const std::optional<std::size_t>& said);

 private:
  Entry* first(const EndpointId& endpoint);
  ClaimedJob start(Entry& entry, const WorkerId& worker, const Holder& holder);
  ClaimedJob started(const Entry& entry) const;
  void sendBack(Entry& entry, Trigger trigger);
  void loseOne(Entry& entry, SweepResult& swept);

  ModelState& state_;
};

}  // namespace jobq::model
