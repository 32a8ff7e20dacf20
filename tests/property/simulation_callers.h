// The world around the core in a simulation: clients of the API, and callers of webhooks. Both outlive each process of
// the core.
#pragma once

#include <cstdint>
#include <optional>
#include <set>
#include <string>
#include <vector>

#include "core/endpoints/endpoint.h"
#include "jobq/job.h"
#include "jobq/job_store.h"
#include "jobq/outbox_store.h"
#include "simulation_machine.h"
#include "simulation_moves.h"
#include "simulation_world.h"

namespace jobq::model {

/// Clients of the API: submit jobs, then await, cancel, retry or stream the jobs.
class Clients {
 public:
  Clients(World& world, Machine& machine) : world_(world), machine_(machine) {}

  /// Submits a job; `waits` is true for a caller that waits for the job.
  void submit(const Move& move, bool waits);
  /// Cancels, retries or streams a recent job, or sets its ttl.
  void change(const Move& move);
  /// Begins to wait for the end of a recent job.
  void await(const Move& move);
  /// Continues the resumed calls, and the calls whose time is over. Returns the jobs of calls that wait on.
  std::vector<JobKey> resume();

  const std::vector<JobKey>& jobs() const { return jobs_; }

 private:
  /// Returns one of the last jobs for any number. There is a job.
  const JobKey& recent(std::uint32_t number) const;
  /// Polls the wait of the call, and keeps the call if its wait goes on.
  void wait(WaitingCall call);
  /// Submits without blocking, as the reactor thread does in a crowd.
  InsertResult submitLater(JobSpec job, const EndpointPtr& at, std::optional<Idempotency> idempotency);

  World& world_;
  Machine& machine_;
  std::vector<JobKey> jobs_;
  std::uint64_t calls_ = 0;  // number of the last waiting call
};

/// Callers of webhooks: claim deliveries, record calls and end the deliveries, each step a separate move, with replays
/// between the steps. Callers outlive a crash, because late reports are the interesting reports.
class DeliveryCallers {
 public:
  explicit DeliveryCallers(World& world) : world_(world) {}

  void deliver(const Move& move);
  /// Expects a call for each replay. All leases of deliveries have ended, or end with the step.
  void checkReplays();

 private:
  void claim();

  World& world_;
  std::vector<DeliveryClaim> calls_;  // calls of several callers, also with a claim long gone
  std::set<std::string> replayed_;    // deliveries with an acknowledged replay and no call since
};

}  // namespace jobq::model
