// Fixture for a ThreadExecutor, with handlers defined by the test.
#pragma once

#include <atomic>
#include <cstddef>
#include <functional>
#include <future>
#include <memory>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "core/base/secret_box.h"
#include "core/endpoints/endpoint.h"
#include "core/jobs/claimer.h"
#include "core/jobs/completion_notifier.h"
#include "core/jobs/queue_signal.h"
#include "core/jobs/run_reports.h"
#include "core/workers/deferred_inserts.h"
#include "core/workers/remote/remote_run.h"
#include "core/workers/run/deadline_timer.h"
#include "core/workers/run/executor.h"
#include "core/workers/run/running_jobs.h"
#include "core/workers/run/worker_end.h"
#include "core/workers/thread_executor.h"
#include "jobq/job.h"
#include "jobq/job_handler.h"
#include "jobq/lease_store.h"
#include "jobq/mutex.h"
#include "jobq/time.h"
#include "testkit/temporary_folder.h"
#include "tests/support/fakes.h"
#include "unit_storage.h"

namespace jobq::test {

/// Records the executor's events of its workers. Any thread may call the methods.
class RecordedEvents final : public WorkerEvents {
 public:
  void workerReady(const EndpointId& endpoint, const WorkerId& worker) override {
    add("ready " + endpoint + " " + worker);
  }
  void workerGone(const EndpointId&, const WorkerId& worker, const WorkerEnd& end) override {
    add("gone " + worker + (end ? "" : ": " + end.failure().reason));
  }

  std::vector<std::string> all() const {
    Lock lock(mutex_);
    return all_;
  }
  bool has(std::size_t count) const {
    return holdsSoon([&] { return all().size() >= count; });
  }

 private:
  void add(std::string event) {
    Lock lock(mutex_);
    all_.push_back(std::move(event));
  }

  mutable Mutex mutex_;
  std::vector<std::string> all_ JOBQ_GUARDED_BY(mutex_);
};

using HandlerBody = std::function<std::string(std::string_view input, JobContext& context)>;

class RunningHandlers final : public HandlerFactory {
 public:
  std::unique_ptr<JobHandler> make(const HandlerEnv& env) override {
    if (onMake) onMake(env);
    return std::make_unique<Handler>(run);
  }

  HandlerBody run = [](std::string_view, JobContext&) { return std::string("\"done\""); };
  std::function<void(const HandlerEnv&)> onMake;

 private:
  class Handler final : public JobHandler {
   public:
    explicit Handler(const HandlerBody& run) : run_(run) {}
    std::string run(std::string_view input, JobContext& context) override { return run_(input, context); }

   private:
    const HandlerBody& run_;
  };
};

/// A ThreadExecutor with all dependencies, in one separate object: the test of an abandoned thread never frees the
/// object.
struct ExecutorFixture {
  ExecutorFixture() {
    auto made = std::make_shared<Endpoint>();
    made->spec.id = "ep";
    made->spec.maxStuck = 3;
    made->spec.stopGrace = Millis(5'000);  // never elapses without the test, because the clock is moved by hand
    made->policy = &storage.policy;
    auto release = std::make_shared<Release>();
    release->handler = &handlers;
    release->env = {{"CITY", "Ulm"}};
    release->script = "a-script";
    made->release = std::move(release);
    endpoint = std::move(made);
  }

  void startWorker(const WorkerId& worker = "w") { executor.startWorker(endpoint, endpoint->release, worker, events); }
  /// Stores a job, claims the job for the worker and assigns the job to the worker.
  LeaseRef give(const JobId& id, const WorkerId& worker = "w") {
    storage.insert(id);
    return giveClaimed(storage.claim(worker));
  }
  LeaseRef giveClaimed(ClaimedJob job) {
    const LeaseRef lease = job.lease;
    executor.assign(std::move(job));
    return lease;
  }
  Job find(const JobId& id) const { return storage.real->jobs().find({"ep", id}).value(); }

  test::UnitStorage storage;
  const testkit::TemporaryFolder folder;
  const SecretBox secrets{folder / "secret.key"};
  QueueSignal queueSignal{{"ep"}};
  ClaimerSlot claimer{queueSignal};
  CompletionNotifier watch{storage.clock};
  CountingDeliveries deliveries;
  RunReports reports{*storage, queueSignal, claimer, watch, deliveries};
  RunningJobs running;
  RunningHandlers handlers;
  EndpointPtr endpoint;
  RecordedEvents events;
  CallingOverdueJobs overdue{[this] { reports.announce(storage->leases().sweep(100)); }};
  DeadlineTimer deadlines{storage.clock, storage.log, overdue};
  const RemoteRun::Deps remoteRuns{reports, *storage, running, deadlines, secrets, storage.clock};
  DeferredInserts inserts{*storage, watch, storage.clock, storage.log};
  ThreadExecutor executor{{reports, *storage, running, deadlines, secrets, inserts, storage.clock, storage.log}};
};

}  // namespace jobq::test
