// Tests of the workers launched by the server (core/workers/launched/launched_workers.h), with a launcher that starts
// no process.
#include "core/workers/launched/launched_workers.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <atomic>
#include <map>
#include <memory>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "core/workers/launched/output_log.h"
#include "core/workers/node/node_life.h"
#include "core/workers/pool/pool_status.h"
#include "executor_fixture.h"
#include "jobq/worker_output.h"
#include "tests/support/held_caller.h"

namespace jobq {
namespace {

using testing::ElementsAre;
using testing::HasSubstr;
using testing::IsEmpty;
using testing::SizeIs;

/// Records the calls.
class RecordingLauncher final : public WorkerLauncher {
 public:
  std::optional<std::string> fault(const ContainerSpec& container) const override {
    return container.command.empty() ? std::optional<std::string>("the template has no dockerStartCmd") : std::nullopt;
  }
  void start(WorkerLaunch launch) override { launches.push_back(std::move(launch)); }
  void stop(const WorkerId& worker, Millis) override { stopped.push_back(worker); }
  std::vector<WorkerExit> collectExits() override { return std::exchange(exits, {}); }
  std::vector<WorkerOutput> collectOutput() override { return std::exchange(outputs, {}); }

  std::vector<WorkerLaunch> launches;
  std::vector<WorkerId> stopped;
  std::vector<WorkerExit> exits;
  std::vector<WorkerOutput> outputs;
};

class FixedKeys final : public LaunchKeyring {
 public:
  std::string keyFor(const EndpointId& endpoint) override { return "key of " + endpoint; }
  void forgetKey(const EndpointId& endpoint) override { forgotten.push_back(endpoint); }

  std::vector<EndpointId> forgotten;
};

class LaunchedWorkersTest : public testing::Test, protected test::ExecutorFixture {
 protected:
  LaunchedWorkersTest() {
    release_->isRemote = true;
    release_->env = {{"MODE", "fast"}, {"RUNPOD_AI_API_KEY", "of the template"}};
    release_->container.image = "acme/upscale:3";
    release_->container.command = {"python", "worker.py"};
    setEndpoint(4);
    launched_.setServerUrl("http://127.0.0.1:8000");
  }

  void setEndpoint(std::uint32_t workersMax, Millis idleTimeout = Millis(5'000), std::uint32_t gpuCount = 1) {
    auto remote = std::make_shared<Endpoint>(*endpoint);
    remote->spec.gpuCount = gpuCount;
    remote->spec.workersMax = workersMax;
    remote->spec.idleTimeout = idleTimeout;
    remote->spec.scaling = {ScalerType::requestCount, 1};
    remote->release = release_;
    pools_.setEndpoint(remote);
  }
  void insert(const JobId& job) {
    storage.insert(job);
    (void)queueSignal.notify("ep", false);
  }
  /// Lets the worker ask for a job, and gives a waiting job to the worker.
  std::vector<RemoteRunPtr> callOf(const WorkerId& worker) {
    const RemoteWorkerKey key{"ep", worker};
    const auto take = remote_.beginTake(key, 1, std::nullopt, caller_.call());
    const auto wants = pools_.reserveWorkers({nullptr, 10, true});
    auto jobs = storage.real->leases().claim(wants, storage.life->holder(), ++lastClaim_).jobs;
    pools_.concludeReservations(wants, jobs);
    for (ClaimedJob& job : jobs) remote_.assign(std::move(job));
    return remote_.pollTake(key, *take, false).value_or(std::vector<RemoteRunPtr>());
  }
  void pass(Millis time) {
    storage.clock.advance(time);
    launched_.run();
  }

  std::shared_ptr<Release> release_ = std::make_shared<Release>();
  test::HeldCaller caller_;
  WorkerPools pools_{{queueSignal, storage.clock, storage.log}, {}};
  std::atomic<bool> draining_ = false;
  RemoteWorkers remote_{{remoteRuns, pools_, draining_, storage.log}};
  NodeLife node_{*storage, "node"};
  RecordingLauncher launcher_;
  FixedKeys keys_;
  LaunchedWorkers launched_{
      {&launcher_, pools_, remote_, *storage, queueSignal, keys_, node_, storage.clock, storage.log}, "p"};
  CallId lastClaim_ = 100;
};

/// The machine has two GPUs for launched workers.
class LaunchedWorkersGpuTest : public LaunchedWorkersTest {
 protected:
  LaunchedWorkersGpuTest() { launched().setServerUrl("http://127.0.0.1:8000"); }

