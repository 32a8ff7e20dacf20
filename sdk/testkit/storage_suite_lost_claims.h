// Conformance: the jobs of a claim whose answer was lost (LeaseStore::claimed() in sdk/include/jobq/lease_store.h).
#pragma once

#include <gtest/gtest.h>

#include <cstddef>
#include <vector>

#include "jobq/call_id.h"
#include "jobq/job.h"
#include "jobq/lease_store.h"
#include "jobq/time.h"
#include "testkit/returned_jobs.h"
#include "testkit/same_answers.h"
#include "testkit/storage_suite_repeated_calls.h"

namespace jobq::testkit {

// Each id names one claim, so the later claim of a released job is another one.
TEST_P(RepeatedCalls, TheJobsOfAClaimAreReadByItsId) {
  for (const char* id : {"a", "b", "c"}) submit(id);
  submit(spec("d", "other"));
  const std::vector<ClaimWant> wants{{"other", {"w1"}}, {"ep", {"w3", "w2"}}, {"none", {"w4"}}};
  EXPECT_TRUE(leases().claimed(wants, 70).empty()) << "such a claim was never made";
  const auto jobs = leases().claim(wants, holder_, 70).jobs;
  ASSERT_EQ(jobs.size(), 3U);
  clock_.advance(Millis(10));
  auto again = leases().claimed(wants, 70);
  ASSERT_EQ(again.size(), 3U);
  EXPECT_EQ(again[0].runsFor, jobs[0].runsFor - Millis(10)) << "the time counts from the answer on";
  for (ClaimedJob& job : again) job.runsFor += Millis(10);
  for (std::size_t i = 0; i < jobs.size(); ++i) EXPECT_TRUE(isSameClaim(jobs[i], again[i])) << i;
  EXPECT_EQ(again[1].worker, "w3");
  EXPECT_EQ(again[1].lease, (LeaseRef{"a", 1}));
  EXPECT_TRUE(leases().claimed(wants, 71).empty()) << "the claim has a different number";
  EXPECT_EQ(stateOf("c"), JobState::inQueue) << "a lookup claims no job";
  EXPECT_TRUE(leases().claimed({}, 70).empty());
}

// An attempt may have ended before the caller asks: its worker must not run it.
TEST_P(RepeatedCalls, AnEndedAttemptIsNoLongerAJobOfTheClaim) {
  const ClaimWant want{"ep", {"w1", "w2", "w3", "w4", "w5"}};
  for (const char* id : {"done", "stopped", "returned", "late", "kept"}) submit(id);
  ASSERT_EQ(leases().claim({&want, 1}, holder_, 70).jobs.size(), 5U);
  EXPECT_EQ(complete({"done", 1}), ReportResult::accepted);
  (void)jobs().cancel({"ep", "stopped"});
  EXPECT_EQ(testkit::release(leases(), std::vector{LeaseRef{"returned", 1}}), 1U);
  ASSERT_TRUE(jobs().setTtl({"ep", "late"}, Millis(5'000)));
  clock_.advance(Millis(5'000));
  const auto left = leases().claimed({&want, 1}, 70);
  ASSERT_EQ(left.size(), 1U);
  EXPECT_EQ(left[0].lease, (LeaseRef{"kept", 1}));
  ASSERT_EQ(leases().claim({&want, 1}, holder_, 71).jobs.size(), 1U) << "the next claim takes the returned job";
  EXPECT_EQ(leases().claimed({&want, 1}, 70).size(), 1U);
  EXPECT_EQ(leases().claimed({&want, 1}, 71).at(0).lease.job, "returned");
}

TEST_P(RepeatedCalls, AClaimIsStoredWithItsJobs) {
  if (!GetParam().durable) GTEST_SKIP() << GetParam().name << " does not promise to keep anything";
  constexpr CallId kLargest = ~CallId{0};
  submit("a");
  const ClaimWant want{"ep", {"w1"}};
  ASSERT_EQ(leases().claim({&want, 1}, holder_, kLargest).jobs.size(), 1U);
  reopen();
  EXPECT_EQ(leases().claimed({&want, 1}, kLargest).at(0).lease, (LeaseRef{"a", 1}));
}

TEST_P(RepeatedCalls, AClaimWithAnEndedLeaseHasNoJobs) {
  submit("a");
  const ClaimWant want{"ep", {"w1"}};
  ASSERT_EQ(leases().claim({&want, 1}, holder_, 70).jobs.size(), 1U);
  newLife();
  (void)leases().sweep(9);
  EXPECT_TRUE(leases().claimed({&want, 1}, 70).empty());
}

}  // namespace jobq::testkit
