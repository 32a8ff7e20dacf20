// The dispatcher with executors controlled by the test, over a memory storage with a clock moved by hand.
#pragma once

#include <gtest/gtest.h>

#include <cstdint>
#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "core/endpoints/endpoint.h"
#include "core/jobs/claimer.h"
#include "core/jobs/completion_notifier.h"
#include "core/jobs/queue_signal.h"
#include "core/workers/deferred_inserts.h"
#include "core/workers/dispatcher.h"
#include "core/workers/node/node_life.h"
#include "core/workers/pool/pool_status.h"
#include "core/workers/pool/worker_pools.h"
#include "core/workers/pool/worker_supervisor.h"
#include "core/workers/run/executor.h"
#include "core/workers/run/running_jobs.h"
#include "jobq/job.h"
#include "jobq/job_handler.h"
#include "jobq/log.h"
#include "jobq/plugin.h"
#include "jobq/queue_policy.h"
#include "jobq/storage.h"
#include "jobq/time.h"
#include "testkit/loaded_plugin.h"
#include "testkit/manual_clock.h"

namespace jobq {

/// Starts no worker while `failing` throws; a started worker never becomes ready.
class SparseExecutor final : public Executor {
 public:
  void startWorker(const EndpointPtr&, const ReleasePtr&, const WorkerId& worker, WorkerEvents&) override {
    asked.push_back(worker);
    if (failing) failing();
  }
  void assign(ClaimedJob) override { FAIL() << "no worker is ready"; }
  void stopWorker(const WorkerId&) override { FAIL() << "no worker is ready"; }

  std::function<void()> failing;
  std::vector<WorkerId> asked;
};

/// Each worker is ready at once and keeps its job.
class BusyExecutor final : public Executor {
 public:
  explicit BusyExecutor(RunningJobs& running) : running_(running) {}
  void startWorker(const EndpointPtr& endpoint, const ReleasePtr&, const WorkerId& worker,
                   WorkerEvents& events) override {
    events.workerReady(endpoint->spec.id, worker);
  }
  void assign(ClaimedJob job) override {
    runs.push_back(std::make_unique<RunningJobs::Entry>(running_, job.lease));
    jobs.push_back(std::move(job));
  }
  void stopWorker(const WorkerId&) override {}

  std::vector<std::unique_ptr<RunningJobs::Entry>> runs;
  std::vector<ClaimedJob> jobs;

 private:
  RunningJobs& running_;
};

class ArrivalPolicy final : public QueuePolicy {
 public:
  std::string group(const JobSpec&) const override { return {}; }
  std::int64_t rank(const JobSpec&, Instant, const GroupState&) const override { return 0; }
};

class NoHandlers final : public HandlerFactory {
 public:
  std::unique_ptr<JobHandler> make(const HandlerEnv&) override { return nullptr; }
};

/// The dispatcher with its pools and its supervisor.
struct Dispatch {
  Dispatch(Storage& storage, QueueSignal& signal, Executor& executor, RunningJobs& running, Clock& clock, Log& log,
           const std::string& node, const std::vector<EndpointPtr>& endpoints)
      : claimer(signal),
        pools({signal, clock, log}, endpoints),
        life(storage, node),
        supervisor({pools, storage, signal, executor, running, life, log}, node),
        completions(clock),
        inserts(storage, completions, clock, log),
        dispatcher({pools, supervisor, storage, signal, claimer, executor, running, inserts, life, clock, log}) {
    life.join();
  }

  bool runPassIfDue() { return dispatcher.runPassIfDue(); }

  ClaimerSlot claimer;
  WorkerPools pools;
  NodeLife life;
  WorkerSupervisor supervisor;
  CompletionNotifier completions;
  DeferredInserts inserts;
  Dispatcher dispatcher;
};

class DispatcherTest : public testing::Test {
 protected:
  static EndpointPtr endpoint(HandlerFactory& handlers, const EndpointId& id, std::uint32_t min, std::uint32_t max) {
    auto endpoint = std::make_shared<Endpoint>();
    endpoint->spec.id = id;
    endpoint->spec.maxStuck = 3;
    auto release = std::make_shared<Release>();
    release->handler = &handlers;
    endpoint->release = std::move(release);
    endpoint->spec.workersMin = min;
    endpoint->spec.workersMax = max;
    return endpoint;
  }
  static std::vector<EndpointPtr> endpoints(HandlerFactory& handlers) { return {endpoint(handlers, "ep", 1, 1)}; }

  void submit(const EndpointId& endpoint) {
    JobSpec job;
    job.id = "job" + std::to_string(++submitted_);
    job.endpoint = endpoint;
    job.input = "{}";
    (void)storage_->jobs().insert(std::move(job), ArrivalPolicy());
    queueSignal_.notify(endpoint, false);
  }

  /// Runs passes until no work is left at this moment.
  void turn() {
    while (dispatch_.runPassIfDue()) continue;
  }

  WorkerCounts counts() const { return dispatch_.pools.status("ep").counts; }

  testkit::ManualClock clock_;
  testkit::SilentLog log_;
  testkit::MapConfig config_;
  const std::unique_ptr<Storage> storage_ = testkit::loadPlugin<Storage>(
      JOBQ_PLUGIN_DIR "/libjobq_storage_memory.so", "memory", PluginEnv{config_, clock_, log_, ".", false});
  NoHandlers handlers_;
  QueueSignal queueSignal_{{"ep"}};
  RunningJobs running_;
  int submitted_ = 0;
  SparseExecutor executor_;
  Dispatch dispatch_{*storage_, queueSignal_, executor_, running_, clock_, log_, "node", endpoints(handlers_)};
};

}  // namespace jobq
