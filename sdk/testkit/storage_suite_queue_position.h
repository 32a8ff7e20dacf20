// Conformance: position and age of queued jobs (LeaseStore::ahead, EndpointCounts::headWait).
#pragma once

#include <cstddef>
#include <optional>
#include <utility>
#include <vector>

#include "testkit/returned_jobs.h"
#include "testkit/storage_suite.h"

namespace jobq::testkit {

TEST_P(StorageSuite, AJobsPositionIsTheNumberOfEarlierClaims) {
  JobSpec low = spec("low");
  low.policy.lowPriority = true;
  submit(std::move(low));
  submit("a");
  submit("b");
  submit(spec("elsewhere", "other"));
  const auto ahead = [this](const char* id, std::size_t most = 100) { return leases().ahead({"ep", id}, most); };
  EXPECT_EQ(ahead("a"), 0U);
  EXPECT_EQ(ahead("b"), 1U);
  EXPECT_EQ(ahead("low"), 2U) << "a low-priority job runs after all normal jobs";
  EXPECT_EQ(ahead("low", 1), 1U) << "counted up to the bound";
  EXPECT_EQ(ahead("elsewhere"), std::nullopt) << "the job belongs to a different endpoint";
  EXPECT_EQ(ahead("none"), std::nullopt);
  const LeaseRef lease = claimOne();
  EXPECT_EQ(lease.job, "a");
  EXPECT_EQ(ahead("a"), std::nullopt) << "a claimed job does not wait";
  EXPECT_EQ(ahead("b"), 0U);
  EXPECT_EQ(ahead("low"), 1U);
  (void)testkit::release(leases(), std::vector{lease});
  EXPECT_EQ(ahead("a"), 0U) << "a released job has the old place again";
  (void)jobs().cancel({"ep", "a"});
  EXPECT_EQ(ahead("a"), std::nullopt);
  EXPECT_EQ(ahead("low"), 1U);
}

TEST_P(StorageSuite, AnExpiredJobIsAheadOfNoOther) {
  JobSpec brief = spec("brief");
  brief.policy.ttl = Millis(10'000);
  submit(std::move(brief));
  submit("a");
  EXPECT_EQ(leases().ahead({"ep", "a"}, 100), 1U);
  EXPECT_EQ(counts().headWait, Millis(0));
  clock_.advance(Millis(3));
  EXPECT_EQ(counts().headWait, Millis(3));
  clock_.advance(Millis(9'997));
  EXPECT_EQ(leases().ahead({"ep", "a"}, 100), 0U);
  EXPECT_EQ(leases().ahead({"ep", "brief"}, 100), std::nullopt);
  EXPECT_EQ(counts().headWait, Millis(10'000));
}

TEST_P(StorageSuite, TheHeadOfTheQueueIsTheNextClaimedNormalJob) {
  EXPECT_EQ(counts().headWait, std::nullopt);
  JobSpec low = spec("low");
  low.policy.lowPriority = true;
  submit(std::move(low));
  EXPECT_EQ(counts().headWait, std::nullopt) << "a low-priority job triggers no scaling";
  clock_.advance(Millis(5));
  submit("a");
  clock_.advance(Millis(7));
  submit("b");
  EXPECT_EQ(counts().headWait, Millis(7));
  const LeaseRef lease = claimOne();
  EXPECT_EQ(counts().headWait, Millis(0));
  clock_.advance(Millis(100));
  (void)testkit::release(leases(), std::vector{lease});
  EXPECT_EQ(counts().headWait, Millis(107)) << "a released job has waited since the submission";
  (void)jobs().purgeQueued("ep");
  EXPECT_EQ(counts().headWait, std::nullopt);
}

}  // namespace jobq::testkit
