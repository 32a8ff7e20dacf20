// The jobs of a worker, from the hand-out by the server until the server has the results.
#pragma once

#include <atomic>
#include <cstddef>
#include <deque>
#include <map>
#include <memory>
#include <optional>
#include <span>
#include <stop_token>
#include <utility>
#include <vector>

#include "core/worker_program/taken_job.h"
#include "jobq/job.h"
#include "jobq/mutex.h"

namespace jobq::worker {

/// A job in hand.
struct JobInHand {
  explicit JobInHand(TakenJob taken) : job(std::move(taken)) {}

  const TakenJob job;
  std::stop_source stop;
  std::atomic<bool> isAbandoned{false};  ///< the worker ends before the handler does: no result is reported
  std::atomic<bool> isLost{false};       ///< the handler has died, and the server may hand out the job again at once
};
using JobPtr = std::shared_ptr<JobInHand>;

/// Any thread may call.
class JobsInHand {
 public:
  /// The jobs that the worker can run now.
  struct Demand {
    std::size_t free = 0;
    bool holdsJobs = false;
  };

  /// `handlers` is the number of handlers that the worker starts.
  explicit JobsInHand(std::size_t handlers) : starting_(handlers) {}

  /// Notes that a further handler is ready for a job.
  void addHandler();

  /// Blocks until all handlers are ready, at least one is free, no job waits for a handler, and fewer results than
  /// handlers are unsent. Returns an empty optional once no further job may be taken. Only the calling thread adds
  /// jobs, so that `holdsJobs` stays true until the server has the call.
  std::optional<Demand> awaitDemand();
  /// Adds jobs. Returns the jobs in hand already, whose current runs go on. A lost job is added anew.
  std::vector<JobId> add(std::vector<TakenJob> jobs);

  /// Blocks until there is a job for the calling handler. `ended` is the last job of this handler, null at first: the
  /// handler is free again, and the job stays in hand. Returns null once no further job comes.
  JobPtr awaitJob(const JobPtr& ended = nullptr);
  /// Removes lost jobs, and jobs whose results the server has, or no longer needs.
  void remove(std::span<const JobPtr> jobs);

  /// Requests the stop of a job. A job that is not in hand is ignored.
  void stopJob(const JobId& job);
  /// Returns the ids of all jobs in hand except lost ones.
  std::vector<JobId> ids() const;

  /// Lets awaitDemand() return without a demand.
  void endTaking();
  /// Lets awaitJob() return null after the last job. The thread that adds jobs has ended before.
  void endHandlers();
  /// Requests the stop of all jobs, and marks the jobs as abandoned. Returns the number of jobs.
  std::size_t abandonAll();

 private:
  bool mayTake() const JOBQ_REQUIRES(mutex_);
  bool mustWakeHandler() JOBQ_REQUIRES(mutex_);

  mutable Mutex mutex_;
  Condition demandCame_;  // the thread that takes jobs waits
  Condition jobCame_;     // handlers wait
  std::size_t starting_ JOBQ_GUARDED_BY(mutex_);
  std::size_t busy_ JOBQ_GUARDED_BY(mutex_) = 0;      // handlers with a job
  std::size_t sleeping_ JOBQ_GUARDED_BY(mutex_) = 0;  // handlers in awaitJob()
  bool isWaking_ JOBQ_GUARDED_BY(mutex_) = false;     // a handler was notified and has not woken yet
  std::size_t handlers_ JOBQ_GUARDED_BY(mutex_) = 0;  // ready handlers
  std::deque<JobPtr> waiting_ JOBQ_GUARDED_BY(mutex_);
  std::map<JobId, JobPtr> jobs_ JOBQ_GUARDED_BY(mutex_);
  bool isTakingOver_ JOBQ_GUARDED_BY(mutex_) = false;
  bool isHandlingOver_ JOBQ_GUARDED_BY(mutex_) = false;
};

}  // namespace jobq::worker