  LaunchedWorkers& launched() { return withGpus_; }
  std::string waitReasonNow() const {
    PoolStatus status = pools_.status("ep");
    status.isLaunched = withGpus_.view("ep").isLaunched;
    status.lacksGpu = withGpus_.view("ep").lacksGpu;
    Endpoint endpoint;
    endpoint.release = release_;
    return std::string(waitReason(status, endpoint, false));
  }

 private:
  LaunchedWorkers withGpus_{{.launcher = &launcher_,
                             .pools = pools_,
                             .remote = remote_,
                             .storage = *storage,
                             .queueSignal = queueSignal,
                             .keys = keys_,
                             .node = node_,
                             .clock = storage.clock,
                             .log = storage.log,
                             .gpus = {"0", "GPU-b"}},
                            "p"};
};

TEST_F(LaunchedWorkersTest, AJobStartsAWorkerWithTheEnvironment) {
  launched_.run();
  EXPECT_THAT(launcher_.launches, IsEmpty());
  EXPECT_TRUE(launched_.view("ep").isLaunched);
  insert("a");
  launched_.run();
  launched_.run();
  ASSERT_THAT(launcher_.launches, SizeIs(1)) << "the starting worker counts";
  const WorkerLaunch& launch = launcher_.launches.front();
  EXPECT_EQ(launch.endpoint, "ep");
  EXPECT_EQ(launch.worker, "p-r1");
  EXPECT_THAT(launch.container.command, ElementsAre("python", "worker.py"));
  EXPECT_EQ(launch.container.image, "acme/upscale:3");
  EXPECT_EQ(launch.env.at("MODE"), "fast");
  EXPECT_EQ(launch.env.at("RUNPOD_AI_API_KEY"), "key of ep") << "the template cannot change the worker's variables";
  EXPECT_EQ(launch.env.at("RUNPOD_POD_ID"), "p-r1");
  EXPECT_EQ(launch.env.at("RUNPOD_ALLOW_PRIVATE_DOWNLOAD_URLS"), "true")
      << "a store of files may be in the same network";
  EXPECT_EQ(launch.env.at("RUNPOD_WEBHOOK_GET_JOB"), "http://127.0.0.1:8000/v2/ep/job-take/$ID?gpu=none");
}

TEST_F(LaunchedWorkersTest, AnIdleWorkerIsEndedWithoutLosingAJob) {
  insert("a");
  launched_.run();
  const auto jobs = callOf("p-r1");
  ASSERT_THAT(jobs, SizeIs(1));
  ASSERT_EQ(jobs.front()->finish(Completed{"1"}), ReportResult::accepted);
  const RemoteWorkers::Reported ended{"a", jobs.front()};
  remote_.noteResults({"ep", "p-r1"}, {&ended, 1}, false);
  EXPECT_THAT(callOf("p-r1"), IsEmpty());
  pass(Millis(5'000));
  EXPECT_THAT(launcher_.stopped, IsEmpty());
  insert("b");
  EXPECT_THAT(callOf("p-r1"), IsEmpty()) << "a retired worker gets no job";
  launched_.run();
  EXPECT_THAT(launcher_.stopped, ElementsAre("p-r1"));
  EXPECT_THAT(launcher_.launches, SizeIs(2)) << "the new job needs a new worker";
  launcher_.exits = {{"p-r1", true, "it was ended by signal 15"}};
  launched_.run();
  EXPECT_EQ(launched_.view("ep").workers.size(), 1U);
  EXPECT_FALSE(launched_.view("ep").fault.has_value());
}

TEST_F(LaunchedWorkersTest, TheJobOfACrashedWorkerIsLostAtOnce) {
  insert("a");
  launched_.run();
  ASSERT_THAT(callOf("p-r1"), SizeIs(1));
  auto connection = remote_.connect({"ep", "p-r1"}, WorkerCall::question);
  launcher_.exits = {{"p-r1", true, "it was ended by signal 9"}};
  launched_.run();
  EXPECT_EQ(storage.real->jobs().find({"ep", "a"})->losses, 0U)
      << "the unread bytes of the connection may hold a result";
  connection.reset();
  remote_.run();
  EXPECT_EQ(storage.real->jobs().find({"ep", "a"})->losses, 1U);
  EXPECT_EQ(launched_.view("ep").fault, "it was ended by signal 9");
  EXPECT_TRUE(launched_.view("ep").isThrottled);
}

TEST_F(LaunchedWorkersTest, ADeletedEndpointEndsTheWorkers) {
  insert("a");
  launched_.run();
  pools_.retire("ep");
  launched_.run();
  launched_.run();
  EXPECT_THAT(launcher_.stopped, ElementsAre("p-r1"));
  EXPECT_THAT(keys_.forgotten, IsEmpty()) << "the worker may still use the key";
  launcher_.exits = {{"p-r1", true, "it was ended by signal 15"}};
  launched_.run();
  EXPECT_THAT(keys_.forgotten, ElementsAre("ep"));
}

TEST_F(LaunchedWorkersTest, AContainerUnfitForTheLauncherStartsNoWorker) {
  release_->container.command.clear();
  insert("a");
  launched_.run();
  EXPECT_THAT(launcher_.launches, IsEmpty());
  EXPECT_FALSE(launched_.view("ep").isLaunched);
  EXPECT_EQ(launched_.view("ep").fault, "the template has no dockerStartCmd");
}

TEST_F(LaunchedWorkersTest, ADrainedNodeStartsNoWorkerAndEndsTheOldWorkers) {
  insert("a");
  launched_.run();
  node_.setDrained({"node"});
  launched_.run();
  launched_.run();
  EXPECT_THAT(launcher_.stopped, ElementsAre("p-r1"));
  EXPECT_THAT(launcher_.launches, SizeIs(1));
}

TEST_F(LaunchedWorkersTest, AFencedNodeLeavesTheWorkers) {
  insert("a");
  launched_.run();
  insert("b");
  node_.setFenced(true);
  launched_.run();
  launched_.run();
  EXPECT_THAT(launcher_.stopped, IsEmpty());
  EXPECT_THAT(launcher_.launches, SizeIs(1));
}

TEST_F(LaunchedWorkersTest, AFailingStorageStartsNoWorker) {
  insert("a");
  storage.faults.failNext("jobs.counts");
  launched_.run();
  EXPECT_THAT(launcher_.launches, IsEmpty());
}

TEST_F(LaunchedWorkersTest, SixteenWorkersStartAtATime) {
  setEndpoint(100);
  for (int i = 0; i < 40; ++i) insert("job-" + std::to_string(i));
  launched_.run();
  EXPECT_THAT(launcher_.launches, SizeIs(16));
  launched_.run();
  launched_.run();
  EXPECT_THAT(launcher_.launches, SizeIs(40));
}

TEST_F(LaunchedWorkersTest, APingTellsOfAnIgnoredStop) {
  setEndpoint(4, Millis(3'600'000));
  insert("a");
  launched_.run();
  const auto jobs = callOf("p-r1");
  ASSERT_THAT(jobs, SizeIs(1));
  const RemoteWorkerKey key{"ep", "p-r1"};
  const auto connection = remote_.connect(key, WorkerCall::question);
  remote_.runMustEnd(*jobs.front());
  pass(endpoint->spec.stopGrace + Millis(1));
  EXPECT_FALSE(launched_.view("ep").workers.at("p-r1").isRetired());
  remote_.notePing(key, {"a"}, false);
  launched_.run();
  EXPECT_EQ(launched_.view("ep").workers.at("p-r1").state.get(), LaunchedState::stuck);
}

TEST_F(LaunchedWorkersTest, ANodeStartsAPartOfWorkersMax) {
  node_.setShare({0, 2});
  for (const char* job : {"a", "b", "c", "d", "e"}) insert(job);
  launched_.run();
  EXPECT_THAT(launcher_.launches, SizeIs(2));
}

TEST_F(LaunchedWorkersTest, TheEndOfTheServerEndsTheWorkers) {
  insert("a");
  launched_.run();
  EXPECT_THAT(launched_.keys(), ElementsAre(RemoteWorkerKey{"ep", "p-r1"}));
  launched_.endWorkers(Millis(5'000));
  EXPECT_THAT(launcher_.stopped, ElementsAre("p-r1"));
  EXPECT_THAT(callOf("p-r1"), IsEmpty());
}

TEST_F(LaunchedWorkersTest, EachRunningWorkerOfAnEndpointHasASlot) {
  for (const char* job : {"a", "b", "c"}) insert(job);
  launched_.run();
  ASSERT_THAT(launcher_.launches, SizeIs(3));
  for (std::size_t i = 0; i < 3; ++i) EXPECT_EQ(launcher_.launches[i].env.at("JOBQ_SLOT"), std::to_string(i));
  launcher_.exits = {{"p-r2", false, "it ended"}};
  launched_.run();
  pass(Millis(1'000));
  ASSERT_THAT(launcher_.launches, SizeIs(4));
  EXPECT_EQ(launcher_.launches.back().env.at("JOBQ_SLOT"), "1") << "the slot of the ended worker";
}

TEST_F(LaunchedWorkersTest, WithoutAListOfGpusTheLauncherChooses) {
  setEndpoint(4, Millis(5'000), 3);
  insert("a");
  launched_.run();
  ASSERT_THAT(launcher_.launches, SizeIs(1));
  EXPECT_EQ(launcher_.launches.front().gpuCount, 3U);
  EXPECT_THAT(launcher_.launches.front().gpus, IsEmpty());
}

TEST_F(LaunchedWorkersGpuTest, AWorkerHasAGpuForItself) {
  for (const char* job : {"a", "b", "c"}) insert(job);
  launched().run();
  ASSERT_THAT(launcher_.launches, SizeIs(2)) << "workersMax is 4, and two GPUs are free";
  EXPECT_THAT(launcher_.launches[0].gpus, ElementsAre("0"));
  EXPECT_THAT(launcher_.launches[1].gpus, ElementsAre("GPU-b"));
  EXPECT_TRUE(launched().view("ep").lacksGpu);
  launcher_.exits = {{"p-r1", false, "it ended"}};
  launched().run();
  storage.clock.advance(Millis(1'000));
  launched().run();
  ASSERT_THAT(launcher_.launches, SizeIs(3));
  EXPECT_THAT(launcher_.launches[2].gpus, ElementsAre("0")) << "the GPU of the ended worker";
}

TEST_F(LaunchedWorkersGpuTest, AJobWaitsForGpusInUse) {
  setEndpoint(4, Millis(5'000), 2);
  insert("a");
  launched().run();
  ASSERT_THAT(launcher_.launches, SizeIs(1));
  EXPECT_THAT(launcher_.launches[0].gpus, ElementsAre("0", "GPU-b"));
  insert("b");
  launched().run();
  EXPECT_THAT(launcher_.launches, SizeIs(1));
  EXPECT_EQ(waitReasonNow(), "no_gpu");
}

TEST_F(LaunchedWorkersGpuTest, MoreGpusThanTheMachineHasAreAFault) {
  setEndpoint(4, Millis(5'000), 3);
  insert("a");
  launched().run();
  EXPECT_THAT(launcher_.launches, IsEmpty());
  const LaunchView view = launched().view("ep");
  EXPECT_FALSE(view.isLaunched);
  EXPECT_THAT(view.fault.value_or(""), HasSubstr("needs 3 GPUs (gpuCount), and launcher.gpus names 2"));
  EXPECT_EQ(waitReasonNow(), "no_gpu");
}

TEST_F(LaunchedWorkersGpuTest, AWorkerWithoutGpusTakesNone) {
  setEndpoint(4, Millis(5'000), 0);
  for (const char* job : {"a", "b", "c"}) insert(job);
  launched().run();
  ASSERT_THAT(launcher_.launches, SizeIs(3));
  for (const WorkerLaunch& launch : launcher_.launches) EXPECT_THAT(launch.gpus, IsEmpty());
}

TEST_F(LaunchedWorkersTest, TheOutputOfAWorkerIsReadable) {
  insert("a");
  launched_.run();
  const auto lines = [this] {
    std::vector<std::string> texts;
    const auto part = launched_.logs().readAfter("ep", "p-r1", 0, 100);
    for (const OutputLine& line : part.value_or(OutputPart()).lines) texts.push_back(line.text);
    return texts;
  };
  EXPECT_THAT(lines(), IsEmpty());
  launcher_.outputs = {{"p-r1", "loading\nhal"}, {"another", "lost\n"}};
  launched_.run();
  EXPECT_THAT(lines(), ElementsAre("loading"));
  launcher_.outputs = {{"p-r1", "f\nout of memory"}};
  launcher_.exits = {{"p-r1", true, "it ended with exit code 1"}};
  node_.setFenced(true);
  launched_.run();
  EXPECT_THAT(lines(), ElementsAre("loading", "half", "out of memory")) << "a fenced node reads, too";
  EXPECT_EQ(launched_.logs().readAfter("ep", "p-r1", 3, 100)->reason, "it ended with exit code 1");
}

TEST_F(LaunchedWorkersTest, AFailureIsLogged) {
  insert("a");
  launched_.run();
  launcher_.exits = {{"p-r1", true, "it could not be started: no such file"}};
  launched_.run();
  EXPECT_THAT(storage.log.text(), HasSubstr("the launched worker p-r1 of ep: it could not be started: no such file"));
}

}  // namespace
}  // namespace jobq
