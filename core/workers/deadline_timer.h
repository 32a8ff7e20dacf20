// Watches the execution timeouts of the jobs of this node. The thread sleeps until the earliest deadline, so a job is
// stopped when its time is over and not at the next sweep.
#pragma once

#include <functional>
#include <set>
#include <thread>

#include "core/base/service.h"
#include "jobq/log.h"
#include "jobq/mutex.h"
#include "jobq/time.h"

namespace jobq {

/// Any thread. The timer outlives every Entry.
class DeadlineTimer final : public Service {
 public:
  /// `endOverdue` makes the store end all overdue jobs and stops the handlers of the jobs of this node. The timer's
  /// thread and worker threads call `endOverdue`, also at the same time. Exceptions on the timer's thread are logged.
  DeadlineTimer(Clock& clock, Log& log, std::function<void()> endOverdue);
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

  /// Calls `endOverdue` on the calling thread. Exceptions pass through.
  void endOverdue() { endOverdue_(); }

 private:
  std::multiset<Instant>::iterator add(Instant deadline);
  void loop();
  Instant nextCall() const JOBQ_REQUIRES(mutex_);
  void endOverdueOrLog() noexcept;

  Clock& clock_;
  Log& log_;
  const std::function<void()> endOverdue_;

  mutable Mutex mutex_;
  Condition changed_;
  std::multiset<Instant> deadlines_ JOBQ_GUARDED_BY(mutex_);
  Instant passed_ JOBQ_GUARDED_BY(mutex_) = Instant::min();   // deadlines up to here were handled
  Instant wakesAt_ JOBQ_GUARDED_BY(mutex_) = Instant::min();  // when the thread wakes without a notification
  bool stopping_ JOBQ_GUARDED_BY(mutex_) = false;
  std::thread thread_;
};

}  // namespace jobq
