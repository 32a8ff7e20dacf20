// Conformance: the outcomes of several attempts in one call (LeaseStore::finish in sdk/include/jobq/lease_store.h).
#pragma once

#include <cstddef>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "testkit/returned_jobs.h"
#include "testkit/storage_suite.h"

namespace jobq::testkit {

class FinishAllSuite : public StorageSuite {
 protected:
  static constexpr ReportResult kAccepted = ReportResult::accepted;
  static constexpr ReportResult kStale = ReportResult::staleAttempt;

  std::vector<ReportResult> finishAll(const std::vector<EndedAttempt>& ends) {
    return leases().finish(ends, Durability::synced, std::nullopt).reports;
  }
};

TEST_P(FinishAllSuite, EachOutcomeIsRecordedWithTheRightJob) {
  for (const char* id : {"a", "b", "c", "d"}) submit(id);
  const LeaseRef a = claimOne();
  const LeaseRef b = claimOne();
  const LeaseRef c = claimOne();
  clock_.advance(Millis(50));
  EXPECT_EQ(finishAll({{a, Completed{"[1.0]"}}, {b, Failed{"bad luck", "{}"}}, {c, Completed{""}}}),
            (std::vector{kAccepted, kAccepted, kAccepted}));
  EXPECT_EQ(find("a")->output, "[1.0]");
  EXPECT_EQ(*find("a")->finishedAt, clock_.now());
  EXPECT_EQ(stateOf("b"), JobState::failed);
  EXPECT_EQ(find("b")->error, "bad luck");
  EXPECT_EQ(find("b")->output, "{}");
  EXPECT_EQ(stateOf("c"), JobState::completed);
  EXPECT_EQ(stateOf("d"), JobState::inQueue);
  const EndpointCounts counts = storage_->jobs().counts("ep");
  EXPECT_EQ(counts.completed, 2U);
  EXPECT_EQ(counts.failed, 1U);
  EXPECT_EQ(counts.inProgress, 0U);
}

TEST_P(FinishAllSuite, NoOutcomesAreNoAnswers) { EXPECT_TRUE(finishAll({}).empty()); }

TEST_P(FinishAllSuite, AStaleAttemptDoesNotHoldUpOtherReports) {
  submit("a");
  submit("b");
  const LeaseRef a = claimOne();
  const LeaseRef b = claimOne();
  ASSERT_EQ(testkit::release(leases(), std::vector{a}), 1U);
  EXPECT_EQ(finishAll({{a, Completed{"1"}}, {{"absent", 1}, Completed{"1"}}, {b, Completed{"2"}}}),
            (std::vector{kStale, kStale, kAccepted}));
  EXPECT_EQ(stateOf("a"), JobState::inQueue);
  EXPECT_EQ(find("b")->output, "2");
}

TEST_P(FinishAllSuite, ALongBatchIsRecordedInOrder) {
  constexpr std::size_t kJobs = 150;
  std::vector<EndedAttempt> ends;
  for (std::size_t i = 0; i < kJobs; ++i) {
    submit("job" + std::to_string(i));
    ends.push_back({claimOne(), Completed{std::to_string(i)}});
  }
  std::vector<ReportResult> expected(kJobs, kAccepted);
  ends.push_back({ends.front().lease, Completed{"another"}});
  expected.push_back(kStale);
  EXPECT_EQ(finishAll(ends), expected);
  for (std::size_t i = 0; i < kJobs; ++i) EXPECT_EQ(find(ends[i].lease.job)->output, std::to_string(i));
}

TEST_P(FinishAllSuite, OfTwoOutcomesOfAnAttemptTheFirstCounts) {
  submit("a");
  const LeaseRef a = claimOne();
  EXPECT_EQ(finishAll({{a, Completed{"1"}}, {a, Completed{"2"}}, {a, Completed{"1"}}}),
            (std::vector{kAccepted, kStale, kAccepted}));
  EXPECT_EQ(find("a")->output, "1");
  EXPECT_EQ(storage_->jobs().counts("ep").completed, 1U);
}

TEST_P(FinishAllSuite, ARepeatedCallHasTheSameAnswers) {
  submit("a");
  submit("b");
  const std::vector<EndedAttempt> ends{{claimOne(), Completed{"1"}}, {claimOne(), Failed{"no", ""}}};
  EXPECT_EQ(finishAll(ends), (std::vector{kAccepted, kAccepted}));
  EXPECT_EQ(finishAll(ends), (std::vector{kAccepted, kAccepted}));
  EXPECT_EQ(finishAll({{ends[0].lease, Completed{"2"}}, ends[1]}), (std::vector{kStale, kAccepted}));
  EXPECT_EQ(storage_->jobs().counts("ep").completed, 1U);
}

TEST_P(FinishAllSuite, LargeAndSmallOutputsKeepTheirBytes) {
  submit("a");
  submit("b");
  submit("c");
  const LeaseRef a = claimOne();
  const LeaseRef b = claimOne();
  const LeaseRef c = claimOne();
  const std::string large = '"' + std::string(3 << 20, 'x') + '"';
  const std::string other = '"' + std::string(1 << 20, 'y') + '"';
  EXPECT_EQ(finishAll({{a, Completed{large}}, {b, Completed{"1"}}, {c, Completed{other}}, {a, Completed{other}}}),
            (std::vector{kAccepted, kAccepted, kAccepted, kStale}));
  EXPECT_EQ(find("a")->output, large);
  EXPECT_EQ(find("b")->output, "1");
  EXPECT_EQ(find("c")->output, other);
}

TEST_P(FinishAllSuite, EachOwedWebhookIsWritten) {
  for (const char* id : {"a", "b", "c"}) {
    JobSpec job = spec(id);
    if (std::string(id) != "b") job.webhook = "http://h/done";
    submit(job);
  }
  const std::vector<EndedAttempt> ends{
      {claimOne(), Completed{"1"}}, {claimOne(), Completed{"2"}}, {claimOne(), Failed{"no", ""}}};
  EXPECT_EQ(finishAll(ends), (std::vector{kAccepted, kAccepted, kAccepted}));
  EXPECT_EQ(storage_->outbox().owed("ep").count, 2U);
}

}  // namespace jobq::testkit
