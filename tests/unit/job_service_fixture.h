// The calls on jobs and the reports of workers over the memory storage, with faults on demand.
#pragma once

#include <gtest/gtest.h>

#include <future>
#include <optional>
#include <stop_token>

#include "core/endpoints/endpoint.h"
#include "core/jobs/completion_notifier.h"
#include "core/jobs/job_service.h"
#include "core/jobs/queue_signal.h"
#include "core/jobs/run_reports.h"
#include "jobq/job.h"
#include "jobq/time.h"
#include "tests/support/fakes.h"
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
  /// Returns the signal of a caller that stays connected.
  static std::stop_token stays() { return {}; }
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
    auto waiting = std::async(std::launch::async, [=, this] { return jobs_.await(key(id), wait, stays); });
    storage_.clock.awaitWaiter(Millis(1), wait);
    return waiting;
  }

  mutable test::UnitStorage storage_;
  QueueSignal queueSignal_{{"ep"}};
  CompletionNotifier watch_{storage_.clock};
  test::CountingDeliveries deliveries_;
  JobService jobs_{*storage_, queueSignal_, watch_, deliveries_};
  RunReports reports_{*storage_, queueSignal_, watch_, deliveries_};
  Endpoint endpoint_;
};

}  // namespace jobq
