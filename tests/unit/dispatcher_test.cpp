// Room 7 with an executor that does what a test says.
#include <gtest/gtest.h>

#include <memory>
#include <new>
#include <system_error>

#include "core/jobs/wakeup.h"
#include "core/work/dispatcher.h"
#include "testkit/loaded_plugin.h"
#include "testkit/manual_clock.h"

namespace {

using namespace jobq;

/// Hires nobody while `failing`; a worker that is hired never gets ready.
class SparseExecutor final : public Executor {
 public:
  void hire(const EndpointPtr&, const ReleasePtr&, const WorkerId& worker, WorkerEvents&) override {
    asked.push_back(worker);
    if (failing) failing();
  }
  void assign(ClaimedJob) override { FAIL() << "nobody is ready"; }
  void dismiss(const WorkerId&) override { FAIL() << "nobody is ready"; }

  std::function<void()> failing;
  std::vector<WorkerId> asked;
};

/// Each worker is ready at once, and keeps the job that it is given.
class BusyExecutor final : public Executor {
 public:
  explicit BusyExecutor(RunningJobs& running) : running_(running) {}
  void hire(const EndpointPtr& endpoint, const ReleasePtr&, const WorkerId& worker, WorkerEvents& events) override {
    events.workerReady(endpoint->id, worker);
  }
  void assign(ClaimedJob job) override { runs.push_back(std::make_unique<RunningJobs::Entry>(running_, job.lease)); }
  void dismiss(const WorkerId&) override {}

  std::vector<std::unique_ptr<RunningJobs::Entry>> runs;

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

class DispatcherTest : public testing::Test {
 protected:
  static std::vector<EndpointPtr> endpoints(HandlerFactory& handlers) {
    auto endpoint = std::make_shared<Endpoint>();
    endpoint->id = "ep";
    auto release = std::make_shared<Release>();
    release->handler = &handlers;
    endpoint->release = std::move(release);
    endpoint->workersMin = 1;
    endpoint->workersMax = 1;
    return {endpoint};
  }

  /// Turns until there is nothing to do at this moment.
  void turn() {
    while (dispatcher_.turn()) continue;
  }

  testkit::ManualClock clock_;
  testkit::SilentLog log_;
  testkit::MapConfig config_;
  const std::unique_ptr<Storage> storage_ = testkit::loadPlugin<Storage>(
      JOBQ_PLUGIN_DIR "/libjobq_storage_memory.so", "memory", PluginEnv{config_, clock_, log_, ".", false});
  NoHandlers handlers_;
  Wakeup wakeup_{{"ep"}};
  RunningJobs running_;
  SparseExecutor executor_;
  Dispatcher dispatcher_{{*storage_, wakeup_, executor_, running_, clock_, log_}, "node", endpoints(handlers_)};
};

TEST_F(DispatcherTest, AWorkerThatCannotBeHiredLeavesItsSlotFree) {
  const std::function<void()> faults[] = {
      [] { throw std::bad_alloc(); },
      [] { throw std::system_error(std::make_error_code(std::errc::resource_unavailable_try_again)); }};
  Millis backoff{1'000};
  std::size_t asked = 0;
  for (const auto& fault : faults) {
    executor_.failing = fault;
    turn();
    EXPECT_EQ(executor_.asked.size(), ++asked);
    EXPECT_EQ(dispatcher_.counts("ep").initializing, 0U);
    EXPECT_EQ(dispatcher_.counts("ep").throttled, 1U);
    clock_.advance(backoff - Millis(1));
    turn();
    EXPECT_EQ(executor_.asked.size(), asked) << "not before its time";
    clock_.advance(Millis(1));
    backoff *= 2;
  }
  executor_.failing = nullptr;
  turn();
  EXPECT_EQ(executor_.asked.size(), ++asked);
  EXPECT_EQ(dispatcher_.counts("ep").initializing, 1U);
  EXPECT_EQ(dispatcher_.counts("ep").throttled, 0U);
}

// The shutdown comes before the dispatcher has looked at the retirement: the job has no reader, so no drain waits for
// it.
TEST_F(DispatcherTest, StopEndsTheJobsOfAnEndpointThatWasRetiredJustBefore) {
  BusyExecutor executor(running_);
  Dispatcher dispatcher({*storage_, wakeup_, executor, running_, clock_, log_}, "other", endpoints(handlers_));
  JobSpec job;
  job.id = "job";
  job.endpoint = "ep";
  job.input = "{}";
  (void)storage_->jobs().insert(std::move(job), ArrivalPolicy(), std::nullopt);
  wakeup_.ring("ep", false);
  while (dispatcher.turn()) continue;
  ASSERT_EQ(executor.runs.size(), 1U);
  ASSERT_FALSE(executor.runs[0]->token().stop_requested());
  dispatcher.retire("ep");
  dispatcher.stop();
  EXPECT_TRUE(executor.runs[0]->token().stop_requested());
  EXPECT_EQ(storage_->jobs().find({"ep", "job"}).value().state, JobState::inQueue) << "it went back, to be removed";
}

}  // namespace
