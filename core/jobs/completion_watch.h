// Room 10 (sign-off), the other half: callers who wait for a job to end. Each sleeps on its own condition and is woken
// once; nobody polls the storage.
#pragma once

#include <functional>
#include <map>
#include <stop_token>

#include "jobq/job.h"
#include "jobq/time.h"

namespace jobq {

/// Where a waiter hears that nobody waits for its answer any more. It is asked only when the wait turns out to be long,
/// because most are not.
using GoneSignal = std::function<std::stop_token()>;

/// Any thread.
class CompletionWatch {
 public:
  explicit CompletionWatch(Clock& clock) : clock_(clock) {}

  /// A place in the waiting room. Take it before the job is looked at (or put in line): an end that comes between the
  /// look and the wait is then not missed.
  class Ticket {
   public:
    Ticket(CompletionWatch& watch, const JobId& job);
    ~Ticket();
    Ticket(const Ticket&) = delete;
    Ticket& operator=(const Ticket&) = delete;

    /// Waits until the job was announced, the watch closed, the waiter's client has gone, or `deadline`.
    void wait(Instant deadline, const GoneSignal& gone);

   private:
    bool waitAMoment(Instant deadline);
    void waitLong(Instant deadline);
    friend class CompletionWatch;
    CompletionWatch& watch_;
    Condition done_;
    bool announced_ = false;  // guarded by watch_.mutex_
    std::multimap<JobId, Ticket*>::iterator place_;
  };

  /// The job has ended or is gone.
  void announce(const JobId& job);

  /// Ends every wait, now and from now on (shutdown).
  void close();

 private:
  Clock& clock_;
  Mutex mutex_;
  std::multimap<JobId, Ticket*> waiting_ JOBQ_GUARDED_BY(mutex_);
  bool closed_ JOBQ_GUARDED_BY(mutex_) = false;
};

}  // namespace jobq
