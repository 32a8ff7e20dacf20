// Signals between submission and the dispatcher of one node, one for each endpoint: "a job may be waiting here".
#pragma once

#include <atomic>
#include <cstdint>
#include <functional>
#include <map>
#include <memory>
#include <string>
#include <vector>

#include "jobq/job.h"
#include "jobq/mutex.h"
#include "jobq/time.h"

namespace jobq {

/// Any thread notifies, and the thread of the dispatcher waits. A signal stays set until the dispatcher clears it.
/// Notifying a set signal costs one atomic exchange, so a busy server does not wake its dispatcher for every job.
class QueueSignal {
 public:
  /// Makes a signal for each of `endpoints`. All signals are set, because the queues have not been read yet.
  explicit QueueSignal(const std::vector<EndpointId>& endpoints);

  /// Adds a signal for another endpoint, already set. An existing signal is left unchanged. Signals are never removed:
  /// endpoints come and go, and a signal is small.
  void addEndpoint(const EndpointId& endpoint) { flags_.add(endpoint); }

  /// Reports a job in the queue of `endpoint`. The class of the job matters: a waiting low-priority job must not hide a
  /// normal job, for which a worker is started. Returns true if the signal of the class was clear. An endpoint without
  /// a signal is not served by this node.
  bool notify(const EndpointId& endpoint, bool lowPriority);

  /// Sets the signal as notify() does, and leaves the dispatcher asleep until flush(): many jobs wake the dispatcher
  /// once.
  void notifySoon(const EndpointId& endpoint, bool lowPriority);
  /// Wakes the dispatcher if notifySoon() was called since the last flush().
  void flush();

  /// Reports that jobs of each class may wait at every endpoint.
  void notifyAll();

  /// Sets the signal as notify() does, and leaves the dispatcher asleep: the caller claims the job (Claimer). Returns
  /// true if the signal of the class was clear.
  bool set(const EndpointId& endpoint, bool lowPriority) { return flags_.set(endpoint, lowPriority); }

  /// Wakes the dispatcher for an event other than a job.
  void wake();

  /// Waits until a signal becomes set, wake() is called, or `clock` reaches `deadline`. Only the dispatcher's thread
  /// may call wait().
  void wait(Clock& clock, Instant deadline);

  /// Returns true if wait() would return before its deadline, and consumes the notification. Only the dispatcher's
  /// thread may call consume().
  bool consume();

  /// Returns the endpoints with a signal set anew since the last call, each endpoint once. Called by the dispatcher.
  std::vector<EndpointId> collectNews() { return flags_.collectNews(); }

  /// Returns true if jobs may wait at the endpoint. Called by the dispatcher.
  bool isSet(const EndpointId& endpoint) const;
  /// Clears the signal before the storage is asked for jobs. A notification after this call sets the signal again.
  /// Called by the dispatcher or the claimer.
  void clear(const EndpointId& endpoint);
  /// Sets the signal without waking the dispatcher, because more jobs may wait than were claimed. Called by the
  /// dispatcher or the claimer.
  void rearm(const EndpointId& endpoint);

  /// Begins a count of the queue: the signal of normal jobs is cleared, and a job during the count is news.
  /// isSet() stays true. Called by the dispatcher.
  void beginCount(const EndpointId& endpoint);
  /// Ends the count. The signal is set for the classes of jobs that wait. Without such jobs the signal is cleared,
  /// unless a notification has come since beginCount(). Called by the dispatcher.
  void endCount(const EndpointId& endpoint, bool hasNormal, bool hasLow);

 private:
  enum class Low : std::uint8_t { clear, counting, set };
  struct Flags {
    const EndpointId* endpoint = nullptr;
    bool isNews = false;  // guarded by the mutex of the table, which lists the flags in news_
    std::atomic<bool> normal = true;
    std::atomic<Low> low = Low::set;  // counting: set before the present count, and not since
  };
  // The flags of all endpoints.
  class FlagTable {
   public:
    void add(const EndpointId& endpoint);
    // Returns null if the endpoint has no signal.
    Flags* find(const EndpointId& endpoint) const;
    // Returns true if the signal was clear.
    bool set(const EndpointId& endpoint, bool lowPriority);
    void setAll();
    void note(Flags& flags);
    std::vector<EndpointId> collectNews();

   private:
    void list(Flags& flags) JOBQ_REQUIRES(mutex_);

    mutable Mutex mutex_;
    // The map grows. An element keeps the address, and has atomic content.
    std::map<EndpointId, std::unique_ptr<Flags>, std::less<>> flags_ JOBQ_GUARDED_BY(mutex_);
    std::vector<Flags*> news_ JOBQ_GUARDED_BY(mutex_);  // with room for all
  };

  FlagTable flags_;
  std::atomic<bool> hasNews_ = false;  // of notifySoon()
  Mutex mutex_;
  Condition changed_;
  bool woken_ JOBQ_GUARDED_BY(mutex_) = false;
};

}  // namespace jobq
