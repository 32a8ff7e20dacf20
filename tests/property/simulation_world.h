// The parts of a simulation that outlive each process of the core: the clock, the storage with its judge, the
// endpoints, the source of chance, and the rules of runs.
#pragma once

#include <cstdint>
#include <functional>
#include <map>
#include <memory>
#include <random>
#include <set>
#include <string>
#include <string_view>
#include <vector>

#include "core/endpoints/endpoint.h"
#include "core/jobs/deferred_insert.h"
#include "finding.h"
#include "jobq/holder.h"
#include "jobq/job.h"
#include "jobq/lease_store.h"
#include "jobq/storage.h"
#include "jobq/time.h"
#include "judge.h"
#include "random_operations.h"
#include "testkit/manual_clock.h"

namespace jobq::model {

/// The plan of a world: the plugin of its storage, and whether the judge compares answers. Without the judge only
/// effects visible to a user are checked.
struct SimulationPlan {
  std::function<std::shared_ptr<Storage>(Clock&)> open;
  bool judged = true;
  bool canCrash = false;  ///< acknowledged changes survive a crash; the disk is Disk::instance()
};

/// A claimed job at its worker.
struct Run {
  LeaseRef lease;
  EndpointId endpoint;
  WorkerId worker;                           // empty for a remote worker
  std::string webhook;                       // empty without one
  std::uint64_t lines = 0;                   // number of the next log line
  std::uint64_t chunks = 0;                  // number of accepted chunks
  std::shared_ptr<DeferredInsert> insert{};  // of a job running before the insert
};

/// The rules of runs: attempts grow, a result is accepted from the last attempt alone, and a job succeeds once. A loss
/// of power may undo an unreported end. The first finding is kept, because the core may catch the exceptions of an
/// executor.
class RunRules {
 public:
  /// Throws a Finding with the text `what` unless the condition holds.
  void check(bool holds, const std::string& what);
  /// Keeps a finding without an exception.
  void note(std::string_view what);
  /// Returns the first finding; empty without a finding.
  const std::string& found() const { return found_; }

  void begins(const Run& run);
  /// Judges a result accepted by the storage. The end of a local worker's job is not reported to any caller yet, unless
  /// the job has a webhook.
  void accepted(const Run& run, bool succeeds);
  /// Notes that a caller was told of the end of a job: the end stays. `state` is the state at the end, FAILED for
  /// instance if a loss of power has undone a success and the job was lost then.
  void told(const JobId& job, JobState state);
  /// Notes a loss of power. The loss stops the runs on the machine, and may undo the claims of the runs and unreported
  /// ends: a further run of such a job may have the same attempt.
  void losePower();
  /// Notes an orderly stop, without any undone step.
  void stopInOrder();
  /// Returns the jobs possibly undone by a loss of power, with their endpoints.
  const std::map<JobId, EndpointId>& undoable() const { return undoable_; }
  /// Notes a retry by a caller, which counts as an attempt.
  void retried(const JobId& job);

 private:
  std::map<JobId, std::uint32_t> lastAttempt_;
  std::set<JobId> succeeded_;
  std::map<JobId, EndpointId> runningHere_;  // by workers on the machine, since the last loss of power
  std::map<JobId, EndpointId> untold_;       // ended by workers on the machine
  std::map<JobId, EndpointId> undoable_;     // jobs whose last run, or whose untold end, met a loss of power
  std::string found_;
};

/// Returns a time for any number: moments, leases, retention and ttl; mostly the time of a lease, to get late reports.
Millis jumpOf(std::uint32_t number);

/// Confined to one thread.
struct World {
  World(SimulationPlan plan, std::uint64_t seed);

  /// Returns the storage of the core and of the remote workers: the judge, or the real storage without a judge.
  Storage& storage() { return plan.judged ? *judge : judge->compared().real(); }
  /// Returns an endpoint for any number. Half of the work is for the remote workers.
  const EndpointPtr& endpoint(std::uint32_t number) const;

  const SimulationPlan plan;
  std::mt19937_64 random;
  const Turns policy;
  std::vector<EndpointPtr> endpoints;
  std::unique_ptr<testkit::ManualClock> clock;
  std::shared_ptr<Judge> judge;
  Holder holder;  // the life of the present process
  RunRules rules;
};

}  // namespace jobq::model
