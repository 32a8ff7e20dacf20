// Conformance: values of the contract that no storage uses yet (sdk/include/jobq/planned.h). A storage refuses them.
#pragma once

#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "jobq/error.h"
#include "testkit/storage_suite.h"

namespace jobq::testkit {

TEST_P(StorageSuite, ASubmissionWithAPlannedValueIsRefused) {
  const auto refuses = [&](const char* what, auto&& change) {
    JobSpec job = spec("a");
    InsertTerms terms;
    change(job, terms);
    EXPECT_THROW((void)jobs().insert(std::move(job), policy_, terms), StorageError) << what;
    EXPECT_FALSE(find("a")) << what;
  };
  refuses("a delay", [](JobSpec& job, InsertTerms&) { job.delay = Millis(1); });
  refuses("retries", [](JobSpec& job, InsertTerms&) { job.retry = RetryPolicy{}; });
  refuses("a traceparent", [](JobSpec& job, InsertTerms&) { job.traceparent = "00-1-1-01"; });
  refuses("a condition", [](JobSpec&, InsertTerms& terms) { terms.onlyIf = OnlyIf{}; });
}

TEST_P(StorageSuite, AnEndWithAPauseBeforeARetryIsRefused) {
  submit("a");
  const EndedAttempt end{claimOne(), Failed{"no", ""}, Millis(1)};
  EXPECT_THROW((void)leases().finish({&end, 1}, Durability::synced, std::nullopt), StorageError);
  EXPECT_EQ(stateOf("a"), JobState::inProgress);
}

TEST_P(StorageSuite, ALifeWithACulpritIsRefused) {
  submit("a");
  EXPECT_THROW((void)storage_->nodes().join("other", JobKey{"ep", "a"}), StorageError);
  EXPECT_EQ(storage_->nodes().nodes().size(), 1U);
}

TEST_P(StorageSuite, TheCountersOfAllEndpointsAreThoseOfEach) {
  for (const char* endpoint : {"one", "two"}) {
    for (const char* id : {"a", "b", "c"}) {
      JobSpec job = spec(std::string(endpoint) + id);
      job.endpoint = endpoint;
      submit(std::move(job));
    }
  }
  (void)complete(leases().claim(std::vector{ClaimWant{"two", {"w"}}}, holder_, nextCall()).jobs.at(0).lease, "1");
  clock_.advance(Millis(20));
  const auto all = jobs().allCounts();
  for (const char* endpoint : {"one", "two"}) {
    ASSERT_TRUE(all.contains(endpoint)) << endpoint;
    const EndpointCounts one = counts(endpoint);
    EXPECT_EQ(all.at(endpoint).inQueue, one.inQueue) << endpoint;
    EXPECT_EQ(all.at(endpoint).completed, one.completed) << endpoint;
    EXPECT_EQ(all.at(endpoint).headWait, one.headWait) << endpoint;
  }
  EXPECT_EQ(all.at("two").completed, 1U);
  EXPECT_EQ(all.at("one").headWait, Millis(20));
}

}  // namespace jobq::testkit
