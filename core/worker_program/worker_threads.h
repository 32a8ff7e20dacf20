// All threads of the program jobq-worker.
#pragma once

#include <cstddef>
#include <stop_token>

#include "core/handler_process/bounded_threads.h"
#include "core/handler_process/job_runner.h"
#include "core/worker_program/jobs_in_hand.h"
#include "core/worker_program/report_sender.h"
#include "core/worker_program/result_queue.h"
#include "jobq/time.h"

namespace jobq::worker {

/// A handler thread for each job that may run at once, and a thread each for results and for the calls for jobs, stops
/// and pings.
/// Used by one thread.
class WorkerThreads {
 public:
  /// How the worker runs its jobs.
  struct Plan {
    std::size_t concurrency = 1;  ///< jobs that run at once
    std::size_t batch = 1;        ///< most jobs of one call
    Millis pingInterval{10'000};
  };

  /// The objects of `deps` and `runners` outlive the object.
  WorkerThreads(const CallDeps& deps, JobRunners& runners, Plan plan);

  void start();

  /// Takes no further job, lets the running jobs end within `drain`, and then stops the rest without a report: the
  /// server gives such jobs to other workers. Returns false if a thread still runs then, so that the process must end
  /// without destructors.
  bool stop(Millis drain);

 private:
  bool endHandlers(Instant latest);
  bool endParkedCalls(BoundedThreads& threads);

  const CallDeps deps_;
  JobRunners& runners_;
  const Plan plan_;
  JobsInHand jobs_;
  ResultQueue results_;
  std::stop_source takingOver_;
  std::stop_source sendingOver_;
  std::stop_source over_;
  BoundedThreads taking_;
  BoundedThreads handlers_;
  BoundedThreads sending_;
  BoundedThreads watching_;
};

}  // namespace jobq::worker
