// The jobs that run before their insert (core/jobs/deferred_insert.h), and the timer that stores the jobs with longer
// runs. Only endpoints most of whose last runs were brief may defer inserts: a longer run costs two writes in any case,
// and callers should see the job in the meantime.
#pragma once

#include <map>
#include <memory>
#include <thread>

#include "core/base/service.h"
#include "core/jobs/completion_notifier.h"
#include "core/jobs/deferred_insert.h"
#include "core/jobs/run_stopper.h"
#include "jobq/job.h"
#include "jobq/log.h"
#include "jobq/mutex.h"
#include "jobq/storage.h"
#include "jobq/time.h"

namespace jobq {

/// Owner of the timer's thread. Any thread calls the functions other than start() and stop().
class DeferredInserts final : public Service {
 public:
  /// Time from the begin of a run to the begin of the insert, which takes its turn after the inserts of other runs. A
  /// run that ends earlier, and neither reports nor reads the id of the job, is brief.
  static constexpr Millis kLatest{5};
  /// An endpoint with kProof points may defer inserts, and no endpoint has more than kMostPoints. A brief run gives a
  /// point; any other run, and a run still unfinished after kLatest, takes kPenalty points. A thread that waits for a
  /// processor makes a run long now and then, so a single long run does not end the deferring.
  static constexpr int kProof = 8;
  static constexpr int kMostPoints = 32;
  static constexpr int kPenalty = 8;

  /// All references outlive the object.
  DeferredInserts(Storage& storage, CompletionNotifier& completions, Clock& clock, Log& log)
      : storage_(storage), completions_(completions), clock_(clock), log_(log) {}
  ~DeferredInserts() override { stop(); }

  /// Sets the stopper of the runs of lost jobs, before the first job. `stopper` is valid until the last run has ended.
  void setStopper(RunStopper& stopper) { stopper_ = &stopper; }

  void start() override;
  /// Stores each job without an insert, and ends the thread. No insert is deferred afterwards.
  void stop() override;

  /// Returns true if a job of the endpoint may run before its insert.
  bool mayDefer(const EndpointId& endpoint) const;

  /// Notes the end of a run at the endpoint, deferred or not.
  void noteRun(const EndpointId& endpoint, bool isBrief) noexcept;

  /// Stores the job in kLatest unless the insert has ended before. If the storage refuses the job, the caller is woken
  /// and the run is stopped, at that time at the latest. The run of the job is about to begin. Throws std::bad_alloc.
  void watch(const std::shared_ptr<DeferredInsert>& insert);

  /// Returns when each watched job is stored or lost.
  void storeAll() noexcept;

 private:
  /// By the moment at which the insert has to begin.
  using Watched = std::multimap<Instant, std::shared_ptr<DeferredInsert>>;

  void loop();
  void count(const EndpointId& endpoint, bool isBrief) JOBQ_REQUIRES(mutex_);
  void storeEach(const Watched& due) noexcept;
  void endRun(const JobId& job) noexcept;

  Storage& storage_;
  CompletionNotifier& completions_;
  Clock& clock_;
  Log& log_;
  RunStopper* stopper_ = nullptr;

  mutable Mutex mutex_;
  Condition changed_;
  std::map<EndpointId, int> points_ JOBQ_GUARDED_BY(mutex_);  // endpoints come and go, and an entry is small
  Watched watched_ JOBQ_GUARDED_BY(mutex_);
  Instant wakesAt_ JOBQ_GUARDED_BY(mutex_) = Instant::max();  // when the thread wakes without a notification
  bool isStoring_ JOBQ_GUARDED_BY(mutex_) = false;            // the thread has jobs that have left watched_
  bool stopping_ JOBQ_GUARDED_BY(mutex_) = false;
  std::thread thread_;
};

}  // namespace jobq
