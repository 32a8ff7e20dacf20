// Conformance: the counters of an endpoint (job_store.h, EndpointCounts).
#pragma once

#include <cstdint>
#include <utility>
#include <vector>

#include "testkit/returned_jobs.h"
#include "testkit/storage_suite.h"

namespace jobq::testkit {

TEST_P(StorageSuite, CountsAreRightAtEveryMoment) {
  JobSpec low = spec("low");
  low.policy.lowPriority = true;
  submit(std::move(low));
  submit("a");
  submit("b");
  EXPECT_EQ(counts().inQueue, 3U);
  EXPECT_EQ(counts().inQueueLow, 1U);
  const auto jobs = claim(3);
  EXPECT_EQ(counts().inQueue, 0U);
  EXPECT_EQ(counts().inQueueLow, 0U);
  EXPECT_EQ(counts().inProgress, 3U);
  EXPECT_EQ(complete(jobs[0].lease), ReportResult::accepted);
  EXPECT_EQ(fail(jobs[1].lease), ReportResult::accepted);
  (void)testkit::release(storage_->leases(), std::vector{jobs[2].lease});
  EXPECT_EQ(counts().inProgress, 0U);
  EXPECT_EQ(counts().inQueue, 1U);
  EXPECT_EQ(counts().inQueueLow, 1U);
  EXPECT_EQ(counts().completed, 1U);
  EXPECT_EQ(counts().failed, 1U);
  EXPECT_EQ(counts().retried, 0U);
  clock_.advance(Millis(86'400'000));
  EXPECT_EQ(counts().inQueue, 0U) << "an expired job is absent at once";
  (void)sweep();
  EXPECT_EQ(counts().inQueue, 0U);
  EXPECT_EQ(counts().completed, 1U) << "expiry lowers no total";
  EXPECT_EQ(counts("none").inQueue, 0U);
}

TEST_P(StorageSuite, CountsFollowEachOperation) {
  const auto expect = [this](std::uint64_t queued, std::uint64_t low, std::uint64_t running, std::uint64_t completed,
                             std::uint64_t failed, std::uint64_t retried, const char* after) {
    const EndpointCounts now = counts();
    EXPECT_EQ(now.inQueue, queued) << after;
    EXPECT_EQ(now.inQueueLow, low) << after;
    EXPECT_EQ(now.inProgress, running) << after;
    EXPECT_EQ(now.completed, completed) << after;
    EXPECT_EQ(now.failed, failed) << after;
    EXPECT_EQ(now.retried, retried) << after;
  };
  JobSpec low = spec("low");
  low.policy.lowPriority = true;
  low.policy.executionTimeout = Millis(5'000);
  submit(low);
  submit(spec("elsewhere", "other"));
  expect(1, 1, 0, 0, 0, 0, "insert");
  (void)claimOne();
  expect(0, 0, 1, 0, 0, 0, "claim");
  clock_.advance(Millis(5'001));
  (void)sweep();
  expect(0, 0, 0, 0, 1, 0, "timeout");
  (void)requeue({"ep", "low"}, policy_);
  expect(1, 1, 0, 0, 1, 1, "retry");
  (void)claimOne();
  newLife();
  (void)sweep();
  expect(1, 1, 0, 0, 1, 2, "loss");
  const LeaseRef lease = claimOne();
  (void)testkit::release(leases(), std::vector{lease});
  expect(1, 1, 0, 0, 1, 2, "release");
  (void)jobs().cancel({"ep", "low"});
  expect(0, 0, 0, 0, 1, 2, "cancel of a waiting job");
  submit("runs");
  (void)claimOne();
  (void)jobs().cancel({"ep", "runs"});
  expect(0, 0, 0, 0, 1, 2, "cancel of a running job");
  submit("a");
  submit("b");
  (void)jobs().purgeQueued("ep");
  expect(0, 0, 0, 0, 1, 2, "purge");
  submit("c");
  EXPECT_EQ(complete(claimOne()), ReportResult::accepted);
  expect(0, 0, 0, 1, 1, 2, "finish");
  EXPECT_EQ(counts("other").inQueue, 1U);
}

}  // namespace jobq::testkit
