// The parts beside one node: workers on another machine, and callers of webhooks. Both outlive each process.
#pragma once

#include <cstddef>
#include <cstdint>
#include <set>
#include <string>
#include <vector>

#include "core/jobs/run_reports.h"
#include "jobq/call_id.h"
#include "jobq/holder.h"
#include "jobq/job.h"
#include "jobq/outbox_store.h"
#include "moves.h"
#include "workers.h"
#include "world.h"

namespace jobq::model {

/// No rule knows the handlers of remote workers, because a job may be taken from them. Confined to one thread.
class RemoteWorkers {
 public:
  explicit RemoteWorkers(World& world) : world_(world) {}

  /// Claims jobs for one or two workers, in the life of the node.
  void claim(std::uint32_t number, const Holder& holder);
  /// Asks for the state of the lease of a run, if any.
  void ask(std::size_t which);
  void report(std::size_t which, std::uint32_t number);
  /// Ends a run. Returns false without a run.
  bool finish(std::size_t which, Outcome outcome, RunReports& reports);

 private:
  struct Run {
    LeaseRef lease;
    bool owesWebhook = false;
    RunProgress progress;
  };

  World& world_;
  std::vector<Run> runs_;  // also with a lease long gone
  CallId lastClaim_ = 0;
};

/// Claim deliveries, record calls and end the deliveries, each step a separate move, with replays between the steps.
/// Late reports are the interesting reports. Confined to one thread.
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
