// Room 7 with an executor that does what a test says.
#include <gtest/gtest.h>

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

}  // namespace
