// Tests of the worker pools of a node and of the supervisor, which carries out the decisions of the pools, with an
// executor that records each call (core/workers/pool/worker_pools.h, core/workers/pool/worker_supervisor.h).
#include "core/workers/pool/worker_supervisor.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <memory>
#include <optional>
#include <stdexcept>
#include <string>
#include <string_view>
#include <thread>
#include <vector>

#include "core/jobs/queue_signal.h"
#include "core/workers/pool/worker_pools.h"
#include "testkit/manual_clock.h"
#include "testkit/wait_for.h"
#include "unit_storage.h"

namespace jobq {
namespace {

using testing::ElementsAre;
using testing::IsEmpty;

/// Records each call; a test reports the events of the workers itself.
class RecordingExecutor final : public Executor {
 public:
  void startWorker(const EndpointPtr&, const ReleasePtr&, const WorkerId& worker, WorkerEvents&) override {
    started.push_back(worker);
  }
  void assign(ClaimedJob job) override { assigned.push_back(job.worker); }
  void stopWorker(const WorkerId& worker) override { stopped.push_back(worker); }

  std::vector<WorkerId> started;
  std::vector<WorkerId> assigned;
  std::vector<WorkerId> stopped;
};

class EventLog final : public Log {
 public:
  void write(LogLevel, std::string_view event, std::string_view) noexcept override { events.emplace_back(event); }

  std::vector<std::string> events;
};

class SupervisedHandlers final : public HandlerFactory {
 public:
  std::unique_ptr<JobHandler> make(const HandlerEnv&) override { return nullptr; }
};

class WorkerSupervisorTest : public testing::Test {
 protected:
  std::shared_ptr<Endpoint> endpoint(std::uint32_t min, std::uint32_t max) {
    auto made = std::make_shared<Endpoint>();
    made->spec.id = "ep";
    made->spec.maxStuck = 3;
    made->release = newRelease();
    made->spec.workersMin = min;
    made->spec.workersMax = max;
    return made;
  }
  ReleasePtr newRelease() {
    auto release = std::make_shared<Release>();
    release->handler = &handlers_;
    release->templateId = "template";
    return release;
  }

  /// Starts the missing workers of a new endpoint and reports each worker ready.
  void begin(const std::shared_ptr<Endpoint>& rules) {
    rules_ = rules;
    pools_.setEndpoint(rules);
    signal_.clear("ep");
    supervisor_.startWhereNeeded();
    for (const WorkerId& worker : executor_.started) supervisor_.workerReady("ep", worker);
    executor_.started.clear();
  }
  void release() {
    auto changed = std::make_shared<Endpoint>(*rules_);
    changed->release = newRelease();
    rules_ = changed;
    pools_.setEndpoint(changed);
    signal_.clear("ep");
  }
  /// Submits a job and gives the job to an idle worker. Returns the claimed job.
  ClaimedJob runJob() {
    storage_.insert("job" + std::to_string(++submitted_));
    signal_.notify("ep", false);
    const std::vector<ClaimWant> wants = pools_.reserveWorkers({nullptr, 64});
    const std::vector<ClaimedJob> jobs = storage_->leases().claim(wants, storage_.life->holder(), 1).jobs;
    pools_.concludeReservations(wants, jobs);
    signal_.clear("ep");
    return jobs.at(0);
  }
  bool isWoken() { return signal_.consume(); }
  WorkerCounts counts() const { return pools_.status("ep").counts; }

