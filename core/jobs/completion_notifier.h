// Second half of the stage completion: callers waiting for the end or the next chunk of a job. A waiting caller holds
// no thread: its call is suspended, and an event or its deadline continues the call. `core/jobs/change_poller.h`
// reports the changes that other nodes make.
#pragma once

#include <atomic>
#include <cstddef>
#include <map>
#include <set>
#include <string_view>
#include <thread>
#include <tuple>
#include <vector>

#include "core/base/suspended_call.h"
#include "core/jobs/output_room.h"
#include "jobq/job.h"
#include "jobq/mutex.h"
#include "jobq/time.h"

namespace jobq {

/// The caller of a wait, as it is at the moment of a poll.
struct WaitingCaller {
  SuspendedCall call;
  bool hasLeft = false;        ///< the client has closed its side: the wait is over
  OutputRoom* room = nullptr;  ///< for the result of the wait; null: without a bound
};

/// A job with at least one waiting caller.
struct AwaitedJob {
  JobKey job;
  bool isStreamed = false;  ///< a waiter is interested in chunks or changes
};

/// Told when callers begin to wait.
class WaiterListener {
 public:
  virtual ~WaiterListener() = default;

  /// Called when a first waiter has come, on its thread and without a lock. Must not block.
  virtual void waiterCame() = 0;
};

/// Continues the calls waiting for jobs. Any thread may call the functions. The notifier outlives its waiters. Has a
/// thread of its own for the deadlines of all waits.
class CompletionNotifier {
 public:
  /// `clock` outlives the object and decides about the deadlines of waits.
  explicit CompletionNotifier(Clock& clock);
  ~CompletionNotifier();
  CompletionNotifier(const CompletionNotifier&) = delete;
  CompletionNotifier& operator=(const CompletionNotifier&) = delete;

  /// Returns the present time of the clock that decides about deadlines.
  Instant now() const { return clock_.now(); }

  /// Events of interest to a waiter: the job's end or disappearance (`end`), or also each new chunk, or also each other
  /// change (`changes`). Waiters with `chunks` gather chunks, and streams() counts them; waiters with `eachChunk` do
  /// not.
  enum class Interest { end, chunks, eachChunk, changes };
  enum class Progress {
    event,   ///< the caller reads the job, and polls again if the event is not enough
    over,    ///< the deadline is reached, the client has left, or close() was called
    pending  ///< the call is continued at the next event or at the deadline
  };

  /// A waiting caller. To be constructed before the job is read or submitted, so that an event between the reading and
  /// the wait is not missed. Used by one thread at a time.
  class Waiter {
   public:
    /// Registers the waiter for `job`. `notifier` outlives the waiter.
    Waiter(CompletionNotifier& notifier, JobKey job, Interest interest = Interest::end);
    ~Waiter();
    Waiter(const Waiter&) = delete;
    Waiter& operator=(const Waiter&) = delete;

    /// Looks for an event since the last poll: the job's end, or chunks of at least `bytes` bytes in all. With `bytes`
    /// above 0 an end reported by an earlier poll counts as a new event. `over` forgets chunks of fewer bytes. With
    /// `pending` the wait goes on, and a later event resumes `caller.call` once; the caller polls again. Never waits.
    [[nodiscard]] Progress poll(Instant deadline, const WaitingCaller& caller, std::size_t bytes = 0);
    /// Does the same for a waiter with Interest::changes. A change, unlike the end, is no event before `changesFrom`.
    [[nodiscard]] Progress pollChanges(Instant deadline, Instant changesFrom, const WaitingCaller& caller);

   private:
    friend class CompletionNotifier;
    Progress pollEvents(Instant deadline, const WaitingCaller& caller) JOBQ_REQUIRES(notifier_.mutex_);
    bool hasEvents() const JOBQ_REQUIRES(notifier_.mutex_);
    bool mustWait(Instant deadline) const JOBQ_REQUIRES(notifier_.mutex_);
    void arm(Instant deadline, SuspendedCall call) JOBQ_REQUIRES(notifier_.mutex_);
    void disarm() JOBQ_REQUIRES(notifier_.mutex_);

