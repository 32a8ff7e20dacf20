// Room 10 (sign-off), the other half: callers who wait for a job to end. Each sleeps on its own condition and is woken
// once; nobody polls the storage.
#pragma once

#include <map>

#include "jobq/job.h"
#include "jobq/time.h"

namespace jobq {

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

    /// Waits until the job was announced, the watch closed, or `deadline`.
    void wait(Instant deadline);

   private:
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