  test::UnitStorage storage_;
  testkit::ManualClock& clock_ = storage_.clock;
  EventLog log_;
  SupervisedHandlers handlers_;
  std::shared_ptr<Endpoint> rules_;
  int submitted_ = 0;
  QueueSignal signal_{{"ep"}};
  RunningJobs running_;
  RecordingExecutor executor_;
  WorkerPools pools_{{signal_, clock_, log_}, {}};
  WorkerSupervisor supervisor_{{pools_, *storage_, signal_, executor_, running_, *storage_.life, log_}, "node"};
};

TEST_F(WorkerSupervisorTest, WorkersAreKeptAtTheMinimum) {
  begin(endpoint(2, 3));
  EXPECT_EQ(counts().idle, 2U);
  EXPECT_EQ(pools_.summaries().at(0).workersOfTemplates.at("template"), 2U);
  supervisor_.workerGone("ep", "node-1", {});
  EXPECT_TRUE(isWoken());
  supervisor_.startWhereNeeded();
  EXPECT_THAT(executor_.started, ElementsAre("node-3"));
}

// Used after a sweep whose lists are lost.
TEST_F(WorkerSupervisorTest, ARunOfAnEndedAttemptIsStopped) {
  begin(endpoint(2, 2));
  const ClaimedJob ended = runJob();
  const ClaimedJob goesOn = runJob();
  const RunningJobs::Entry stopped(running_, ended.lease);
  const RunningJobs::Entry kept(running_, goesOn.lease);
  supervisor_.stopEndedRuns();
  EXPECT_FALSE(stopped.token().stop_requested());
  (void)storage_->jobs().cancel({"ep", ended.lease.job});
  supervisor_.stopEndedRuns();
  EXPECT_TRUE(stopped.token().stop_requested());
  EXPECT_FALSE(kept.token().stop_requested());
}

TEST_F(WorkerSupervisorTest, WorkersBeyondThePartOfTheNodeLeaveWhenIdle) {
  begin(endpoint(3, 3));
  const ClaimedJob job = runJob();
  pools_.setShare({0, 3});
  EXPECT_TRUE(isWoken());
  supervisor_.stopIdleWorkers();
  EXPECT_EQ(executor_.stopped.size(), 2U);
  for (const WorkerId& worker : executor_.stopped) supervisor_.workerGone("ep", worker, {});
  supervisor_.startWhereNeeded();
  EXPECT_THAT(executor_.started, IsEmpty());
  supervisor_.workerReady("ep", job.worker);
  EXPECT_EQ(counts().idle, 1U) << "the node may have a third of the workers";
  pools_.setShare({});
  supervisor_.startWhereNeeded();
  EXPECT_EQ(executor_.started.size(), 2U);
}

TEST_F(WorkerSupervisorTest, AnEmptyQueueIsCountedOnce) {
  begin(endpoint(0, 3));
  signal_.notify("ep", true);
  supervisor_.startWhereNeeded();
  storage_.faults.failOperation("jobs.counts");
  EXPECT_NO_THROW(supervisor_.startWhereNeeded()) << "no job was reported since";
  signal_.notify("ep", false);
  EXPECT_THROW(supervisor_.startWhereNeeded(), StorageError);
  EXPECT_TRUE(signal_.isSet("ep")) << "a failed count is repeated";
}

/// The dispatcher counts the queue while the threads of callers claim and end jobs.
class CountRaceTest : public WorkerSupervisorTest {
 protected:
  CountRaceTest() {
    const auto rules = endpoint(1, 3);
    rules->spec.scaling = {ScalerType::requestCount, 1};
    begin(rules);
  }
  void submit() {
    storage_.insert("job" + std::to_string(++submitted_));
    signal_.notify("ep", false);
  }
  /// Gives the first queued job to the idle worker.
  ClaimedJob runFirst() {
    const std::vector<ClaimWant> wants = pools_.reserveWorkers({nullptr, 64});
    const std::vector<ClaimedJob> jobs = storage_.real->leases().claim(wants, storage_.life->holder(), 1).jobs;
    pools_.concludeReservations(wants, jobs);
    return jobs.at(0);
  }
  /// Calls `meanwhile` between the count of the queue and the decision.
  template <class Meanwhile>
  void decide(Meanwhile&& meanwhile) {
    (void)isWoken();
    storage_.faults.hold("jobs.counts");
    std::thread dispatcher([this] { supervisor_.startWhereNeeded(); });
    testkit::waitFor("the count of the queue", [this] { return storage_.faults.isHolding(); });
    meanwhile();
    storage_.faults.letGo();
    testkit::join("the dispatcher's pass", dispatcher);
  }
};

TEST_F(CountRaceTest, AJobClaimedDuringTheCountCountsOnce) {
  submit();
  decide([this] { (void)runFirst(); });
  EXPECT_THAT(executor_.started, IsEmpty());
  EXPECT_TRUE(isWoken()) << "the counted job may differ, so the next pass counts again";
}

TEST_F(CountRaceTest, AJobEndingDuringTheCountCountsNoMore) {
  submit();
  const ClaimedJob job = runFirst();
  submit();
  decide([this, &job] {
    (void)storage_.real->leases().finish(job.lease, Completed{"1"});
    supervisor_.workerReady("ep", job.worker);
  });
  EXPECT_THAT(executor_.started, IsEmpty()) << "the free worker claims the second job";
  EXPECT_TRUE(isWoken());
}

TEST_F(CountRaceTest, ALoweredMaximumCountsAtOnce) {
  submit();
  (void)runFirst();
  submit();
  decide([this] {
    auto changed = std::make_shared<Endpoint>(*rules_);
    changed->spec.workersMax = 1;
    pools_.setEndpoint(changed);
  });
  EXPECT_THAT(executor_.started, IsEmpty());
}

TEST_F(CountRaceTest, TwoJobsNeedASecondWorker) {
  submit();
  (void)runFirst();
  submit();
  decide([] {});
  EXPECT_THAT(executor_.started, ElementsAre("node-2"));
}

TEST_F(WorkerSupervisorTest, NoWorkerStartsAfterTheShutdownHasBegun) {
  begin(endpoint(0, 2));
  signal_.notify("ep", false);
  supervisor_.stopStarting();
  supervisor_.startWhereNeeded();
  release();
  supervisor_.rollReleases();
  EXPECT_THAT(executor_.started, IsEmpty());
}

TEST_F(WorkerSupervisorTest, AnIdleWorkerLeavesAfterTheIdleTimeoutUnlessJobsWait) {
  begin(endpoint(2, 2));
  const auto rules = std::make_shared<Endpoint>(*rules_);
  rules->spec.workersMin = 1;
  begin(rules);
  EXPECT_EQ(pools_.endPass().nextTaskAt, clock_.now() + rules->spec.idleTimeout);
  supervisor_.stopIdleWorkers();
  EXPECT_THAT(executor_.stopped, IsEmpty());
  clock_.advance(rules->spec.idleTimeout);
  signal_.notify("ep", false);
  supervisor_.stopIdleWorkers();
  EXPECT_THAT(executor_.stopped, IsEmpty()) << "a job waits";
  signal_.clear("ep");
  supervisor_.stopIdleWorkers();
  EXPECT_THAT(executor_.stopped, ElementsAre("node-1")) << "the other worker is the minimum";
}

TEST_F(WorkerSupervisorTest, AnEventWakesTheDispatcherForATaskBeforeTheNextPass) {
  const auto rules = endpoint(0, 2);
  rules->spec.idleTimeout = Millis(100);
  rules->spec.stopGrace = Millis(50);
  auto one = std::make_shared<Endpoint>(*rules);
  one->spec.workersMin = 1;
  begin(one);
  begin(rules);
  const ClaimedJob job = runJob();
  (void)isWoken();
  supervisor_.planPass(clock_.now() + Millis(50));
  supervisor_.stopRun(job.lease);
  EXPECT_FALSE(isWoken()) << "the planned pass comes at the end of the stop grace";
  supervisor_.workerReady("ep", job.worker);
  EXPECT_FALSE(isWoken());
  supervisor_.planPass(Instant::max());
  const ClaimedJob next = runJob();
  (void)isWoken();
  supervisor_.stopRun(next.lease);
  EXPECT_TRUE(isWoken());
  supervisor_.workerReady("ep", next.worker);
  EXPECT_TRUE(isWoken());
}

TEST_F(WorkerSupervisorTest, AStuckWorkerIsLoggedAndTheSlotReplaced) {
  const auto rules = endpoint(1, 1);
  rules->spec.maxStuck = 1;
  begin(rules);
  const ClaimedJob job = runJob();
  supervisor_.stopRun(job.lease);
  supervisor_.noticeStuck();
  EXPECT_EQ(counts().unhealthy, 0U);
  EXPECT_EQ(pools_.endPass().nextTaskAt, clock_.now() + rules->spec.stopGrace);
  clock_.advance(rules->spec.stopGrace);
  supervisor_.noticeStuck();
  EXPECT_EQ(counts().unhealthy, 1U);
  EXPECT_THAT(log_.events, ElementsAre("worker.stuck"));
  supervisor_.startWhereNeeded();
  EXPECT_THAT(executor_.started, ElementsAre("node-2"));
}

TEST_F(WorkerSupervisorTest, AReleaseReplacesAnIdleWorkerOfAFullPool) {
  begin(endpoint(1, 1));
  release();
  supervisor_.rollReleases();
  EXPECT_THAT(executor_.stopped, ElementsAre("node-1"));
  EXPECT_THAT(executor_.started, ElementsAre("node-2"));
  EXPECT_EQ(counts().initializing, 1U);
  supervisor_.workerGone("ep", "node-1", {});
  supervisor_.workerReady("ep", "node-2");
  EXPECT_FALSE(pools_.view("ep").rolling);
  EXPECT_EQ(counts().idle, 1U);
}

TEST_F(WorkerSupervisorTest, AFailedReleaseIsLoggedOnce) {
  begin(endpoint(1, 2));
  release();
  supervisor_.rollReleases();
  ASSERT_THAT(executor_.started, ElementsAre("node-2"));
  supervisor_.workerGone("ep", "node-2", WorkerFailure{"broken"});
  EXPECT_THAT(log_.events, ElementsAre("worker.failed", "release.halted"));
  EXPECT_TRUE(pools_.view("ep").halted);
  EXPECT_EQ(pools_.view("ep").fault, "broken");
  EXPECT_THAT(executor_.stopped, IsEmpty()) << "the old worker continues";
}

TEST_F(WorkerSupervisorTest, ARetiredEndpointReturnsTheJobsAndThePoolEnds) {
  begin(endpoint(1, 1));
  const ClaimedJob job = runJob();
  const RunningJobs::Entry run(running_, job.lease);
  pools_.retire("ep");
  supervisor_.rollReleases();
  EXPECT_TRUE(run.token().stop_requested());
  EXPECT_EQ(storage_->jobs().find({"ep", "job1"}).value().state, JobState::inQueue);
  EXPECT_FALSE(hasNoActiveWorkers(pools_.status("ep")));
  supervisor_.workerReady("ep", job.worker);
  EXPECT_THAT(executor_.stopped, ElementsAre(job.worker));
  EXPECT_TRUE(hasNoActiveWorkers(pools_.status("ep")));
  supervisor_.workerGone("ep", job.worker, {});
  supervisor_.rollReleases();
  EXPECT_FALSE(pools_.status("ep").exists);
}

TEST_F(WorkerSupervisorTest, ARefusedReportIsLoggedAndChangesNoState) {
  begin(endpoint(1, 1));
  supervisor_.workerReady("ep", "node-1");
  EXPECT_THAT(log_.events, ElementsAre("worker.state"));
  EXPECT_EQ(counts().idle, 1U);
  EXPECT_THAT(executor_.stopped, IsEmpty());
  EXPECT_THROW(supervisor_.workerReady("ep", "unknown"), std::out_of_range);
  supervisor_.workerGone("ep", "unknown", {});
  EXPECT_EQ(counts().idle, 1U);
}

TEST_F(WorkerSupervisorTest, WorkersAreReservedOnceAndOnlyForAServedQueue) {
  const auto rules = endpoint(3, 3);
  begin(rules);
  EXPECT_THAT(pools_.reserveWorkers({nullptr, 64}), IsEmpty()) << "no job waits";
  signal_.notify("ep", false);
  const EndpointId other = "other";
  EXPECT_THAT(pools_.reserveWorkers({&other, 64}), IsEmpty());
  const std::vector<ClaimWant> wants = pools_.reserveWorkers({&rules->spec.id, 2});
  ASSERT_EQ(wants.size(), 1U);
  EXPECT_THAT(wants[0].workers, ElementsAre("node-1", "node-2"));
  EXPECT_EQ(pools_.reserveWorkers({nullptr, 2}).at(0).workers, std::vector<WorkerId>{"node-3"});
  pools_.concludeReservations(wants, {});
  EXPECT_EQ(pools_.reserveWorkers({nullptr, 64}).at(0).workers, wants[0].workers);
  pools_.concludeReservations(wants, {});
  auto paused = std::make_shared<Endpoint>(*rules);
  paused->spec.paused = true;
  pools_.setEndpoint(paused);
  EXPECT_THAT(pools_.reserveWorkers({nullptr, 64}), IsEmpty());
  EXPECT_THAT(log_.events, IsEmpty());
}

TEST_F(WorkerSupervisorTest, ARetirementDuringAClaimWakesTheDispatcher) {
  begin(endpoint(1, 1));
  signal_.notify("ep", false);
  const std::vector<ClaimWant> wants = pools_.reserveWorkers({nullptr, 64});
  ASSERT_EQ(wants.size(), 1U);
  pools_.retire("ep");
  (void)isWoken();
  ClaimedJob job;
  job.endpoint = "ep";
  job.worker = wants[0].workers.at(0);
  pools_.concludeReservations(wants, {job});
  EXPECT_TRUE(isWoken());
  EXPECT_EQ(counts().running, 1U);
}

}  // namespace
}  // namespace jobq
