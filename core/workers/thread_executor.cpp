#include "core/workers/thread_executor.h"

#include <algorithm>
#include <exception>
#include <utility>

#include "core/base/backoff.h"
#include "core/base/secret_box.h"
#include "core/base/semaphore.h"
#include "core/base/service.h"
#include "core/jobs/deferred_insert.h"
#include "core/jobs/run_reports.h"
#include "core/model/handler_run.h"
#include "core/workers/deferred_inserts.h"
#include "core/workers/run/run_context.h"

namespace jobq {
namespace {

/// Largest output that the worker itself sends to a waiting caller. A larger output would keep the worker from the next
/// job.
constexpr std::size_t kAnsweredHere = 64UL << 10;

std::size_t outputSize(const Outcome& outcome) {
  return std::visit([](const auto& each) { return each.output.size(); }, outcome);
}

}  // namespace

// Shared by the executor and the worker's own thread, because stop() forgets an abandoned worker while the thread still
// runs. Such a thread also uses the executor and the executor's Deps, so the process ends without destroying them
// (core/main.cpp).
class ThreadExecutor::Worker {
 public:
  Worker(const Deps& deps, EndpointPtr endpoint, ReleasePtr release, WorkerId id, WorkerEvents& events)
      : deps_(deps),
        endpoint_(std::move(endpoint)),
        release_(std::move(release)),
        id_(std::move(id)),
        events_(events) {}

  // Runs the whole life of the worker. workerGone() is the last call to the supervisor.
  void threadMain() {
    nameThread("worker");
    events_.workerGone(endpoint_->spec.id, id_, runJobs());
  }

  void assign(ClaimedJob job, std::shared_ptr<DeferredInsert> insert) {
    auto task = std::make_unique<Task>(deps_, std::move(job), std::move(insert));
    Lock lock(mutex_);
    current_ = task->job.lease;
    jobStop_ = task->entry.token();
    nextTask_ = std::move(task);
    const bool wakes = std::exchange(isWaiting_, false);
    lock.unlock();  // the woken thread needs the mutex at once
    if (wakes) news_.post();
  }

  void stopWorker() {
    Lock lock(mutex_);
    stopRequested_ = true;
    if (std::exchange(isWaiting_, false)) news_.post();
  }

  // Makes the worker drop the outcome of the current job, and start no further job. Returns the lease of the current
  // job, if any.
  std::optional<LeaseRef> abandonJob() {
    Lock lock(mutex_);
    givenUp_.request_stop();
    return current_;
  }

  // Returns true if the current job has been stopped: a shutdown does not wait for such a job.
  bool isStopped() {
    Lock lock(mutex_);
    return jobStop_.stop_requested();
  }

  const Endpoint& endpoint() const { return *endpoint_; }
  std::thread thread;
  bool ended = false;  // guarded by the executor's mutex

 private:
  struct Task {
    Task(const Deps& deps, ClaimedJob claimed, std::shared_ptr<DeferredInsert> deferred)
        : job(std::move(claimed)),
          insert(std::move(deferred)),
          deadline(deps.clock.now() + job.runsFor),
          input(deps.running.inputs().hold(job.endpoint, job.input.size())),
          entry(deps.running, job.lease, insert),
          limit(deps.deadlines, deadline) {}
    const ClaimedJob job;
    const std::shared_ptr<DeferredInsert> insert;  // null if the storage has had the job from the start
    // A little later than the storage's own moment, because the answer of the claim took time.
    const Instant deadline;
    const InputMemory::Held input;
    const RunningJobs::Entry entry;
    const DeadlineTimer::Entry limit;
  };

  // Wakes the waiters of a job in its destructor, if the outcome was accepted.
  struct EndAnnouncement {
    EndAnnouncement(RunReports& to, const ClaimedJob& ended) : reports(to), job(ended) {}
    ~EndAnnouncement() {
      if (isAccepted) reports.announceEnd(job, answersHere);
    }
    EndAnnouncement(const EndAnnouncement&) = delete;
    EndAnnouncement& operator=(const EndAnnouncement&) = delete;

    RunReports& reports;
    const ClaimedJob& job;
    bool isAccepted = false;
    bool answersHere = false;
  };

