// Tests of the ranks given by the queue policies, as loaded by the server; fairness_test.cpp tests the resulting order.
#include <gtest/gtest.h>

#include <limits>

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

JobSpec withTtl(Millis ttl) {
  JobSpec job;
  job.policy.ttl = ttl;
  return job;
}

JobSpec ofKey(const std::string& key, bool low = false) {
  JobSpec job;
  job.apiKeyId = key;
  job.policy.lowPriority = low;
  return job;
}

constexpr Instant kNow = fromEpochMillis(1'800'000'000'000);
constexpr std::int64_t kNowMicros = 1'800'000'000'000'000;

TEST(QueuePolicies, FifoLeavesTheOrderToTheArrival) {
  const auto fifo = load("fifo");
  EXPECT_EQ(fifo->rank(withPriority(5), {}, {}), fifo->rank(withPriority(-5), {}, {}));
  EXPECT_EQ(fifo->group(withPriority(5)), "") << "the policy keeps no state";
}

TEST(QueuePolicies, PriorityRunsHigherFirst) {
  const auto priority = load("priority");
  EXPECT_LT(priority->rank(withPriority(1'000), {}, {}), priority->rank(withPriority(1), {}, {}));
  EXPECT_LT(priority->rank(withPriority(0), {}, {}), priority->rank(withPriority(-1), {}, {}));
  EXPECT_EQ(priority->rank(withPriority(3), {}, {}), priority->rank(withPriority(3), fromEpochMillis(9), {}));
  EXPECT_EQ(priority->group(withPriority(5)), "");
}

TEST(QueuePolicies, DeadlineRunsTheEarliestExpiryFirst) {
  const auto deadline = load("deadline");
  const auto rank = [&](Millis ttl, Instant at) { return deadline->rank(withTtl(ttl), at, {}); };
  EXPECT_LT(rank(Millis(10'000), kNow), rank(Millis(10'001), kNow));
  EXPECT_LT(rank(Millis(10'000), kNow), rank(Millis(10'000), kNow + Millis(1)));
  EXPECT_LT(rank(Millis(10'000), kNow + Millis(70'000)), rank(Millis(86'400'000), kNow))
      << "the deadline counts, not the arrival";
  EXPECT_EQ(rank(Millis(20'000), kNow), rank(Millis(5'000), kNow + Millis(15'000))) << "a tie: by arrival";
  EXPECT_GT(rank(Millis(10'000), kNow), kNowMicros) << "the rank has the unit of the policy fair";
  EXPECT_EQ(deadline->group(withTtl(Millis(1))), "");
}

TEST(QueuePolicies, FairCountsByKeyAndClass) {
  const auto fair = load("fair");
  EXPECT_EQ(fair->group(ofKey("a")), fair->group(ofKey("a")));
  EXPECT_NE(fair->group(ofKey("a")), fair->group(ofKey("b")));
  EXPECT_NE(fair->group(ofKey("a")), fair->group(ofKey("a", true)));
  EXPECT_NE(fair->group(ofKey("")), "") << "jobs without a key are a group with state";
  EXPECT_NE(fair->group(ofKey("")), fair->group(ofKey("a")));
}

TEST(QueuePolicies, FairNumbersAKeysJobsFromThePresentOn) {
  const auto fair = load("fair");
  const auto rank = [&](std::optional<std::int64_t> last, std::optional<std::int64_t> lowest) {
    return fair->rank(ofKey("a"), kNow, {last, lowest});
  };
  EXPECT_EQ(rank({}, {}), kNowMicros) << "an empty queue starts at the current time";
  EXPECT_EQ(rank(kNowMicros - 1, {}), kNowMicros) << "the former rank of the key does not count";
  EXPECT_EQ(rank({}, 500), 500) << "a new key starts at the head of the queue";
  EXPECT_EQ(rank(499, 500), 500) << "a quiet key starts at the head and has no credit";
  EXPECT_EQ(rank(500, 500), 501);
  EXPECT_EQ(rank(10'499, 500), 10'500) << "a new job goes after the waiting jobs of the key";
}

// A queue is emptied and filled again by a burst with the highest speed of a storage: a job each microsecond.
TEST(QueuePolicies, FairRanksOfAFinishedBurstAreBelowNewRanks) {
  const auto fair = load("fair");
  constexpr std::int64_t kJobs = 100'000;
  GroupState state;
  for (std::int64_t i = 0; i < kJobs; ++i) {
    state.lastRank = fair->rank(ofKey("noisy"), kNow + Millis(i / 1'000), state);
    if (!state.lowestWaiting) state.lowestWaiting = state.lastRank;  // no worker claims meanwhile
  }
  const Instant after = kNow + Millis(kJobs / 1'000);
  EXPECT_LT(*state.lastRank, fair->rank(ofKey("new"), after, {}));
}

TEST(QueuePolicies, FairIgnoresALastRankOfAnotherTime) {
  const auto fair = load("fair");
  const auto rank = [&](std::int64_t last, std::int64_t lowest) {
    return fair->rank(ofKey("a"), kNow, {last, lowest});
  };
  EXPECT_EQ(rank(kNowMicros, 0), 0) << "jobs of fifo wait: the keys take turns from there";
  EXPECT_EQ(rank(kNowMicros + 3'600'000'000, kNowMicros), kNowMicros) << "the clock was set back by an hour";
  EXPECT_EQ(rank(kNowMicros + 10'000'000, kNowMicros), kNowMicros + 10'000'001) << "ten million jobs of the key wait";
  constexpr auto kLeast = std::numeric_limits<std::int64_t>::min();
  constexpr auto kMost = std::numeric_limits<std::int64_t>::max();
  EXPECT_EQ(rank(kMost, kLeast), kLeast) << "numbers of a policy unknown";
  EXPECT_EQ(rank(kMost, kMost), kMost);
  EXPECT_EQ(rank(kMost - 1, kMost - 1), kMost);
  EXPECT_EQ(rank(kLeast, kMost), kMost);
}

}  // namespace
