// The bells between the registry and the dispatcher of one node, one an endpoint: "a job may be waiting here".
#pragma once

#include <atomic>
#include <map>
#include <string>
#include <vector>

#include "jobq/job.h"
#include "jobq/time.h"

namespace jobq {

/// Any thread rings; one thread, the listener, hears. A bell goes on ringing until the listener silences it, and while
/// it rings, ringing it again costs one atomic exchange: a busy server does not wake its dispatcher for every job.
class Wakeup {
 public:
  /// One bell for each of `endpoints`, all of them ringing: nobody has looked yet.
  explicit Wakeup(const std::vector<EndpointId>& endpoints);

  /// A job was put in line. Its class matters: a low-priority job that waits must not hide a normal one, for which a
  /// worker is started. An endpoint without a bell has no listener here.
  void ring(const EndpointId& endpoint, bool lowPriority);

  /// Something else happened that the listener should look at.
  void nudge();

  /// Listener: waits for a bell that was silent, a nudge, or `deadline`.
  void wait(Clock& clock, Instant deadline);

  /// Listener: whether jobs may wait there.
  bool rings(const EndpointId& endpoint) const;
  /// Listener: it is about to ask the storage. What comes after this call rings anew.
  void silence(const EndpointId& endpoint);
  /// Listener: there may be more than it could take.
  void keepRinging(const EndpointId& endpoint, bool lowPriorityOnly = false);

 private:
  struct Bell {
    std::atomic<bool> normal = true;
    std::atomic<bool> low = true;
  };

  std::map<EndpointId, Bell, std::less<>> bells_;  // constant but for what is atomic in it
  Mutex mutex_;
  Condition changed_;
  bool nudged_ JOBQ_GUARDED_BY(mutex_) = false;
};

}  // namespace jobq
