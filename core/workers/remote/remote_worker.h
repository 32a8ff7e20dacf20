// A remote worker as the server knows the worker: a process that takes jobs over HTTP, on any machine. Plain state,
// guarded by the mutex of RemoteRegistry. core/decisions/remote_workers.md has the rules.
#pragma once

#include <atomic>
#include <compare>
#include <cstddef>
#include <cstdint>
#include <map>
#include <memory>
#include <optional>
#include <set>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "core/base/suspended_call.h"
#include "core/workers/pool/state_table.h"
#include "core/workers/remote/remote_link.h"
#include "core/workers/remote/remote_rivals.h"
#include "core/workers/remote/remote_run.h"
#include "core/workers/remote/remote_worker_state.h"
#include "core/workers/remote/shown_jobs.h"
#include "jobq/job.h"
#include "jobq/time.h"

namespace jobq {

/// A worker belongs to a single endpoint: the same id at two endpoints names two workers.
struct RemoteWorkerKey {
  EndpointId endpoint;
  WorkerId worker;
  auto operator<=>(const RemoteWorkerKey&) const = default;
};

/// A call of a worker other than a ping.
enum class WorkerCall {
  question,  ///< a call for jobs, or for jobs to stop
  report     ///< about a job
};

/// Returns true if the place belongs to the worker: `<worker>:<number>`.
inline bool isPlaceOf(std::string_view place, std::string_view worker) {
  return place.size() > worker.size() && place[worker.size()] == ':' && place.starts_with(worker);
}

/// Greatest time between the sending of a ping and its arrival.
inline constexpr Millis kPingDelay{2'000};
/// Time after the hand-out of a job in which an earlier ping may still arrive: two pauses of 10 s between pings.
inline constexpr Millis kTwoPings{20'000};

/// A parked call for jobs. The places are idle workers of the endpoint's pool, a place for each job that may come.
struct RemoteTake {
  SuspendedCall call;
  Instant until{};
  std::vector<WorkerId> places;
  std::vector<RemoteRunPtr> jobs;    ///< assigned, not handed out yet
  std::vector<RemoteRunPtr> handed;  ///< handed out; the answer is not made yet
  std::vector<WorkerId> refused;     ///< the places that the pool has refused; used by RemoteOffers alone
  /// The call gets no further job, because a later call has replaced the call or the server stops. RemoteOffers reads
  /// the flag without the mutex.
  std::atomic<bool> isOver = false;
  bool isIdle = false;  ///< the worker has said to have no job
};

/// A parked call for jobs to stop.
struct RemoteStopWait {
  SuspendedCall call;
  Instant until{};
  bool isOver = false;
};

struct RemoteWorker {
  /// A job that has ended while the worker may still run the job.
  struct Stop {
    Instant since{};
    Instant nextAt{};           ///< when the worker is told, again and again
    int omitted = 0;            ///< successive pings without the job
    std::uint32_t attempt = 0;  ///< attempt of the job at the worker; 0: unknown
    bool isChecked = true;      ///< false: the run may have ended by a result that a different node has stored
    Instant listedAt{};         ///< last ping with the job
    Instant handedOutAt{};      ///< the worker may not have read the answer with the job yet
    bool isShown = false;       ///< as InHand::isShown

    /// Returns true if the worker must know of the job by now, so that a ping without the job counts.
    bool isKnownToWorker(Instant now) const { return isShown || now >= handedOutAt + kTwoPings; }
  };
  /// A job that was handed out and has not ended.
  struct InHand {
    RemoteRunPtr run;
    Instant since{};
    int omitted = 0;       ///< successive pings without the job
    bool isShown = false;  ///< a ping has listed the job, or the worker has called for further jobs
    Instant listedAt{};    ///< last ping with the job, here or at another node

    /// Notes a ping with the job.
    void noteListed(Instant now) {
      isShown = true;
      listedAt = now;
    }
    /// Returns the stop of the job. Parameter: Stop::isChecked.
    Stop stopAt(Instant now, bool isChecked = true) const {
      return {now, now, 0, run->lease().attempt, isChecked, {}, since, isShown};
    }
  };
  /// A job that came too late for the parked call. The next call gets the job.
  struct Owed {
    RemoteRunPtr run;
    Instant since{};
  };

  /// Returns true if the worker may still run an earlier attempt of the job, whose result would look like the result of
  /// a new attempt. `begun` is the start of the server.
  bool mayRun(const RemoteRun& run, Instant begun) const {
    const JobId& job = run.lease().job;
    const bool mayBeUnknown = shown.areUnknown() && run.lease().attempt > 1 && !run.isSubmittedSince(begun);
    return stops.contains(job) || jobs.contains(job) || mayBeUnknown;
  }

  /// Returns true if the worker has no connection, no parked call for jobs, no job, and no stop to receive.
  bool hasNothing() const { return !link.isOpenHere() && !take && jobs.empty() && owed.empty() && stops.empty(); }
  /// Returns true if the next call of the worker would restore all that is in the record.
  bool isUnused() const {
    const bool isMarked = state.get() != RemoteWorkerState::serving || link.isOpenElsewhere();
    return hasNothing() && !stopWait && replaced.empty() && !isMarked && lastJobAt == Instant{};
  }
  /// Returns true if the worker may get a job under the attempt, as ShownJobs::mayGet().
  bool mayGet(std::uint32_t attempt, Instant unheardUntil, Instant now) {
    if (now < leavesUntil) return false;
    return (take && take->isIdle) || shown.mayGet(attempt, unheardUntil, now);
  }

  Instant since{};      ///< first sign of life
  Instant lastSeen{};   ///< last request or end of a connection
  Instant lastJobAt{};  ///< when a job was last handed out
  TableState<kRemoteWorkerTransitions> state;
  Instant leftAt{};       ///< when a worker that has asked to be replaced was last connected here
  Instant leavesUntil{};  ///< no job until then: the worker leaves another node
  /// The reason of an unhealthy worker, from the last ping. No value if the worker is healthy, or has called since.
  std::optional<std::string> unhealthy{};
  RemoteLink link;      ///< the connections with calls of the worker
  ShownJobs shown;      ///< what the pings and calls say of the jobs in the hands of the worker
  RemoteRivals rivals;  ///< signs of a second process under the id
  std::shared_ptr<RemoteTake> take{};
  /// Calls that a later call has replaced. The answers come within a second, because two processes with the same id
  /// would otherwise make each other call without a pause.
  std::vector<SuspendedCall> replaced{};
  std::shared_ptr<RemoteStopWait> stopWait{};
  std::map<JobId, InHand> jobs{};
  std::vector<Owed> owed{};
  std::map<JobId, Stop> stops{};
};

}  // namespace jobq
