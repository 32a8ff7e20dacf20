// The jobs that run before the storage has them (core/jobs/deferred_insert.h), and the timer that stores those whose
// runs are not brief. Only endpoints whose last runs were brief may defer inserts: a longer run costs two writes either
// way, and its job should be seen in the meantime.
#pragma once

#include <map>
#include <memory>
#include <thread>

#include "core/base/service.h"
#include "core/jobs/deferred_insert.h"
#include "jobq/job.h"
#include "jobq/log.h"
#include "jobq/mutex.h"
#include "jobq/storage.h"
#include "jobq/time.h"

namespace jobq {

/// Owner of the timer's thread. Any thread calls the functions other than start() and stop().
class DeferredInserts final : public Service {
 public:
  /// A run that takes less time, and neither reports nor reads the id of its job, is brief.
  static constexpr Millis kBrief{2};
  /// The storage has a job this long after the begin of its run.
  static constexpr Millis kLatest{5};
  /// So many runs of an endpoint in a row have to be brief before its next insert is deferred.
  static constexpr int kProof = 8;

  /// Everything here outlives the object.
  DeferredInserts(Storage& storage, Clock& clock, Log& log) : storage_(storage), clock_(clock), log_(log) {}
  ~DeferredInserts() override { stop(); }

  void start() override;
  /// Stores each job that the storage does not have, and ends the thread. No insert is deferred afterwards.
  void stop() override;

  /// Returns true if a job of the endpoint may run before its insert.
  bool mayDefer(const EndpointId& endpoint) const;

  /// Notes the end of a run at the endpoint, deferred or not.
  void noteRun(const EndpointId& endpoint, bool isBrief);

  /// Stores the job in kLatest unless the storage has the job then. The run of the job has just begun.
  void watch(const std::shared_ptr<DeferredInsert>& insert) noexcept;

  /// Stores each job that the storage does not have. Failures are logged, and tried again by the thread.
  void storeAll() noexcept;

 private:
  /// By the moment at which the storage has to have the job.
  using Watched = std::multimap<Instant, std::shared_ptr<DeferredInsert>>;

  void loop();
  void storeEach(Watched due) noexcept;
  bool storeOne(DeferredInsert& insert) noexcept;

  Storage& storage_;
  Clock& clock_;
  Log& log_;

  mutable Mutex mutex_;
  Condition changed_;
  // Brief runs in a row, counted up to kProof. Endpoints come and go, and an entry is small.
  std::map<EndpointId, int> briefRuns_ JOBQ_GUARDED_BY(mutex_);
  Watched watched_ JOBQ_GUARDED_BY(mutex_);
  Instant wakesAt_ JOBQ_GUARDED_BY(mutex_) = Instant::max();  // when the thread wakes without a notification
  bool stopping_ JOBQ_GUARDED_BY(mutex_) = false;
  std::thread thread_;
};

}  // namespace jobq
