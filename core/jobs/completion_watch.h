// Room 10 (sign-off), the other half: callers who wait for a job to end, or for its next chunk. Each sleeps on its own
// condition; nobody polls the storage.
#pragma once

#include <functional>
#include <map>
#include <stop_token>
#include <string_view>

#include "jobq/job.h"
#include "jobq/mutex.h"
#include "jobq/time.h"

namespace jobq {

/// Where a waiter hears that nobody waits for its answer any more. It is asked only when the wait turns out to be long,
/// because most are not.
using GoneSignal = std::function<std::stop_token()>;

/// Any thread.
class CompletionWatch {
 public:
  explicit CompletionWatch(Clock& clock) : clock_(clock) {}

  /// What a waiter wants to hear of: the job's end (or that it is gone), or every new chunk too.
  enum class Interest { end, chunks };

  /// A place in the waiting room. Take it before the job is looked at (or put in line): news that come between the look
  /// and the wait are then not missed.
  class Ticket {
   public:
    Ticket(CompletionWatch& watch, JobKey job, Interest interest = Interest::end);
    ~Ticket();
    Ticket(const Ticket&) = delete;
    Ticket& operator=(const Ticket&) = delete;

    /// True: there was news since the last call; look at the job again, and wait again when it is not enough. False:
    /// the wait is over, because the watch closed, the waiter's client has gone, or `deadline` is reached.
    [[nodiscard]] bool wait(Instant deadline, const GoneSignal& gone);

   private:
    bool waitAMoment(Instant deadline);
    void waitLong(Instant deadline);
    bool mustWait(Instant deadline) const JOBQ_REQUIRES(watch_.mutex_);
    bool takeNews();
    friend class CompletionWatch;
    CompletionWatch& watch_;
    const JobKey job_;
    const Interest interest_;
    Condition changed_;
    bool news_ = false;  // guarded by watch_.mutex_
    bool left_ = false;  // guarded by watch_.mutex_
    std::multimap<JobId, Ticket*>::iterator place_;
  };

  /// The job has ended or is gone.
  void announce(const JobId& job);

  /// The job has a new chunk.
  void announceChunk(const JobId& job);

  /// Some jobs of the endpoint are gone, nobody knows which (purge).
  void announceSome(std::string_view endpoint);

  /// Ends every wait, now and from now on (shutdown).
  void close();

 private:
  void wake(const JobId& job, bool ended);

  Clock& clock_;
  Mutex mutex_;
  std::multimap<JobId, Ticket*> waiting_ JOBQ_GUARDED_BY(mutex_);
  bool closed_ JOBQ_GUARDED_BY(mutex_) = false;
};

}  // namespace jobq
