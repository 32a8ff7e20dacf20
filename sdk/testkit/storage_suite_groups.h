// Conformance: arguments of a queue policy, and the stored state of its groups (sdk/include/jobq/queue_policy.h).
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <utility>
#include <variant>
#include <vector>

#include "jobq/mutex.h"
#include "jobq/queue_policy.h"
#include "testkit/returned_jobs.h"
#include "testkit/storage_suite.h"

namespace jobq::testkit {

TEST_P(StorageSuite, AGroupKeepsItsLastRankAndSeesTheLowestWaiting) {
  const TakeTurns turns;
  const auto put = [&](const JobId& id, const std::string& key) {
    JobSpec job = spec(id);
    job.apiKeyId = key;
    (void)storage_->jobs().insert(std::move(job), turns);
  };
  for (int i = 0; i < 3; ++i) put("noisy" + std::to_string(i), "noisy");
  put("quiet0", "quiet");
  std::vector<JobId> order;
  for (const ClaimedJob& job : claim(9)) order.push_back(job.lease.job);
  EXPECT_EQ(order, (std::vector<JobId>{"noisy0", "quiet0", "noisy1", "noisy2"}));
  put("noisy3", "noisy");  // no job waits: only the group's own last rank counts
  put("other", "other");   // joins at the lowest waiting rank, after noisy3 by arrival
  order.clear();
  for (const ClaimedJob& job : claim(9)) order.push_back(job.lease.job);
  EXPECT_EQ(order, (std::vector<JobId>{"noisy3", "other"}));
}

/// A policy for tests that returns preset answers and records its arguments. A real policy remembers nothing.
class RecordingPolicy final : public QueuePolicy {
 public:
  struct Asked {
    JobSpec job;
    Instant now{};
    GroupState state;
  };

  std::string group(const JobSpec& job) const override { return job.apiKeyId; }
  std::int64_t rank(const JobSpec& job, Instant now, const GroupState& state) const override {
    Lock lock(mutex_);
    asked_.push_back({job, now, state});
    return job.policy.priority;
  }
  Asked last() const {
    Lock lock(mutex_);
    return asked_.empty() ? Asked{} : asked_.back();
  }

 private:
  mutable Mutex mutex_;
  mutable std::vector<Asked> asked_ JOBQ_GUARDED_BY(mutex_);
};

class GroupSuite : public StorageSuite {
 protected:
  void put(const JobId& id, const std::string& group, int rank, bool low = false, const EndpointId& endpoint = "ep") {
    JobSpec job = spec(id, endpoint);
    job.apiKeyId = group;
    job.policy.priority = rank;
    job.policy.lowPriority = low;
    ASSERT_TRUE(std::holds_alternative<Inserted>(jobs().insert(std::move(job), recording_)));
  }
  GroupState told() const { return recording_.last().state; }

