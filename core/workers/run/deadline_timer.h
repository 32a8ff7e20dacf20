// Watches the execution timeouts of the jobs of this node. The thread sleeps until the earliest deadline, so a job is
// stopped when its time is over and not at the next sweep.
#pragma once

#include <set>
#include <thread>

#include "core/base/service.h"
#include "core/model/overdue_jobs.h"
#include "jobq/log.h"
#include "jobq/mutex.h"
#include "jobq/time.h"

namespace jobq {

/// Any thread. The timer outlives every Entry.
class DeadlineTimer final : public Service {
 public:
  /// The timer's thread and worker threads call `jobs`, also at the same time. Exceptions on the timer's thread are
  /// logged. The referenced objects outlive the timer.
  DeadlineTimer(Clock& clock, Log& log, OverdueJobs& jobs) : clock_(clock), log_(log), jobs_(jobs) {}
  ~DeadlineTimer() override { stop(); }

  void start() override;
  void stop() override;

  /// A running job. The timer watches the deadline during the entry's life.
  class Entry {
   public:
    Entry(DeadlineTimer& timer, Instant deadline);
    ~Entry();
    Entry(const Entry&) = delete;
    Entry& operator=(const Entry&) = delete;

   private:
    DeadlineTimer& timer_;
    const std::multiset<Instant>::iterator place_;
  };

  /// Ends the overdue jobs on the calling thread. Exceptions pass through.
  void endOverdue() { (void)jobs_.endOverdue(); }

 private:
  std::multiset<Instant>::iterator add(Instant deadline);
  void loop();
  Instant nextCall() const JOBQ_REQUIRES(mutex_);
  void endOverdueOrLog() noexcept;

  Clock& clock_;
  Log& log_;
  OverdueJobs& jobs_;

  mutable Mutex mutex_;
  Condition changed_;
  std::multiset<Instant> deadlines_ JOBQ_GUARDED_BY(mutex_);
  Instant passed_ JOBQ_GUARDED_BY(mutex_) = Instant::min();   // deadlines up to here were handled
  Instant wakesAt_ JOBQ_GUARDED_BY(mutex_) = Instant::min();  // when the thread wakes without a notification
  bool stopping_ JOBQ_GUARDED_BY(mutex_) = false;
  std::thread thread_;
};

}  // namespace jobq
