// Steps of the server with a failing allocation: such a step has no effect, or is made again later
// (core/decisions/memory.md).
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cstddef>
#include <memory>
#include <new>
#include <optional>
#include <string>
#include <vector>

#include "core/endpoints/endpoint.h"
#include "core/endpoints/endpoint_registry.h"
#include "core/http/api/readiness.h"
#include "core/jobs/queue_signal.h"
#include "core/workers/pool/worker_pools.h"
#include "core/workers/run/input_memory.h"
#include "endpoint_fixture.h"
#include "jobq/job.h"
#include "jobq/lease_store.h"
#include "jobq/time.h"
#include "testkit/manual_clock.h"
#include "testkit/recording_log.h"
#include "tests/support/held_caller.h"
#include "tests/support/scarce_memory.h"
#include "unit_storage.h"

namespace jobq {
namespace {

using testing::ElementsAre;

constexpr std::size_t kMostAllocations = 2'000;  // allocations of a step
const EndpointId kLong = "an endpoint with an id that is too long for the object itself";

class ScarceSteps : public testing::Test {
 protected:
  void SetUp() override {
#if JOBQ_SANITIZED_THREADS
    GTEST_SKIP() << "takes the memory away, and ThreadSanitizer has an operator new of its own";
#endif
  }

  /// Calls act() without memory for the allocation `at`, counted from 1. Returns false if act() needs fewer.
  template <class Act>
  static bool lacksMemory(std::size_t at, Act&& act) {
    test::failsIn = at;
    try {
      act();
    } catch (const std::bad_alloc&) {
    }
    const bool failed = test::failsIn == 0;
    test::failsIn = 0;
    return failed;
  }
};

TEST_F(ScarceSteps, AnUncountedInputIsNotSubtracted) {
  bool lacked = true;
  for (std::size_t at = 1; lacked; ++at) {
    ASSERT_LT(at, kMostAllocations);
    InputMemory memory;
    lacked = lacksMemory(at, [&] { (void)memory.hold(kLong, InputMemory::kOfEndpoint); });
    EXPECT_TRUE(memory.reserveForClaim()) << "allocation " << at;
    EXPECT_FALSE(memory.hasUsedUp(kLong)) << "allocation " << at;
  }
}

TEST_F(ScarceSteps, ASignalIsAddedWholeOrNotAtAll) {
  bool lacked = true;
  for (std::size_t at = 1; lacked; ++at) {
    ASSERT_LT(at, kMostAllocations);
    QueueSignal signal({});
    lacked = lacksMemory(at, [&] { signal.addEndpoint(kLong); });
    (void)signal.notify(kLong, false);
    signal.addEndpoint(kLong);
    EXPECT_TRUE(signal.isSet(kLong)) << "allocation " << at;
    EXPECT_THAT(signal.collectNews(), ElementsAre(kLong)) << "allocation " << at;
  }
}

TEST_F(ScarceSteps, AFailedCheckOfTheStorageHasAReasonWithoutMemory) {
  bool lacked = true;
  for (std::size_t at = 1; lacked; ++at) {
    ASSERT_LT(at, kMostAllocations);
    test::UnitStorage storage;  // keeps a list of the calls, and allocates for some calls only
    storage.faults.failOperation("check");
    Readiness readiness(*storage, storage.clock);
    test::HeldCaller caller;
    Readiness::Question question{caller.call()};
    std::optional<Result<void, StorageError>> result;
    lacked = lacksMemory(at, [&] { result = readiness.check(question); });
    ASSERT_TRUE(result) << "allocation " << at;
    EXPECT_FALSE(*result) << "allocation " << at;
  }
}

/// The pools of three endpoints with an idle worker each. Jobs may wait at each endpoint.
class ScarcePools : public ScarceSteps {
 protected:
  struct Pools {
    Pools() : all({signal, clock, log}, {}) {
      for (const char* const name : {"a", "b", "c"}) {
        auto endpoint = std::make_shared<Endpoint>();
        endpoint->spec.id = name + kLong;
        endpoint->release = std::make_shared<Release>();
        all.setEndpoint(endpoint);
        const WorkerId worker = "the worker of " + endpoint->spec.id;
        (void)all.addWorker(endpoint->spec.id, worker, {});
        (void)all.recordReady(endpoint->spec.id, worker, nullptr);
        ids.push_back(endpoint->spec.id);
      }
    }

    testkit::ManualClock clock;
    testkit::RecordingLog log;
    QueueSignal signal{{}};
    WorkerPools all;
    std::vector<EndpointId> ids;
  };

  /// Visits the pools without memory for one allocation after the other, and again each time. Both visits together find
  /// each worker.
  template <class Action>
  static void expectEachWorkerOnce(Action&& visit) {
    bool lacked = true;
    for (std::size_t at = 1; lacked; ++at) {
      ASSERT_LT(at, kMostAllocations);
      Pools pools;
      decltype(visit(pools)) found;
      lacked = lacksMemory(at, [&] { found = visit(pools); });
      const bool isPartial = lacked && !found.empty() && found.size() < pools.ids.size();
      EXPECT_TRUE(!isPartial || pools.signal.consume()) << "the other visits are due at once";
      EXPECT_EQ(found.size() + visit(pools).size(), pools.ids.size()) << "allocation " << at;
      EXPECT_TRUE(visit(pools).empty()) << "allocation " << at;
    }
  }
};

TEST_F(ScarcePools, AClaimWithoutMemoryLeavesNoIdleWorkerAside) {
  expectEachWorkerOnce([](Pools& pools) { return pools.all.reserveWorkers({nullptr, 10}); });
}

TEST_F(ScarcePools, EachLeavingIdleWorkerIsReported) {
  expectEachWorkerOnce([](Pools& pools) {
    for (const EndpointId& id : pools.ids) pools.signal.clear(id);
    pools.clock.advance(Millis(60'000));
    return pools.all.markIdleLeaving();
  });
}

TEST_F(ScarceSteps, ARefreshWithoutMemoryIsMadeWholeByTheNext) {
  struct NoListener final : EndpointListener {
    void endpointChanged(const EndpointId&, const EndpointPtr&) override {}
  };
  test::EndpointFixture world;
  world.plugins.handlers.scripts = {"one"};
  test::EndpointFixture::Node writer(world);
  const std::string form = world.createTemplate(writer, "t", "lua/one");
  const std::vector<EndpointId> ids{world.createEndpoint(writer, form), world.createEndpoint(writer, form)};
  bool lacked = true;
  for (std::size_t at = 1; lacked; ++at) {
    ASSERT_LT(at, kMostAllocations);
    world.plugins.handlers.scripts.clear();
    EndpointRegistry registry({world.storage.real->records(), world.box, world.plugins, world.storage.log, ""}, {});
    NoListener listener;
    registry.setListener(listener);
    lacked = lacksMemory(at, [&] { registry.refresh(); });
    registry.refresh();
    for (const EndpointId& id : ids) {
      ASSERT_NE(registry.find(id), nullptr) << "allocation " << at;
      EXPECT_FALSE(registry.find(id)->runnable) << "allocation " << at;
    }
    EXPECT_NE(registry.findTemplate(form), nullptr) << "allocation " << at;
    world.plugins.handlers.scripts = {"one"};
    registry.refresh();
    for (const EndpointId& id : ids) EXPECT_TRUE(registry.find(id)->runnable) << "allocation " << at;
  }
}

}  // namespace
}  // namespace jobq
