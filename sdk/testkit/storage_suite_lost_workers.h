// Conformance: jobs whose worker was lost while the life of its node goes on (sdk/include/jobq/lease_store.h, lose).
#pragma once

#include <cstddef>
#include <cstdint>
#include <set>
#include <string>
#include <utility>
#include <variant>
#include <vector>

#include "jobq/log.h"
#include "testkit/returned_jobs.h"
#include "testkit/storage_suite.h"

namespace jobq::testkit {

/// Fixture with short forms of lose().
class LostWorkerSuite : public StorageSuite {
 protected:
  SweepResult lose(const LeaseRef& lease) { return testkit::lose(leases(), std::vector{lease}); }
  static bool namesNothing(const SweepResult& lost) {
    return lost.stopped.empty() && lost.finished.empty() && lost.expired.empty() && lost.requeuedAt.empty() &&
           lost.removed == 0 && !lost.more;
  }
  /// Loses the attempt by the end of its holder's life, and returns the error of the job.
  std::string errorOfSweep(std::uint32_t maxAttempts) {
    JobSpec job = spec("swept", "other");
    job.maxAttempts = maxAttempts;
    submit(std::move(job));
    for (std::uint32_t loss = 0; loss < maxAttempts; ++loss) {
      (void)claimOne("other");
      newLife();
      (void)sweep();
    }
    const auto failed = find("swept", "other");
    return failed ? failed->error : "the job is absent";
  }
};

TEST_P(LostWorkerSuite, ALossIsCountedAndKeepsThePlace) {
  submit("first");
  submit("second");
  const Instant queued = find("first")->queuedAt;
  const LeaseRef lease = claimOne();
  clock_.advance(Millis(10));
  const SweepResult lost = lose(lease);
  EXPECT_EQ(lost.stopped, (std::vector{lease}));
  EXPECT_EQ(lost.requeuedAt, (std::vector<EndpointId>{"ep"}));
  EXPECT_TRUE(lost.finished.empty());
  EXPECT_TRUE(lost.expired.empty());
  EXPECT_EQ(lost.removed, 0U);
  EXPECT_FALSE(lost.more);
  const auto job = find("first");
  EXPECT_EQ(job->state, JobState::inQueue);
  EXPECT_EQ(job->attempt, lease.attempt + 1);
  EXPECT_EQ(job->losses, 1U);
  EXPECT_EQ(job->retries, 1U);
  EXPECT_EQ(job->queuedAt, queued);
  EXPECT_EQ(counts().retried, 1U);
  EXPECT_EQ(counts().inQueue, 2U);
  EXPECT_EQ(counts().inProgress, 0U);
  EXPECT_EQ(leaseState(lease), LeaseState::takenOver);
  const LeaseRef again = claimOne();
  EXPECT_EQ(again, (LeaseRef{"first", lease.attempt + 2}));
  EXPECT_EQ(complete(again), ReportResult::accepted);
}

TEST_P(LostWorkerSuite, TheLifeOfTheNodeGoesOn) {
  submit("lost");
  submit("kept");
  const auto jobs = claim(2);
  ASSERT_EQ(jobs.size(), 2U);
  (void)lose(jobs[0].lease);
  EXPECT_TRUE(sweep().stopped.empty());
  EXPECT_EQ(leaseState(jobs[1].lease), LeaseState::held);
  EXPECT_EQ(claimOne().job, "lost") << "the same life claims";
  EXPECT_EQ(complete(jobs[1].lease), ReportResult::accepted);
}

TEST_P(LostWorkerSuite, AJobFailsAtMaxAttemptsAndOwesItsWebhook) {
  JobSpec job = spec("a");
  job.maxAttempts = 2;
  job.webhook = "http://example.com/hook";
  submit(std::move(job));
  EXPECT_TRUE(lose(claimOne()).finished.empty());
  EXPECT_TRUE(claimDue(Millis(30'000)).empty());
  clock_.advance(Millis(10));
  const LeaseRef last = claimOne();
  const SweepResult lost = lose(last);
  EXPECT_EQ(lost.stopped, (std::vector{last}));
  EXPECT_EQ(lost.finished, (std::vector<JobKey>{{"ep", "a"}}));
  EXPECT_TRUE(lost.requeuedAt.empty());
  const auto failed = find("a");
  EXPECT_EQ(failed->state, JobState::failed);
  EXPECT_EQ(failed->losses, 2U);
  EXPECT_EQ(failed->retries, 2U);
  EXPECT_EQ(failed->finishedAt, clock_.now());
  EXPECT_EQ(counts().failed, 1U);
  EXPECT_EQ(counts().retried, 2U);
  const auto owed = claimDue(Millis(30'000));
  ASSERT_EQ(owed.size(), 1U);
  EXPECT_EQ(owed[0].job.state, JobState::failed);
  EXPECT_EQ(owed[0].job.error, failed->error);
  EXPECT_EQ(owed[0].job.losses, 2U);
  EXPECT_EQ(failed->error, "its worker was lost 2 times, maxAttempts is 2");
}

TEST_P(LostWorkerSuite, TheErrorIsTheSameAsOfASweep) {
  for (const std::uint32_t maxAttempts : {1U, 3U}) {
    const JobId id = "j" + std::to_string(maxAttempts);
    JobSpec job = spec(id);
    job.maxAttempts = maxAttempts;
    submit(std::move(job));
    for (std::uint32_t loss = 0; loss < maxAttempts; ++loss) (void)lose(claimOne());
    EXPECT_EQ(stateOf(id), JobState::failed);
    EXPECT_EQ(find(id)->error, errorOfSweep(maxAttempts));
    EXPECT_EQ(jobs().remove("other", 10), 1U);
  }
}

TEST_P(LostWorkerSuite, LossesOfBothKindsCountTogether) {
  JobSpec job = spec("a");
  job.maxAttempts = 3;
  submit(std::move(job));
  (void)lose(claimOne());
  (void)claimOne();
  newLife();
  (void)sweep();
  EXPECT_EQ(testkit::release(leases(), std::vector{claimOne()}), 1U);
  EXPECT_EQ(find("a")->losses, 2U);
  (void)lose(claimOne());
  EXPECT_EQ(stateOf("a"), JobState::failed);
  ASSERT_TRUE(std::holds_alternative<Requeued>(requeue({"ep", "a"}, policy_)));
  (void)lose(claimOne());
  EXPECT_EQ(stateOf("a"), JobState::inQueue) << "a retry starts the count again";
  EXPECT_EQ(find("a")->losses, 1U);
}

TEST_P(LostWorkerSuite, AStaleLeaseIsSkipped) {
  submit("released");
  const LeaseRef released = claimOne();
  EXPECT_EQ(testkit::release(leases(), std::vector{released}), 1U);
  const LeaseRef again = claimOne();
  const LeaseRef done = bring("done", JobState::completed);
  const LeaseRef late = bring("late", JobState::timedOut);
  JobSpec brief = spec("expired", "other");
  brief.policy.ttl = Millis(10'000);
  submit(std::move(brief));
  const LeaseRef expired = claimOne("other");
  clock_.advance(Millis(10'000));
  const LeaseRef held = bring("held", JobState::inProgress);
  submit("queued");
  const SweepResult lost =
      testkit::lose(leases(), std::vector{released, done, late, LeaseRef{"queued", 0}, LeaseRef{"absent", 1},
                                          LeaseRef{"held", held.attempt + 1}, held, expired});
  EXPECT_EQ(lost.stopped, (std::vector{held}));
  EXPECT_EQ(leaseState(again), LeaseState::held);
  EXPECT_EQ(stateOf("done"), JobState::completed);
  EXPECT_EQ(stateOf("late"), JobState::timedOut);
  EXPECT_EQ(counts().retried, 1U);
  EXPECT_EQ(find("queued")->losses, 0U);
  EXPECT_TRUE(namesNothing(testkit::lose(leases(), {})));
}

TEST_P(LostWorkerSuite, ALossDiscardsTheReportsOfTheAttempt) {
  submit("a");
  const LeaseRef lease = claimOne();
  EXPECT_EQ(leases().progress(lease, "1"), ReportResult::accepted);
  EXPECT_EQ(append(lease, {Chunk{"1", "", false}, Chunk{"2", "", false}}), ReportResult::accepted);
  EXPECT_EQ(consume({"ep", "a"}, 1)->chunks.size(), 1U);
  EXPECT_EQ(appendLog(lease, {LogLine{{}, LogLevel::information, "kept"}}), ReportResult::accepted);
  (void)lose(lease);
  EXPECT_EQ(find("a")->progress, "");
  EXPECT_EQ(find("a")->error, "");
  EXPECT_FALSE(find("a")->finishedAt);
  EXPECT_TRUE(chunks().read({"ep", "a"}, 0, 100)->chunks.empty());
  EXPECT_EQ(chunks().readLog({"ep", "a"})->lines.size(), 1U);
  const LeaseRef again = claimOne();
  EXPECT_EQ(append(again, {Chunk{"3", "", false}}), ReportResult::accepted);
  EXPECT_EQ(taken("a").size(), 1U) << "the cursor starts again";
}

TEST_P(LostWorkerSuite, AReportAfterTheLossIsStale) {
  submit("a");
  const LeaseRef lease = claimOne();
  (void)lose(lease);
  const std::string before = describe(*find("a"));
  EXPECT_EQ(complete(lease), ReportResult::staleAttempt);
  EXPECT_EQ(fail(lease), ReportResult::staleAttempt);
  EXPECT_EQ(leases().progress(lease, "1"), ReportResult::staleAttempt);
  EXPECT_EQ(append(lease, {Chunk{"1", "", false}}), ReportResult::staleAttempt);
  EXPECT_EQ(describe(*find("a")), before);
  JobSpec last = spec("b", "other");
  last.maxAttempts = 1;
  submit(std::move(last));
  const LeaseRef failed = claimOne("other");
  (void)lose(failed);
  EXPECT_EQ(complete(failed), ReportResult::staleAttempt);
  EXPECT_EQ(find("b", "other")->state, JobState::failed);
}

TEST_P(LostWorkerSuite, ARepeatedCallNamesNoJob) {
  submit("a");
  const LeaseRef lease = claimOne();
  (void)lose(lease);
  const std::string before = describe(*find("a"));
  EXPECT_TRUE(namesNothing(lose(lease)));
  EXPECT_EQ(describe(*find("a")), before);
  EXPECT_EQ(counts().retried, 1U);
  const LeaseRef again = claimOne();
  EXPECT_TRUE(namesNothing(lose(lease))) << "a later attempt runs";
  EXPECT_EQ(leaseState(again), LeaseState::held);
  const SweepResult twice = testkit::lose(leases(), std::vector{again, again});
  EXPECT_EQ(twice.stopped, (std::vector{again})) << "an attempt named twice is lost once";
  EXPECT_EQ(find("a")->losses, 2U);
}

TEST_P(LostWorkerSuite, ManyLeasesOfTwoEndpointsAreTakenBackInOneCall) {
  for (int i = 0; i < 3; ++i) submit(spec("a" + std::to_string(i), "one"));
  for (int i = 0; i < 2; ++i) submit(spec("b" + std::to_string(i), "two"));
  JobSpec last = spec("c", "three");
  last.maxAttempts = 1;
  submit(std::move(last));
  std::vector<LeaseRef> lost;
  for (const EndpointId& endpoint : {EndpointId("one"), EndpointId("three"), EndpointId("two")}) {
    for (const ClaimedJob& job : claim(9, endpoint)) lost.push_back(job.lease);
  }
  ASSERT_EQ(lost.size(), 6U);
  const SweepResult result = testkit::lose(leases(), lost);
  EXPECT_EQ(result.stopped, lost);
  EXPECT_EQ(result.finished, (std::vector<JobKey>{{"three", "c"}}));
  EXPECT_EQ(result.requeuedAt.size(), 2U) << "each endpoint once";
  EXPECT_EQ(std::set<EndpointId>(result.requeuedAt.begin(), result.requeuedAt.end()),
            (std::set<EndpointId>{"one", "two"}));
  EXPECT_EQ(counts("one").inQueue, 3U);
  EXPECT_EQ(counts("one").retried, 3U);
  EXPECT_EQ(counts("two").retried, 2U);
  EXPECT_EQ(counts("three").failed, 1U);
  EXPECT_EQ(counts("three").retried, 1U);
  EXPECT_EQ(claim(9, "one").size(), 3U);
}

TEST_P(LostWorkerSuite, ARacingLossAndFinishHaveOneEffect) {
  for (int round = 0; round < 20; ++round) {
    const JobId id = "j" + std::to_string(round);
    submit(id);
    const LeaseRef lease = claimOne();
    ASSERT_EQ(lease.job, id);
    ReportResult finished = ReportResult::staleAttempt;
    SweepResult lost;
    race(2, [&](int i) {
      if (i == 0) {
        finished = complete(lease);
      } else {
        lost = lose(lease);
      }
    });
    const bool isFinished = finished == ReportResult::accepted;
    EXPECT_EQ(lost.stopped.size(), isFinished ? 0U : 1U);
    EXPECT_EQ(stateOf(id), isFinished ? JobState::completed : JobState::inQueue);
    EXPECT_EQ(find(id)->losses, isFinished ? 0U : 1U);
    (void)storage_->jobs().purgeQueued("ep");
  }
}

}  // namespace jobq::testkit