    CompletionNotifier& notifier_;
    const JobKey job_;
    const Interest interest_;
    // The following fields are guarded by notifier_.mutex_.
    bool armed_ = false;  // the call is to be resumed
    Instant deadline_{};  // of an armed waiter
    bool news_ = false;
    // The job has or may have ended. Never reset, because one call may report the end together with a chunk.
    bool ended_ = false;
    bool hasChunks_ = false;
    bool hasChanged_ = false;  // since the last event
    Instant changesFrom_{};
    std::size_t bytes_ = 0;   // in the chunks since the last poll
    std::size_t wanted_ = 0;  // bytes of chunks that end the wait
    std::multimap<JobId, Waiter*>::iterator place_;
  };

  /// Continues the waiters of a job that has ended or is gone.
  void announce(const JobId& job);
  /// Does the same, but may continue one of the calls for the end of the job on this thread
  /// (CallResumer::continueHere). Called without a lock.
  void announceHere(const JobId& job);

  /// Continues the waiters for chunks of a job with new chunks of `bytes` bytes in all.
  void announceChunk(const JobId& job, std::size_t bytes);

  /// Continues the waiters for changes of a job with another attempt or progress, or with a new log line.
  void announceChange(const JobId& job);

  /// Sets the listener, before the first waiter. `listener` is valid until the last waiter has come.
  void setListener(WaiterListener& listener) { listener_ = &listener; }

  bool hasWaiters() const;
  /// Returns true if a caller waits for the job now.
  bool isAwaited(const JobId& job) const;

  /// Returns the awaited jobs behind the id `after`, in ascending order of their ids, at most `most`. An empty `after`
  /// begins with the first job.
  std::vector<AwaitedJob> awaited(const JobId& after, std::size_t most) const;

  /// Returns the number of waiters for chunks.
  std::size_t streams() const;
  /// Returns the pause between two tries of a caller without room for its reading: a millisecond for each waiting
  /// caller, and 100 ms to 5 s. Up to 5,000 such callers together try a thousand times a second at most, and each of
  /// more callers once in 5 s.
  Millis roomPause() const;

  /// Continues all waiters of an endpoint, because some of its jobs are gone and the storage does not name the jobs
  /// (purge).
  void announceAllOf(std::string_view endpoint);

  /// Continues all waiters, because the storage has not told which jobs have ended. A waiter whose job goes on waits
  /// again.
  void announceAll();

  /// Ends every wait, now and from now on, and joins the thread of the deadlines. Called at shutdown, by one thread.
  void close();

 private:
  struct ArmedWait {
    Instant deadline;
    Waiter* waiter;
    SuspendedCall call;
    bool isForEnd = false;  ///< the call reads a single answer, and no chunks

    bool operator<(const ArmedWait& other) const noexcept {
      return std::tie(deadline, waiter) < std::tie(other.deadline, other.waiter);
    }
  };
  /// A set, because its nodes move to another set and need no new memory. A lack of memory therefore stops no
  /// resumption.
  using ArmedWaits = std::set<ArmedWait>;

  ArmedWaits extractWaitsOf(const JobId& job);
  void wake(Waiter& waiter, ArmedWaits& ready) noexcept JOBQ_REQUIRES(mutex_);
  /// Resumes the calls. Called without the lock: the waiters may have ended.
  static void resumeAll(const ArmedWaits& ready) noexcept;
  void watchDeadlines();
  ArmedWaits extractOverdue() JOBQ_REQUIRES(mutex_);

  Clock& clock_;
  WaiterListener* listener_ = nullptr;
  mutable Mutex mutex_;
  Condition deadlinesChanged_;
  std::multimap<JobId, Waiter*> waiting_ JOBQ_GUARDED_BY(mutex_);
  ArmedWaits armed_ JOBQ_GUARDED_BY(mutex_);
  Instant sleepsUntil_ JOBQ_GUARDED_BY(mutex_) = Instant::max();  // the thread of the deadlines
  std::size_t streams_ JOBQ_GUARDED_BY(mutex_) = 0;
  std::atomic<std::size_t> changeWaiters_ = 0;  // changes with the mutex locked
  bool closed_ JOBQ_GUARDED_BY(mutex_) = false;
  std::thread thread_;
};

}  // namespace jobq
