// Second half of the stage completion: callers waiting for the end or the next chunk of a job. Each caller sleeps on a
// condition. `core/jobs/change_poller.h` reports the changes that other nodes make.
#pragma once

#include <cstddef>
#include <functional>
#include <map>
#include <stop_token>
#include <string_view>
#include <vector>

#include "jobq/job.h"
#include "jobq/mutex.h"
#include "jobq/time.h"

namespace jobq {

/// Returns a stop token on which a stop is requested when the waiter's client has left. Called only when the wait turns
/// out to be long, because most waits are short.
using DisconnectSignal = std::function<std::stop_token()>;

/// A job with at least one waiting caller.
struct AwaitedJob {
  JobKey job;
  bool isStreamed = false;  ///< a waiter is interested in chunks
};

/// Told when callers begin to wait.
class WaiterListener {
 public:
  virtual ~WaiterListener() = default;

  /// Called when a first waiter has come, on its thread and without a lock. Must not block.
  virtual void waiterCame() = 0;
};

/// Wakes the callers waiting for jobs. Any thread may call the functions. The notifier outlives its waiters.
class CompletionNotifier {
 public:
  /// `clock` outlives the object and decides about the deadlines of waits.
  explicit CompletionNotifier(Clock& clock) : clock_(clock) {}

  /// Returns the present time of the clock that decides about deadlines.
  Instant now() const { return clock_.now(); }

  /// Events of interest to a waiter: the job's end or disappearance (`end`), or also each new chunk (`chunks`).
  enum class Interest { end, chunks };

  /// A waiting caller. To be constructed before the job is read or submitted, so that an event between the reading and
  /// the wait is not missed. Used by one thread.
  class Waiter {
   public:
    /// Registers the waiter for `job`. `watch` outlives the waiter.
    Waiter(CompletionNotifier& watch, JobKey job, Interest interest = Interest::end);
    ~Waiter();
    Waiter(const Waiter&) = delete;
    Waiter& operator=(const Waiter&) = delete;

    /// Waits for an event: the job's end, or chunks of at least `bytes` bytes in all since the last call. With `bytes`
    /// above 0 an end reported by an earlier call counts as a new event. Returns true after an event: the caller reads
    /// the job again, and waits again if the event is not enough. Returns false if the wait is over, because close()
    /// was called, the waiter's client has left, or `deadline` is reached; chunks of fewer bytes are forgotten then.
    /// `gone` is called once the wait has lasted 20 ms.
    [[nodiscard]] bool wait(Instant deadline, const DisconnectSignal& gone, std::size_t bytes = 0);

    /// Returns true if a wait found that the waiter's client has left.
    bool clientHasLeft() const;

   private:
    bool waitAMoment(Instant deadline);
    void waitLong(Instant deadline);
    bool hasEvents() const JOBQ_REQUIRES(watch_.mutex_);
    bool mustWait(Instant deadline) const JOBQ_REQUIRES(watch_.mutex_);
    bool consumeEvents();
    friend class CompletionNotifier;
    CompletionNotifier& watch_;
    const JobKey job_;
    const Interest interest_;
    Condition changed_;
    // The following fields are guarded by watch_.mutex_.
    bool news_ = false;
    bool left_ = false;
    // The job has or may have ended. Never reset, because one call may report the end together with a chunk.
    bool ended_ = false;
    bool hasChunks_ = false;
    std::size_t bytes_ = 0;   // in the chunks since the last call of wait()
    std::size_t wanted_ = 0;  // bytes of chunks that end the wait
    std::multimap<JobId, Waiter*>::iterator place_;
  };

  /// Wakes the waiters of a job that has ended or is gone.
  void announce(const JobId& job);

  /// Wakes the waiters for chunks of a job with new chunks of `bytes` bytes in all.
  void announceChunk(const JobId& job, std::size_t bytes);

  /// Sets the listener, before the first waiter. `listener` is valid until the last waiter has come.
  void setListener(WaiterListener& listener) { listener_ = &listener; }

  bool hasWaiters() const;

  /// Returns the awaited jobs behind the id `after`, in ascending order of their ids, at most `most`. An empty `after`
  /// begins with the first job.
  std::vector<AwaitedJob> awaited(const JobId& after, std::size_t most) const;

  /// Returns the number of waiters for chunks.
  std::size_t streams() const;

  /// Wakes all waiters of an endpoint, because some of its jobs are gone and the storage does not name the jobs
  /// (purge).
  void announceAllOf(std::string_view endpoint);

  /// Wakes all waiters, because the storage has not told which jobs have ended. A waiter whose job goes on waits again.
  void announceAll();

  /// Ends every wait, now and from now on. Called at shutdown.
  void close();

 private:
  Clock& clock_;
  WaiterListener* listener_ = nullptr;
  mutable Mutex mutex_;
  std::multimap<JobId, Waiter*> waiting_ JOBQ_GUARDED_BY(mutex_);
  std::size_t streams_ JOBQ_GUARDED_BY(mutex_) = 0;
  bool closed_ JOBQ_GUARDED_BY(mutex_) = false;
};

}  // namespace jobq
