// Tests of the length of a critical section of the memory storage (plugins/storage_memory/memory_stores.h).
#include <gtest/gtest.h>

#include <cstddef>
#include <string>
#include <utility>

#include "testkit/loaded_plugin.h"
#include "testkit/manual_clock.h"
#include "unit_storage.h"

namespace jobq {
namespace {

/// Counts the questions for the time: the storage asks once in each critical section.
class CountedClock final : public Clock {
 public:
  Instant now() const override {
    ++calls;
    return manual_.now();
  }
  void waitUntil(Mutex& mutex, Condition& condition, Instant deadline) override JOBQ_REQUIRES(mutex) {
    manual_.waitUntil(mutex, condition, deadline);
  }

  mutable std::size_t calls = 0;

 private:
  testkit::ManualClock manual_;
};

TEST(MemoryPurge, OtherCallsComeBetweenTheSteps) {
  CountedClock clock;
  testkit::RecordingLog log;
  const testkit::MapConfig config;
  const auto storage = testkit::loadPlugin<Storage>(JOBQ_PLUGIN_DIR "/libjobq_storage_memory.so", "memory",
                                                    PluginEnv{config, clock, log, "/nowhere", false});
  const test::ArrivalOrder policy;
  constexpr std::size_t kJobs = 2'500;
  for (std::size_t i = 0; i < kJobs; ++i) {
    JobSpec job;
    job.id = "j" + std::to_string(i);
    job.endpoint = "ep";
    job.input = "{}";
    job.policy.lowPriority = i % 5 == 0;
    (void)storage->jobs().insert(std::move(job), policy);
  }
  clock.calls = 0;
  EXPECT_EQ(storage->jobs().purgeQueued("ep"), kJobs);
  EXPECT_EQ(clock.calls, 3U) << "1,000 jobs a step";
  EXPECT_EQ(storage->jobs().counts("ep").inQueue, 0U);
}

}  // namespace
}  // namespace jobq
