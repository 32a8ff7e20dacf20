// Conformance: JobStore (job_store.h).
#pragma once

#include <cstdint>
#include <optional>
#include <set>
#include <string>
#include <utility>
#include <variant>
#include <vector>

#include "jobq/error.h"
#include "jobq/log.h"
#include "testkit/returned_jobs.h"
#include "testkit/storage_suite.h"

namespace jobq::testkit {

TEST_P(StorageSuite, ANewJobIsInTheQueueWithItsTimes) {
  const Instant now = clock_.now();
  submit("a");
  const auto job = find("a");
  ASSERT_TRUE(job);
  EXPECT_EQ(job->state, JobState::inQueue);
  EXPECT_EQ(job->endpoint, "ep");
  EXPECT_EQ(job->attempt, 0U);
  EXPECT_EQ(job->submittedAt, now);
  EXPECT_EQ(job->queuedAt, now);
  EXPECT_EQ(job->expiresAt, now + Millis(86'400'000));
  EXPECT_FALSE(job->startedAt);
  EXPECT_FALSE(job->finishedAt);
  EXPECT_EQ(job->workerId, "");
  EXPECT_EQ(storage_->now(), now);
}

TEST_P(StorageSuite, AJobIdIsTakenOnce) {
  submit("a");
  JobSpec other = spec("a");
  other.input = "{\"n\":2}";
  EXPECT_THROW((void)storage_->jobs().insert(std::move(other), policy_), StorageError);
  EXPECT_EQ(counts().inQueue, 1U);
}

TEST_P(StorageSuite, TheQueueIsOrderedByClassRankAndArrival) {
  const auto put = [this](const JobId& id, bool low, int rank) {
    JobSpec job = spec(id);
    job.policy.lowPriority = low;
    job.policy.priority = rank;
    submit(std::move(job));
  };
  put("low-early", true, -9);
  put("late", false, 5);
  put("first", false, 1);
  put("second", false, 1);
  put("low-late", true, 3);
  std::vector<JobId> order;
  for (const ClaimedJob& job : claim(9)) order.push_back(job.lease.job);
  EXPECT_EQ(order, (std::vector<JobId>{"first", "second", "late", "low-early", "low-late"}));
}

TEST_P(StorageSuite, SummariesComeInTheOrderOfTheKeys) {
  bring("done", JobState::completed);
  bring("stopped", JobState::cancelled);
  const LeaseRef runs = bring("runs", JobState::inProgress);
  EXPECT_EQ(append(runs, {Chunk{"1", "", false}, Chunk{"2", "", false}}), ReportResult::accepted);
  EXPECT_EQ(consume({"ep", "runs"}, 1)->chunks.size(), 1U);
  JobSpec brief = spec("brief");
  brief.policy.ttl = Millis(10'000);
  submit(std::move(brief));
  submit("waits");
  const std::vector<JobKey> keys{{"ep", "waits"}, {"ep", "runs"},  {"other", "done"}, {"ep", "done"},
                                 {"ep", "none"},  {"ep", "brief"}, {"ep", "stopped"}, {"ep", "done"}};
  const std::optional<JobSummary> done = JobSummary{JobState::completed, 1, 0};
  const std::optional<JobSummary> queued = JobSummary{JobState::inQueue, 0, 0};
  const std::optional<JobSummary> stopped = JobSummary{JobState::cancelled, 0, 0};
  std::optional<JobSummary> running = JobSummary{JobState::inProgress, runs.attempt, 2};
  EXPECT_EQ(jobs().summaries(keys),
            (std::vector<std::optional<JobSummary>>{queued, running, {}, done, {}, queued, stopped, done}));
  EXPECT_EQ(testkit::release(leases(), std::vector{runs}), 1U);
  clock_.advance(Millis(10'000));
  running = JobSummary{JobState::inQueue, runs.attempt + 1, 0};
  EXPECT_EQ(jobs().summaries(keys),
            (std::vector<std::optional<JobSummary>>{queued, running, {}, done, {}, {}, stopped, done}));
  EXPECT_TRUE(jobs().summaries({}).empty());
}

TEST_P(StorageSuite, CancelNamesTheLastAttempt) {
  submit("waits");
  auto result = storage_->jobs().cancel({"ep", "waits"});
  ASSERT_TRUE(std::holds_alternative<Cancelled>(result));
  EXPECT_EQ(std::get<Cancelled>(result).lease, (LeaseRef{"waits", 0}));
  submit("runs");
  const LeaseRef lease = claimOne();
  result = storage_->jobs().cancel({"ep", "runs"});
  ASSERT_TRUE(std::holds_alternative<Cancelled>(result));
  EXPECT_EQ(std::get<Cancelled>(result).lease, lease);
  EXPECT_EQ(find("runs")->finishedAt, clock_.now());
  EXPECT_TRUE(claim(9).empty()) << "a cancelled job is not in the queue";
}

TEST_P(StorageSuite, RetryResetsAJobAndPutsItAtTheEndOfTheQueue) {
  const LeaseRef first = bring("a", JobState::failed);
  const Instant submitted = find("a")->submittedAt;
  submit("b");
  clock_.advance(Millis(7'000));
  ASSERT_TRUE(std::holds_alternative<Requeued>(requeue({"ep", "a"}, policy_)));
  const auto job = find("a");
  EXPECT_EQ(job->state, JobState::inQueue);
  EXPECT_GT(job->attempt, first.attempt);
  EXPECT_EQ(job->retries, 1U);
  EXPECT_EQ(job->losses, 0U);
  EXPECT_EQ(job->submittedAt, submitted);
  EXPECT_EQ(job->queuedAt, clock_.now());
  EXPECT_EQ(job->error, "");
  EXPECT_EQ(job->output, "");
  EXPECT_EQ(job->workerId, "");
  EXPECT_FALSE(job->startedAt);
  EXPECT_FALSE(job->finishedAt);
  EXPECT_EQ(job->expiresAt, submitted + Millis(86'400'000));
  EXPECT_EQ(counts().retried, 1U);
  EXPECT_EQ(claimOne().job, "b");
  EXPECT_EQ(claimOne().job, "a");
}

TEST_P(StorageSuite, PurgeRemovesWaitingJobsOnly) {
  bring("runs", JobState::inProgress);
  submit("a");
  submit("b");
  submit(spec("c", "other"));
  EXPECT_EQ(storage_->jobs().purgeQueued("ep"), 2U);
  EXPECT_FALSE(find("a"));
  EXPECT_TRUE(find("runs"));
  EXPECT_TRUE(find("c", "other"));
  EXPECT_EQ(counts().inQueue, 0U);
  EXPECT_EQ(storage_->jobs().purgeQueued("ep"), 0U);
}

TEST_P(StorageSuite, AListIsNewestFirstFilteredAndPaged) {
  for (int i = 0; i < 5; ++i) submit("j" + std::to_string(i));
  EXPECT_EQ(complete(claimOne()), ReportResult::accepted);
  const JobPage page = storage_->jobs().list({"ep", std::nullopt}, {1, 2});
  EXPECT_EQ(page.total, 5U);
  ASSERT_EQ(page.jobs.size(), 2U);
  EXPECT_EQ(page.jobs[0].id, "j3");
  EXPECT_EQ(page.jobs[1].id, "j2");
  const JobPage done = storage_->jobs().list({"ep", JobState::completed}, {});
  EXPECT_EQ(done.total, 1U);
  ASSERT_EQ(done.jobs.size(), 1U);
  EXPECT_EQ(done.jobs[0].id, "j0");
  EXPECT_EQ(done.jobs[0].output, "");
  EXPECT_EQ(storage_->jobs().list({"none", std::nullopt}, {}).total, 0U);
}

TEST_P(StorageSuite, ACursorGoesThroughAListWithoutGapsOrRepeats) {
  for (int i = 0; i < 7; ++i) {
    submit("j" + std::to_string(i));
    submit(spec("other" + std::to_string(i), "other"));
  }
  for (int i = 0; i < 3; ++i) EXPECT_EQ(complete(claimOne()), ReportResult::accepted);
  const auto idsOf = [](const JobPage& page) {
    std::string ids;
    for (const Job& job : page.jobs) ids += job.id + " ";
    return ids;
  };
  const JobPage first = jobs().list({"ep", std::nullopt}, {0, 3});
  EXPECT_EQ(idsOf(first), "j6 j5 j4 ");
  submit("newer");
  const JobPage second = jobs().list({"ep", std::nullopt}, {0, 3, first.next});
  EXPECT_EQ(idsOf(second), "j3 j2 j1 ") << "a new job does not shift the next page";
  EXPECT_EQ(second.total, 8U);
  const JobPage last = jobs().list({"ep", std::nullopt}, {0, 3, second.next});
  EXPECT_EQ(idsOf(last), "j0 ");
  EXPECT_EQ(last.next, 0U);
  EXPECT_EQ(jobs().list({"ep", std::nullopt}, {0, 8}).next, 0U) << "a single page holds all jobs";
  const JobPage done = jobs().list({"ep", JobState::completed}, {0, 2});
  EXPECT_EQ(idsOf(done), "j2 j1 ");
  EXPECT_EQ(idsOf(jobs().list({"ep", JobState::completed}, {0, 2, done.next})), "j0 ");
  EXPECT_EQ(idsOf(jobs().list({"ep", JobState::inQueue}, {0, 2, second.next})), "")
      << "the jobs after the cursor are completed";
}

TEST_P(StorageSuite, AListHasTheBeginningOfALongError) {
  submit("a");
  const std::string error = std::string(kListedErrorBytes - 1, 'e') + "\xc3\xa4 and more";
  EXPECT_EQ(fail(claimOne(), error), ReportResult::accepted);
  EXPECT_EQ(find("a")->error, error);
  EXPECT_EQ(jobs().list({"ep", std::nullopt}, {}).jobs.at(0).error, std::string(kListedErrorBytes - 1, 'e') + "...");
}

TEST_P(StorageSuite, AnEndpointIsRemovedInBatches) {
  for (JobState state : kAllStates) bring("j" + std::to_string(static_cast<int>(state)), state);
  submit(spec("kept", "other"));
  EXPECT_EQ(storage_->jobs().remove("ep", 4), 4U);
  EXPECT_EQ(storage_->jobs().remove("ep", 4), 2U);
  EXPECT_EQ(storage_->jobs().remove("ep", 4), 0U);
  EXPECT_EQ(storage_->jobs().list({"ep", std::nullopt}, {}).total, 0U);
  EXPECT_EQ(counts().completed, 0U);
  EXPECT_EQ(counts().inQueue, 0U);
  EXPECT_TRUE(find("kept", "other"));
}

TEST_P(StorageSuite, EachStepOfARemovalIsBounded) {
  const TakeTurns turns;
  for (int i = 0; i < 3; ++i) {
    JobSpec job = spec("j" + std::to_string(i));
    job.apiKeyId = "key" + std::to_string(i);
    ASSERT_TRUE(std::holds_alternative<Inserted>(jobs().insert(std::move(job), turns, {Idempotency{"k", "h"}})));
  }
  for (int step = 0; step < 4; ++step)
    EXPECT_EQ(jobs().remove("ep", 2), 2U) << "three jobs, idempotency records and groups";
  EXPECT_EQ(jobs().remove("ep", 2), 1U);
  EXPECT_EQ(jobs().remove("ep", 2), 0U);
}

TEST_P(StorageSuite, TheIdOfAnExpiredJobIsFreeAfterTheSweep) {
  submit("a");
  const LeaseRef lease = claimOne();
  clock_.advance(Millis(86'400'000));
  EXPECT_FALSE(find("a"));
  EXPECT_THROW((void)jobs().insert(spec("a"), policy_), StorageError);
  sweepAll();
  submit("a");
  EXPECT_EQ(complete(lease), ReportResult::staleAttempt);
  EXPECT_EQ(stateOf("a"), JobState::inQueue);
}

TEST_P(StorageSuite, AThrowingInsertHasNoEffect) {
  submit("a");
  const std::string before = describe(*find("a"));
  JobSpec twin = spec("a", "other");
  twin.webhook = "http://example.com/";
  EXPECT_THROW((void)jobs().insert(std::move(twin), policy_, {Idempotency{"k", "h"}}), StorageError);
  EXPECT_EQ(describe(*find("a")), before);
  EXPECT_FALSE(find("a", "other"));
  EXPECT_EQ(counts("other").inQueue, 0U);
  EXPECT_TRUE(std::holds_alternative<Inserted>(jobs().insert(spec("b", "other"), policy_, {Idempotency{"k", "h2"}})))
      << "no idempotency record was left";
}

TEST_P(StorageSuite, CancelKeepsTheAttemptAndUnreadChunks) {
  submit("a");
  const LeaseRef lease = claimOne();
  EXPECT_EQ(append(lease, {Chunk{"1", "", false}, Chunk{"2", "", false}}), ReportResult::accepted);
  EXPECT_EQ(consume({"ep", "a"}, 1)->chunks.size(), 1U);
  clock_.advance(Millis(250));
  ASSERT_TRUE(std::holds_alternative<Cancelled>(jobs().cancel({"ep", "a"})));
  const auto job = find("a");
  EXPECT_EQ(job->attempt, lease.attempt);
  EXPECT_EQ(*job->finishedAt - *job->startedAt, Millis(250));
  EXPECT_EQ(job->workerId, "w0");
  const auto page = consume({"ep", "a"}, 100);
  ASSERT_EQ(page->chunks.size(), 1U);
  EXPECT_EQ(page->chunks[0].output, "2");
  EXPECT_EQ(page->state, JobState::cancelled);
  EXPECT_EQ(counts().failed + counts().completed + counts().retried, 0U);
  EXPECT_EQ(counts().inProgress, 0U);
}

TEST_P(StorageSuite, RetryDiscardsChunksAndKeepsTheLog) {
  submit("a");
  const LeaseRef lease = claimOne();
  EXPECT_EQ(append(lease, {Chunk{"1", "", false}}), ReportResult::accepted);
  EXPECT_EQ(taken("a").size(), 1U);
  EXPECT_EQ(appendLog(lease, {LogLine{{}, LogLevel::error, "first run"}}), ReportResult::accepted);
  EXPECT_EQ(leases().progress(lease, "7"), ReportResult::accepted);
  EXPECT_EQ(leases().finish(lease, Failed{"no", "\"half\""}), ReportResult::accepted);
  ASSERT_TRUE(std::holds_alternative<Requeued>(requeue({"ep", "a"}, policy_)));
  EXPECT_EQ(find("a")->output, "");
  EXPECT_EQ(find("a")->progress, "");
  EXPECT_TRUE(chunks().read({"ep", "a"}, 0, 100)->chunks.empty());
  ASSERT_EQ(chunks().readLog({"ep", "a"})->lines.size(), 1U);
  const LeaseRef again = claimOne();
  EXPECT_EQ(append(again, {Chunk{"2", "", false}}), ReportResult::accepted);
  ASSERT_EQ(taken("a").size(), 1U) << "the cursor starts again";
}

TEST_P(StorageSuite, ATimedOutJobCanBeRetriedAgainAndAgain) {
  bring("a", JobState::timedOut);
  for (std::uint32_t round = 1; round <= 3; ++round) {
    ASSERT_TRUE(std::holds_alternative<Requeued>(requeue({"ep", "a"}, policy_)));
    EXPECT_EQ(find("a")->retries, round);
    EXPECT_EQ(find("a")->error, "");
    (void)claimOne();
    clock_.advance(Millis(5'001));
    (void)sweep();
    EXPECT_EQ(stateOf("a"), JobState::timedOut);
  }
  EXPECT_EQ(counts().failed, 4U);
  EXPECT_EQ(counts().retried, 3U);
}

TEST_P(StorageSuite, AListHasSubmissionsInEveryState) {
  bring("first", JobState::failed);
  clock_.advance(Millis(10));
  bring("second", JobState::completed);
  clock_.advance(Millis(10));
  const LeaseRef third = bring("third", JobState::inProgress);
  EXPECT_EQ(leases().progress(third, "1"), ReportResult::accepted);
  ASSERT_TRUE(std::holds_alternative<Requeued>(requeue({"ep", "first"}, policy_)));
  const JobPage page = jobs().list({"ep", std::nullopt}, {0, 10});
  ASSERT_EQ(page.jobs.size(), 3U);
  EXPECT_EQ(page.jobs[0].id, "third");
  EXPECT_EQ(page.jobs[1].id, "second");
  EXPECT_EQ(page.jobs[2].id, "first") << "a retry is not a new submission";
  for (const Job& job : page.jobs) {
    Job whole = *find(job.id);
    whole.output.clear();
    whole.progress.clear();
    EXPECT_EQ(describe(job), describe(whole));
  }
  for (JobState state : kAllStates) {
    const JobPage only = jobs().list({"ep", state}, {0, 10});
    EXPECT_EQ(only.total, only.jobs.size());
    for (const Job& job : only.jobs) EXPECT_EQ(job.state, state);
  }
  EXPECT_EQ(jobs().list({"ep", std::nullopt}, {3, 10}).total, 3U);
  EXPECT_TRUE(jobs().list({"ep", std::nullopt}, {3, 10}).jobs.empty());
}

TEST_P(StorageSuite, RunningJobsAreListedInPages) {
  for (int i = 0; i < 5; ++i) bring("r" + std::to_string(i), JobState::inProgress);
  bring("ended", JobState::completed);
  submit("queued");
  JobSpec other = spec("other");
  other.endpoint = "elsewhere";
  submit(std::move(other));
  EXPECT_EQ(claim(1, "elsewhere").size(), 1U);
  const auto idsOf = [](const JobPage& page) {
    std::vector<JobId> ids;
    for (const Job& job : page.jobs) ids.push_back(job.id);
    return ids;
  };
  const JobFilter running{"ep", JobState::inProgress};
  EXPECT_EQ(idsOf(jobs().list(running, {0, 10})), (std::vector<JobId>{"r4", "r3", "r2", "r1", "r0"}));
  EXPECT_EQ(idsOf(jobs().list(running, {3, 10})), (std::vector<JobId>{"r1", "r0"}));
  const JobPage first = jobs().list(running, {0, 2});
  EXPECT_EQ(first.total, 5U);
  EXPECT_EQ(idsOf(first), (std::vector<JobId>{"r4", "r3"}));
  PageWindow window{0, 2};
  window.cursor = first.next;
  EXPECT_EQ(idsOf(jobs().list(running, window)), (std::vector<JobId>{"r2", "r1"}));
}

TEST_P(StorageSuite, AnExpiredJobIsNotListedNextToALivingJob) {
  JobSpec brief = spec("brief");
  brief.policy.ttl = Millis(10'000);
  submit(std::move(brief));
  submit("lives");
  clock_.advance(Millis(10'000));
  const JobPage page = jobs().list({"ep", JobState::inQueue}, {0, 10});
  EXPECT_EQ(page.total, 1U);
  ASSERT_EQ(page.jobs.size(), 1U);
  EXPECT_EQ(page.jobs[0].id, "lives");
  EXPECT_EQ(counts().inQueue, 1U);
  EXPECT_EQ(claim(9).size(), 1U);
  EXPECT_EQ(counts().inQueue, 0U);
  sweepAll();
  EXPECT_EQ(counts().inQueue, 0U);
  EXPECT_EQ(counts().inProgress, 1U);
}

TEST_P(StorageSuite, ARemovedEndpointLeavesNoDataInTheStorage) {
  const auto findByIdempotencyKey = [this](const JobId& id) {
    return jobs().insert(spec(id), policy_, {Idempotency{"k", "h"}});
  };
  ASSERT_TRUE(std::holds_alternative<Inserted>(findByIdempotencyKey("a")));
  const LeaseRef lease = claimOne();
  EXPECT_EQ(append(lease, {Chunk{"1", "", false}}), ReportResult::accepted);
  EXPECT_EQ(appendLog(lease, {LogLine{}}), ReportResult::accepted);
  bring("done", JobState::completed);
  EXPECT_EQ(jobs().remove("ep", 1), 1U);
  EXPECT_EQ(counts().completed, 1U) << "counters stay while a job is left";
  EXPECT_EQ(jobs().remove("ep", 9), 2U) << "the other job, and the idempotency record";
  EXPECT_EQ(jobs().remove("ep", 9), 0U);
  EXPECT_EQ(counts().completed, 0U);
  EXPECT_FALSE(consume({"ep", "a"}, 100));
  EXPECT_FALSE(chunks().readLog({"ep", "a"}));
  EXPECT_EQ(complete(lease), ReportResult::staleAttempt);
  EXPECT_EQ(leaseState(lease), LeaseState::deleted);
  EXPECT_TRUE(std::holds_alternative<Inserted>(findByIdempotencyKey("new"))) << "the idempotency records are gone";
  EXPECT_EQ(jobs().remove("never seen", 9), 0U);
}

}  // namespace jobq::testkit
