// The bells between the registry and the dispatcher of one node, one an endpoint: "a job may be waiting here".
#pragma once

#include <atomic>
#include <functional>
#include <map>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "jobq/job.h"
#include "jobq/mutex.h"
#include "jobq/time.h"

namespace jobq {

/// Any thread rings; one thread, the listener, hears. A bell goes on ringing until the listener silences it, and while
/// it rings, ringing it again costs one atomic exchange: a busy server does not wake its dispatcher for every job.
class QueueSignal {
 public:
  /// One bell for each of `endpoints`, all of them ringing: nobody has looked yet.
  explicit QueueSignal(const std::vector<EndpointId>& endpoints);

  /// A bell for one endpoint more, ringing, unless it has one. Bells stay: endpoints come and go, bells are small.
  void addEndpoint(const EndpointId& endpoint);

  /// A job was put in line. Its class matters: a low-priority job that waits must not hide a normal one, for which a
  /// worker is started. An endpoint without a bell has no listener here.
  void notify(const EndpointId& endpoint, bool lowPriority);

  /// The same for a caller who is going to wait for the job, and so has time: if the bell was silent, `serve` runs on
  /// the caller's own thread. It saves a waiting caller the way over the listener's.
  void notifyAndClaim(const EndpointId& endpoint, bool lowPriority);
  /// Before anybody rings. `serve` gives waiting jobs of the endpoint to workers that are free; it throws nothing.
  void setClaimer(std::function<void(const EndpointId& endpoint)> claimer) { claimer_ = std::move(claimer); }

  /// Something else happened that the listener should look at.
  void wake();

  /// Listener: waits for a bell that was silent, a nudge, or `deadline`.
  void wait(Clock& clock, Instant deadline);

  /// Listener: whether wait() would return at once for another reason than its deadline; then that is taken.
  bool consume();

  /// Listener: whether jobs may wait there.
  bool isSet(const EndpointId& endpoint) const;
  /// Listener, or who serves: it is about to ask the storage. What comes after this call rings anew.
  void clear(const EndpointId& endpoint);
  /// Listener, or who serves: there may be more than it could take.
  void rearm(const EndpointId& endpoint, bool lowPriorityOnly = false);

 private:
  struct Flags {
    std::atomic<bool> normal = true;
    std::atomic<bool> low = true;
  };

  /// Null: the endpoint has none.
  Flags* flagsOf(const EndpointId& endpoint) const;
  /// True: it was silent.
  bool setFlag(const EndpointId& endpoint, bool lowPriority);

  mutable Mutex flagsMutex_;
  // The map grows; a bell stays where it is, and what is in it is atomic.
  std::map<EndpointId, std::unique_ptr<Flags>, std::less<>> flags_ JOBQ_GUARDED_BY(flagsMutex_);
  std::function<void(const EndpointId&)> claimer_;
  Mutex mutex_;
  Condition changed_;
  bool woken_ JOBQ_GUARDED_BY(mutex_) = false;
};

}  // namespace jobq
