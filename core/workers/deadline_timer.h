// The execution timeouts of the jobs that run here: a thread that sleeps until the earliest of them, so that a job is
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

/// Any thread. Outlives every Entry.
class DeadlineTimer final : public Service {
 public:
  /// `endOverdue` makes the store end every job whose time is over and stops the handlers of those that run here. It is
  /// called on the timer's thread and on threads of workers, at the same time too. What it throws is logged.
  DeadlineTimer(Clock& clock, Log& log, std::function<void()> endOverdue);
  ~DeadlineTimer() override { stop(); }

  void start() override;
  void stop() override;

  /// A job that runs: the timer watches its deadline for the entry's life.
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

  /// Calls `endOverdue` now. Throws what it throws.
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
  Instant passed_ JOBQ_GUARDED_BY(mutex_) = Instant::min();   // deadlines up to here have been acted upon
  Instant wakesAt_ JOBQ_GUARDED_BY(mutex_) = Instant::min();  // when the thread looks again by itself
  bool stopping_ JOBQ_GUARDED_BY(mutex_) = false;
  std::thread thread_;
};

}  // namespace jobq