  // Makes the handler and runs jobs until stopWorker().
  WorkerEnd runJobs() {
    try {
      const auto handler =
          release_->handler->make(HandlerEnv{endpoint_->spec.id, id_, release_->env, release_->script});
      events_.workerReady(endpoint_->spec.id, id_);
      while (auto task = nextTask()) {
        EndAnnouncement end(deps_.reports, task->job);
        // The worker is ready before its caller has the answer, because the caller's next job may come at once.
        if (!work(*handler, *task, end)) events_.workerReady(endpoint_->spec.id, id_);
      }
      return {};
    } catch (const std::exception& error) {
      return failureOf(error);
    } catch (...) {
      return WorkerFailure{"the handler threw an exception that is not a std::exception"};
    }
  }

  std::unique_ptr<Task> nextTask() {
    Lock lock(mutex_);
    // WorkerEvents::workerReady() comes before this call, so assign() may have stored the next job already.
    if (!nextTask_) {
      current_.reset();
      jobStop_ = {};
      isWaiting_ = !stopRequested_;
    }
    if (isWaiting_) {
      lock.unlock();
      news_.wait();
      lock.lock();
    }
    return givenUp_.stop_requested() ? nullptr : std::move(nextTask_);
  }

  // Returns true if the worker has its next job already.
  bool work(JobHandler& handler, const Task& task, EndAnnouncement& end) {
    const ClaimedJob& job = task.job;
    if (task.entry.token().stop_requested()) {  // cancelled or overdue before the start
      if (task.insert) task.insert->discard();
      // The caller of a discarded job is woken: no other thread knows of the job.
      end.isAccepted = task.insert && task.insert->state() != DeferredInsert::State::stored;
      return false;
    }
    Outcome outcome = Failed{};
    try {
      const Instant begin = deps_.clock.now();
      RunContext context({deps_.reports, deps_.clock, deps_.log}, job, task.insert.get(), task.deadline,
                         deps_.secrets.open(job.s3Config), task.entry.token());
      outcome = runHandler(handler, job.input, context);
      const bool isShort = deps_.clock.now() - begin < DeferredInserts::kLatest;
      deps_.inserts.noteRun(job.endpoint, isShort && !context.neededInsert());
    } catch (const std::exception& error) {
      outcome = Failed{error.what(), ""};
    }
    end.answersHere = outputSize(outcome) <= kAnsweredHere;
    return reportOutcome(task, RunReports::endOf(job.lease, std::move(outcome)), end);
  }

  // Reports the outcome, with pauses, until the storage accepts the outcome or calls it stale. The job stays
  // IN_PROGRESS meanwhile, so no other worker runs the job. Past the deadline, overdue jobs are ended first: the job is
  // TIMED_OUT then, and the outcome is stale. After abandonJob(), or if the node was fenced while the handler ran, no
  // outcome is reported: the handler was stopped and has not failed. Returns true if the worker has a next job already.
  bool reportOutcome(const Task& task, const EndedAttempt& ended, EndAnnouncement& end) {
    if (!task.entry.beginReport() || givenUp_.stop_requested()) return false;
    const ClaimedJob& job = task.job;
    const LeaseRef& lease = job.lease;
    const bool late = deps_.clock.now() >= task.deadline;
    Backoff backoff(deps_.clock, givenUp_.get_token());
    std::optional<FinishedRun> run;
    do {
      try {
        if (late && task.insert) task.insert->store();
        if (late) deps_.deadlines.endOverdue();
        if (givenUp_.stop_requested()) return false;
        run = deps_.reports.finishAndClaim(job, ended, task.insert.get());
      } catch (const std::exception& error) {  // any exception: ending the worker here would lose the outcome
        if (task.insert && task.insert->state() == DeferredInsert::State::lost) {
          deps_.log.write(LogLevel::error, "job.unstored", error.what());
          end.isAccepted = true;  // no outcome follows, and the caller reads 503
          return false;
        }
        deps_.log.write(LogLevel::error, "job.unfinished",
                        "the result of " + lease.job + " cannot be stored yet: " + error.what());
      }
    } while (!run && backoff.pause());
    end.isAccepted = run && run->result == ReportResult::accepted;
    if (run && run->result == ReportResult::staleAttempt) {
      deps_.log.write(LogLevel::information, "job.stale", "the result of " + lease.job + " is stale and was dropped");
    }
    return run && run->hasNext;
  }

