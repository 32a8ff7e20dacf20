// The two queue policies, as the server loads them.
#include <gtest/gtest.h>

#include "jobq/queue_policy.h"
#include "testkit/loaded_plugin.h"

namespace {

using namespace jobq;

std::unique_ptr<QueuePolicy> load(const std::string& name) {
  static testkit::ManualClock clock;
  static testkit::SilentLog log;
  const testkit::MapConfig config;
  return testkit::loadPlugin<QueuePolicy>(JOBQ_PLUGIN_DIR "/libjobq_queue_" + name + ".so", name,
                                          PluginEnv{config, clock, log, "/tmp", false});
}

JobSpec withPriority(std::int32_t priority) {
  JobSpec job;
  job.policy.priority = priority;
  return job;
}

TEST(QueuePolicies, FifoLeavesTheOrderToTheArrival) {
  const auto fifo = load("fifo");
  EXPECT_EQ(fifo->rank(withPriority(5), {}, {}), fifo->rank(withPriority(-5), {}, {}));
  EXPECT_EQ(fifo->group(withPriority(5)), "") << "no state is kept for it";
}

TEST(QueuePolicies, PriorityRunsHigherFirst) {
  const auto priority = load("priority");
  EXPECT_LT(priority->rank(withPriority(1'000), {}, {}), priority->rank(withPriority(1), {}, {}));
  EXPECT_LT(priority->rank(withPriority(0), {}, {}), priority->rank(withPriority(-1), {}, {}));
  EXPECT_EQ(priority->rank(withPriority(3), {}, {}), priority->rank(withPriority(3), fromEpochMillis(9), {}));
  EXPECT_EQ(priority->group(withPriority(5)), "");
}

}  // namespace