  RecordingPolicy recording_;
};

TEST_P(GroupSuite, APolicyIsAskedAboutTheWholeJobAtTheStoresTime) {
  JobSpec job = spec("a");
  job.webhook = "http://example.com/";
  job.policy.priority = -7;
  ASSERT_TRUE(std::holds_alternative<Inserted>(jobs().insert(JobSpec(job), recording_)));
  EXPECT_EQ(recording_.last().now, clock_.now());
  EXPECT_EQ(recording_.last().job.id, "a");
  EXPECT_EQ(fail(claimOne()), ReportResult::accepted);
  clock_.advance(Millis(1'234));
  ASSERT_TRUE(std::holds_alternative<Requeued>(requeue({"ep", "a"}, recording_)));
  const auto asked = recording_.last();
  EXPECT_EQ(asked.now, clock_.now()) << "a retry is asked about anew";
  EXPECT_EQ(asked.job.endpoint, "ep");
  EXPECT_EQ(asked.job.apiKeyId, "key");
  EXPECT_EQ(asked.job.input, job.input);
  EXPECT_EQ(asked.job.webhook, job.webhook);
  EXPECT_EQ(asked.job.policy.priority, -7);
  EXPECT_EQ(asked.job.policy.ttl, job.policy.ttl - Millis(1'234)) << "the policy sees the remaining time";
  EXPECT_EQ(asked.job.retention, job.retention);
  EXPECT_EQ(asked.job.maxAttempts, job.maxAttempts);
}

TEST_P(GroupSuite, ARetrysTtlIsTheRemainingTimeOfTheJob) {
  JobSpec job = spec("a");
  job.policy.ttl = Millis(3'600'000);
  job.policy.lowPriority = true;
  ASSERT_TRUE(std::holds_alternative<Inserted>(jobs().insert(std::move(job), recording_)));
  EXPECT_EQ(recording_.last().job.policy.ttl, Millis(3'600'000)) << "the first call sees the whole ttl";
  const auto retried = [this](Millis after) {
    EXPECT_EQ(fail(claimOne()), ReportResult::accepted);
    clock_.advance(after);
    EXPECT_TRUE(std::holds_alternative<Requeued>(requeue({"ep", "a"}, recording_)));
    EXPECT_EQ(find("a")->expiresAt, clock_.now() + recording_.last().job.policy.ttl);
    return recording_.last().job.policy.ttl;
  };
  EXPECT_EQ(retried(Millis(600'000)), Millis(3'000'000)) << "a shorter retention does not shorten the job's time";
  EXPECT_EQ(retried(Millis(1)), Millis(2'999'999)) << "counted from the submission, not from the last retry";
  (void)jobs().setTtl({"ep", "a"}, Millis(300'000));
  EXPECT_EQ(retried(Millis(60'000)), Millis(240'000)) << "the time set by setTtl counts";
  (void)jobs().setTtl({"ep", "a"}, Millis(86'400'000));
  EXPECT_EQ(retried(Millis(400'000)), Millis(86'000'000));
}

TEST_P(GroupSuite, TheLastRankIsOfTheGroupAndTheEndpoint) {
  put("a", "red", 5);
  EXPECT_FALSE(told().lastRank);
  EXPECT_FALSE(told().lowestWaiting);
  put("b", "blue", 9);
  EXPECT_FALSE(told().lastRank);
  EXPECT_EQ(told().lowestWaiting, 5);
  put("c", "red", 3);
  EXPECT_EQ(told().lastRank, 5);
  put("d", "red", 4);
  EXPECT_EQ(told().lastRank, 3) << "given last, not the highest";
  EXPECT_EQ(told().lowestWaiting, 3);
  put("e", "red", 1, false, "other");
  EXPECT_FALSE(told().lastRank) << "the other endpoint has a separate group";
  EXPECT_FALSE(told().lowestWaiting);
}

TEST_P(GroupSuite, TheLowestWaitingRankIsOfCurrentlyWaitingJobs) {
  put("a", "red", 2);
  put("low", "red", -3, true);
  EXPECT_FALSE(told().lowestWaiting) << "no job of the normal class waits";
  put("low2", "red", -1, true);
  EXPECT_EQ(told().lowestWaiting, -3);
  EXPECT_EQ(told().lastRank, -3) << "the group's, in either class";
  put("c", "red", 6);
  EXPECT_EQ(told().lowestWaiting, 2) << "only normal jobs count";
  EXPECT_EQ(told().lastRank, -1);
  EXPECT_EQ(claimOne().job, "a");
  put("d", "red", 8);
  EXPECT_EQ(told().lowestWaiting, 6);
  (void)jobs().purgeQueued("ep");
  put("e", "red", 9);
  EXPECT_FALSE(told().lowestWaiting);
  EXPECT_EQ(told().lastRank, 8) << "a group's last rank outlives the jobs";
}

TEST_P(GroupSuite, AnExpiredJobWaitsNoMore) {
  put("a", "red", 2);
  (void)jobs().setTtl({"ep", "a"}, Millis(1'000));
  clock_.advance(Millis(1'000));
  put("b", "red", 7);
  EXPECT_FALSE(told().lowestWaiting);
}

TEST_P(GroupSuite, ARetryIsRankedAmongItsGroup) {
  put("a", "red", 2);
  EXPECT_EQ(fail(claimOne()), ReportResult::accepted);
  put("b", "red", 6);
  ASSERT_TRUE(std::holds_alternative<Requeued>(requeue({"ep", "a"}, recording_)));
  EXPECT_EQ(told().lastRank, 6);
  EXPECT_EQ(told().lowestWaiting, 6);
  put("c", "red", 8);
  EXPECT_EQ(told().lastRank, 2) << "the retry's rank was remembered";
  EXPECT_EQ(claimOne().job, "a") << "the rank decides, not the arrival";
}

TEST_P(GroupSuite, AnEmptyGroupKeepsNoMemory) {
  put("a", "", 5);
  put("b", "", 6);
  EXPECT_FALSE(told().lastRank);
}

TEST_P(GroupSuite, ALossAndAReleaseKeepTheRank) {
  put("a", "red", 2);
  put("b", "red", 2);
  (void)claimOne();
  newLife();
  (void)sweep();
  put("c", "red", 1);
  put("d", "red", 3);
  const auto order = claim(9);
  ASSERT_EQ(order.size(), 4U);
  EXPECT_EQ(order[0].lease.job, "c");
  EXPECT_EQ(order[1].lease.job, "a");
  EXPECT_EQ(order[2].lease.job, "b");
  EXPECT_EQ(testkit::release(leases(), std::vector{order[2].lease, order[1].lease}), 2U);
  const auto again = claim(9);
  ASSERT_EQ(again.size(), 2U);
  EXPECT_EQ(again[0].lease.job, "a");
  EXPECT_EQ(again[1].lease.job, "b");
}

TEST_P(GroupSuite, ARemovedEndpointForgetsItsGroups) {
  put("a", "red", 5);
  while (jobs().remove("ep", 9) > 0) continue;
  put("b", "red", 5);
  EXPECT_FALSE(told().lastRank);
}

}  // namespace jobq::testkit
