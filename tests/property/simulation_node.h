// The parts of a simulated process: objects of the core, and played workers.
#pragma once

#include <algorithm>
#include <deque>
#include <new>
#include <set>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "core/endpoints/endpoint.h"
#include "core/jobs/completion_notifier.h"
#include "core/jobs/job_service.h"
#include "core/jobs/queue_signal.h"
#include "core/jobs/run_reports.h"
#include "core/maintenance/sweeper.h"
#include "core/workers/dispatcher.h"
#include "core/workers/executor.h"
#include "core/workers/running_jobs.h"
#include "core/workers/worker_pools.h"
#include "core/workers/worker_supervisor.h"
#include "jobq/job.h"
#include "jobq/lease_store.h"
#include "jobq/log.h"
#include "jobq/storage.h"
#include "simulation.h"
#include "tests/support/fakes.h"

namespace jobq::model {

// Workers as the dispatcher sees them. Each event waits in this object until the schedule releases it.
struct Simulation::Workshop final : Executor {
  explicit Workshop(Simulation& simulation) : world(simulation) {}

  void startWorker(const EndpointPtr& endpoint, const ReleasePtr&, const WorkerId& worker, WorkerEvents& to) override {
    events = &to;
    starting.push_back({endpoint->spec.id, worker});
  }
  void assign(ClaimedJob job) override {
    if (world.random_() % 40 == 0) throw std::bad_alloc();
    world.check(idle.erase({job.endpoint, job.worker}) == 1, job.lease.job + " was given to a worker that is not free");
    Run run{job.lease, job.endpoint, job.worker};
    world.begins(run);
    running.push_back(std::move(run));
  }
  void stopWorker(const WorkerId& worker) override {
    const auto found =
        std::find_if(idle.begin(), idle.end(), [&](const Place& place) { return place.second == worker; });
    world.check(found != idle.end(), "a worker was dismissed that is not free");
    leaving.push_back(*found);
    idle.erase(found);
  }

  using Place = std::pair<EndpointId, WorkerId>;
  Simulation& world;
  WorkerEvents* events = nullptr;
  std::deque<Place> starting;
  std::set<Place> idle;
  std::vector<Run> running;
  std::deque<Place> leaving;
};

// A refused change of a worker's state is a finding.
struct Simulation::NodeLog final : Log {
  explicit NodeLog(const Simulation& simulation) : world(simulation) {}

  void write(LogLevel, std::string_view event, std::string_view message) noexcept override {
    if (event == "worker.state" && world.found_.empty()) world.found_ = message;
  }

  const Simulation& world;
};

struct Simulation::Deps {
  Deps(Simulation& world, Storage& storage, const std::string& node)
      : log(world),
        queueSignal({"kept", "scaled", "single"}),
        watch(*world.clock_),
        jobs(storage, queueSignal, watch, deliveries),
        reports(storage, queueSignal, watch, deliveries),
        pools({queueSignal, *world.clock_, log}, world.endpoints_),
        supervisor({pools, storage, queueSignal, *world.workshop_, running, log}, node),
        dispatcher({pools, supervisor, storage, queueSignal, *world.workshop_, running, *world.clock_, log}, node),
        swept([this](const SweepResult& result) {
          reports.announce(result);
          for (const LeaseRef& lease : result.stopped) supervisor.stopRun(lease);
        }),
        sweeper(storage, *world.clock_, log) {
    sweeper.setListener(swept);
  }

  NodeLog log;
  QueueSignal queueSignal;
  CompletionNotifier watch;
  test::CountingDeliveries deliveries;
  JobService jobs;
  RunReports reports;
  RunningJobs running;
  WorkerPools pools;
  WorkerSupervisor supervisor;
  Dispatcher dispatcher;
  test::CallingSweepListener swept;
  Sweeper sweeper;
};

}  // namespace jobq::model
