// The calls on jobs and the reports of workers over the memory storage, with faults on demand.
#pragma once

#include <gtest/gtest.h>

#include <future>
#include <optional>
#include <utility>

#include "core/endpoints/endpoint.h"
#include "core/jobs/claimer.h"
#include "core/jobs/completion_notifier.h"
#include "core/jobs/job_service.h"
#include "core/jobs/queue_signal.h"
#include "core/jobs/run_reports.h"
#include "jobq/job.h"
#include "jobq/job_store.h"
#include "jobq/time.h"
#include "tests/support/fakes.h"
#include "tests/support/held_caller.h"
#include "unit_storage.h"

namespace jobq {

class JobServiceTest : public testing::Test {
 protected:
  JobServiceTest() {
    endpoint_.spec.id = "ep";
    endpoint_.policy = &storage_.policy;
    queueSignal_.clear("ep");
  }

  static JobSpec job(const JobId& id, bool lowPriority = false) {
    JobSpec job;
    job.id = id;
    job.endpoint = "ep";
    job.apiKeyId = "key";
    job.input = "{}";
    job.policy.lowPriority = lowPriority;
    return job;
  }
  static JobKey key(const JobId& id) { return {"ep", id}; }
  /// Returns true if the endpoint's signal was set since the last call, and clears the signal.
  bool wasNotified() {
    const bool wasSet = queueSignal_.isSet("ep");
    queueSignal_.clear("ep");
    (void)queueSignal_.consume();
    return wasSet;
  }
  void submit(const JobId& id) { (void)jobs_.submit(job(id), endpoint_, std::nullopt); }
  LeaseRef claim() const { return storage_.claim().lease; }
  std::future<std::optional<Job>> await(const JobId& id, Millis wait) {
    auto waiting = std::async(std::launch::async, [=, this] { return awaitNow(id, wait); });
    storage_.clock.awaitWaiter(Millis(1), wait);
    return waiting;
  }
  /// Waits on the calling thread.
  std::optional<Job> awaitNow(const JobId& id, Millis wait) {
    test::HeldCaller caller;
    return caller.complete(*jobs_.await(key(id), wait)).job;
  }
  /// The result of a submission with a wait for the end of the job.
  struct Waited {
    InsertResult inserted;
    std::optional<Job> job;
  };
  Waited submitAndAwait(const JobId& id, const std::optional<Idempotency>& idempotency, test::HeldCaller& caller) {
    auto submission = jobs_.submitAwaited(job(id), endpoint_, idempotency, Millis(5'000));
    if (!submission.wait) return {std::move(submission.inserted), {}};
    return {std::move(submission.inserted), caller.complete(*submission.wait).job};
  }

  mutable test::UnitStorage storage_;
  QueueSignal queueSignal_{{"ep"}};
  ClaimerSlot claimer_{queueSignal_};
  CompletionNotifier watch_{storage_.clock};
  test::CountingDeliveries deliveries_;
  JobService jobs_{*storage_, queueSignal_, claimer_, watch_, deliveries_};
  RunReports reports_{*storage_, queueSignal_, claimer_, watch_, deliveries_};
  Endpoint endpoint_;
};

}  // namespace jobq