  const Deps deps_;
  const EndpointPtr endpoint_;
  const ReleasePtr release_;
  const WorkerId id_;
  WorkerEvents& events_;
  std::stop_source givenUp_;

  Semaphore news_;  // notified of nextTask_ or stopRequested_
  Mutex mutex_;
  bool isWaiting_ JOBQ_GUARDED_BY(mutex_) = false;  // the worker's thread, for news_
  std::unique_ptr<Task> nextTask_ JOBQ_GUARDED_BY(mutex_);
  std::optional<LeaseRef> current_ JOBQ_GUARDED_BY(mutex_);
  std::stop_token jobStop_ JOBQ_GUARDED_BY(mutex_);  // stop token of the current job
  bool stopRequested_ JOBQ_GUARDED_BY(mutex_) = false;
};

void ThreadExecutor::startWorker(const EndpointPtr& endpoint, const ReleasePtr& release, const WorkerId& id,
                                 WorkerEvents& events) {
  reap(id);
  auto worker = std::make_shared<Worker>(deps_, endpoint, release, id, events);
  Lock lock(mutex_);
  worker->thread = std::thread([this, worker] {
    worker->threadMain();
    Lock ending(mutex_);
    worker->ended = true;
    changed_.notifyAll();
  });
  workers_[id] = worker;
}

void ThreadExecutor::assign(ClaimedJob job) { assignUnstored(std::move(job), nullptr); }

void ThreadExecutor::assignUnstored(ClaimedJob job, const std::shared_ptr<DeferredInsert>& insert) {
  std::shared_ptr<Worker> worker;
  {
    Lock lock(mutex_);
    worker = workers_.at(job.worker);
  }
  worker->assign(std::move(job), insert);
}

void ThreadExecutor::stopWorker(const WorkerId& id) {
  std::shared_ptr<Worker> worker;
  {
    Lock lock(mutex_);
    const auto found = workers_.find(id);
    if (found == workers_.end()) return;
    worker = found->second;
  }
  worker->stopWorker();
}

// Joins the ended threads. Waits for the thread of the worker `gone`, if any. The wait is short, because the worker has
// reported its end. A worker of the server has a new id, so there is no wait.
void ThreadExecutor::reap(const WorkerId& gone) {
  std::vector<std::shared_ptr<Worker>> ended;
  {
    Lock lock(mutex_);
    const auto former = workers_.find(gone);
    while (former != workers_.end() && !former->second->ended) changed_.wait(mutex_);
    std::erase_if(workers_, [&ended](auto& entry) {
      if (!entry.second->ended) return false;
      ended.push_back(std::move(entry.second));
      return true;
    });
  }
  for (const auto& worker : ended) worker->thread.join();
}

bool ThreadExecutor::awaitAllEnded(Instant deadline) {
  Lock lock(mutex_);
  const auto allEnded = [this]() JOBQ_REQUIRES(mutex_) {
    return std::all_of(workers_.begin(), workers_.end(), [](const auto& entry) { return entry.second->ended; });
  };
  while (!allEnded() && deps_.clock.now() < deadline) deps_.clock.waitUntil(mutex_, changed_, deadline);
  return allEnded();
}

void ThreadExecutor::wakeDrain() {
  Lock lock(mutex_);
  changed_.notifyAll();
}

// Waits until `deadline` for all worker threads to end. A worker with a stopped job is not awaited, because no
// caller needs the result.
void ThreadExecutor::drain(Instant deadline) {
  Lock lock(mutex_);
  const auto drained = [this]() JOBQ_REQUIRES(mutex_) {
    return std::all_of(workers_.begin(), workers_.end(),
                       [](const auto& entry) { return entry.second->ended || entry.second->isStopped(); });
  };
  while (!drained() && deps_.clock.now() < deadline) deps_.clock.waitUntil(mutex_, changed_, deadline);
}

// Stops unfinished jobs, and returns each job to the queue after the end of the handler, because another node may run
// the job at once. A handler that outlives the longest stopGrace among the endpoints of the running workers no longer
// keeps the job back. The return is repeated while the storage fails, within the same time.
void ThreadExecutor::stopUnfinishedWorkers() {
  deps_.inserts.storeAll();
  Millis grace{0};
  std::vector<Unfinished> rest = abandonJobs(grace);
  const Instant end = deps_.clock.now() + grace;
  for (const Unfinished& job : rest) deps_.running.stop(job.lease);
  std::map<EndpointId, std::vector<LeaseRef>> ended;
  for (Backoff backoff(deps_.clock, {});;) {
    const bool isOver = deps_.clock.now() >= end;
    moveEndedJobs(rest, ended, isOver);
    const bool areReleased = release(ended);
    if (isOver || (areReleased && rest.empty())) break;
    if (areReleased) {
      awaitEndOf(rest, end);
    } else {
      backoff.pause(end);
    }
  }
  awaitAllEnded(end);
}

// Makes all workers drop the outcomes of their jobs, and returns the jobs. Raises `grace` to their longest stopGrace.
std::vector<ThreadExecutor::Unfinished> ThreadExecutor::abandonJobs(Millis& grace) {
  std::vector<std::shared_ptr<Worker>> workers;
  {
    Lock lock(mutex_);
    for (const auto& [id, worker] : workers_) {
      if (!worker->ended) workers.push_back(worker);
    }
  }
  std::vector<Unfinished> jobs;
  for (const auto& worker : workers) {
    grace = std::max(grace, worker->endpoint().spec.stopGrace);
    if (const auto lease = worker->abandonJob()) jobs.push_back({worker, *lease});
  }
  return jobs;
}

// Moves the jobs of ended workers, or `all` jobs, from `rest` to `ended`.
void ThreadExecutor::moveEndedJobs(std::vector<Unfinished>& rest, std::map<EndpointId, std::vector<LeaseRef>>& ended,
                                   bool all) {
  Lock lock(mutex_);
  std::erase_if(rest, [&](const Unfinished& job) {
    if (!all && !job.worker->ended) return false;
    ended[job.worker->endpoint().spec.id].push_back(job.lease);
    return true;
  });
}

void ThreadExecutor::awaitEndOf(const std::vector<Unfinished>& rest, Instant deadline) {
  Lock lock(mutex_);
  const auto hasEnded = [&]() JOBQ_REQUIRES(mutex_) {
    return std::any_of(rest.begin(), rest.end(), [](const Unfinished& job) { return job.worker->ended; });
  };
  while (!hasEnded() && deps_.clock.now() < deadline) deps_.clock.waitUntil(mutex_, changed_, deadline);
}

// Removes the released jobs from `jobs`. Returns true if no job is left in `jobs`.
bool ThreadExecutor::release(std::map<EndpointId, std::vector<LeaseRef>>& jobs) {
  for (auto at = jobs.begin(); at != jobs.end();) {
    try {
      deps_.reports.giveBack(at->second, false);
      at = jobs.erase(at);
    } catch (const std::exception& error) {
      deps_.log.write(LogLevel::error, "drain.release",
                      std::to_string(at->second.size()) + " jobs of " + at->first +
                          " are still recorded as running and will be counted as lost: " + error.what());
      ++at;
    }
  }
  return jobs.empty();
}

std::size_t ThreadExecutor::stop(Millis drainTime) {
  {
    Lock lock(mutex_);
    for (const auto& [id, worker] : workers_) worker->stopWorker();
  }
  drain(deps_.clock.now() + drainTime);
  if (!awaitAllEnded(deps_.clock.now())) stopUnfinishedWorkers();
  reap({});
  std::map<WorkerId, std::shared_ptr<Worker>> abandoned;
  {
    Lock lock(mutex_);
    abandoned.swap(workers_);
  }
  for (const auto& [id, worker] : abandoned) {
    deps_.log.write(LogLevel::error, "worker.stuck",
                    "worker " + id + " of " + worker->endpoint().spec.id + " ignores its stop token and is abandoned");
    worker->thread.detach();
  }
  return abandoned.size();
}

}  // namespace jobq
