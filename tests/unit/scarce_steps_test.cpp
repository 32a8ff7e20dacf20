// Steps of the server in which an allocation fails: such a step changes nothing, or is made again later
// (core/decisions/memory.md).
#include <gtest/gtest.h>

#include <cstddef>
#include <memory>
#include <new>
#include <string>
#include <vector>

#include "core/endpoints/endpoint_registry.h"
#include "endpoint_fixture.h"
#include "jobq/job.h"
#include "tests/support/scarce_memory.h"

namespace jobq {
namespace {

constexpr std::size_t kMostAllocations = 2'000;  // allocations of a step

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

TEST_F(ScarceSteps, ARefreshWithoutMemoryIsMadeWholeByTheNext) {
  bool lacked = true;
  for (std::size_t at = 1; lacked; ++at) {
    ASSERT_LT(at, kMostAllocations);
    test::EndpointFixture world;
    world.plugins.handlers.scripts = {"one"};
    test::EndpointFixture::Node writer(world);
    const std::string form = world.createTemplate(writer, "t", "lua/one");
    const std::vector<EndpointId> ids{world.createEndpoint(writer, form), world.createEndpoint(writer, form)};
    world.plugins.handlers.scripts.clear();
    test::EndpointFixture::Node reader(world);
    lacked = lacksMemory(at, [&] { reader.registry.refresh(); });
    reader.registry.refresh();
    for (const EndpointId& id : ids) {
      ASSERT_NE(reader.registry.find(id), nullptr) << "allocation " << at;
      EXPECT_FALSE(reader.registry.find(id)->runnable) << "allocation " << at;
    }
    EXPECT_NE(reader.registry.findTemplate(form), nullptr) << "allocation " << at;
    world.plugins.handlers.scripts = {"one"};
    reader.registry.refresh();
    for (const EndpointId& id : ids) EXPECT_TRUE(reader.registry.find(id)->runnable) << "allocation " << at;
  }
}

}  // namespace
}  // namespace jobq
