// Conformance: JobStore (job_store.h).
#pragma once

#include <set>

#include "testkit/storage_suite.h"

namespace jobq::testkit {

TEST_P(StorageSuite, ANewJobIsInLineWithItsTimes) {
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
  EXPECT_THROW((void)storage_->jobs().insert(spec("a"), policy_, std::nullopt), StorageError);
  EXPECT_EQ(counts().inQueue, 1U);
}

TEST_P(StorageSuite, TheLineIsOrderedByClassRankAndArrival) {
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

TEST_P(StorageSuite, AGroupKeepsItsLastRankAndSeesTheLowestWaiting) {
  const TakeTurns turns;
  const auto put = [&](const JobId& id, const std::string& key) {
    JobSpec job = spec(id);
    job.apiKeyId = key;
    (void)storage_->jobs().insert(std::move(job), turns, std::nullopt);
  };
  for (int i = 0; i < 3; ++i) put("noisy" + std::to_string(i), "noisy");
  put("quiet0", "quiet");
  std::vector<JobId> order;
  for (const ClaimedJob& job : claim(9)) order.push_back(job.lease.job);
  EXPECT_EQ(order, (std::vector<JobId>{"noisy0", "quiet0", "noisy1", "noisy2"}));
  put("noisy3", "noisy");  // nothing waits: its own last rank alone counts
  put("other", "other");   // joins at the lowest that waits, after noisy3 by arrival
  order.clear();
  for (const ClaimedJob& job : claim(9)) order.push_back(job.lease.job);
  EXPECT_EQ(order, (std::vector<JobId>{"noisy3", "other"}));
}

TEST_P(StorageSuite, AnIdempotencyKeyGivesTheFirstJobForADay) {
  const auto insert = [this](const JobId& id, const std::string& hash, const std::string& apiKey = "key",
                             const EndpointId& endpoint = "ep") {
    JobSpec job = spec(id, endpoint);
    job.apiKeyId = apiKey;
    job.policy.ttl = Millis(10'000);
    return storage_->jobs().insert(std::move(job), policy_, Idempotency{"once", hash});
  };
  EXPECT_TRUE(std::holds_alternative<Inserted>(insert("a", "h1")));
  const InsertResult again = insert("b", "h1");
  ASSERT_TRUE(std::holds_alternative<Existing>(again));
  EXPECT_EQ(std::get<Existing>(again).id, "a");
  EXPECT_FALSE(find("b"));
  EXPECT_TRUE(std::holds_alternative<OtherBody>(insert("c", "h2")));
  EXPECT_TRUE(std::holds_alternative<Inserted>(insert("d", "h1", "other key")));
  EXPECT_TRUE(std::holds_alternative<Inserted>(insert("e", "h1", "key", "other")));
  clock_.advance(kIdempotencyLife - Millis(1));
  (void)sweep();
  EXPECT_FALSE(find("a")) << "the record outlives the job";
  EXPECT_TRUE(std::holds_alternative<Existing>(insert("f", "h1")));
  clock_.advance(Millis(1));
  EXPECT_TRUE(std::holds_alternative<Inserted>(insert("g", "h2")));
}

TEST_P(StorageSuite, FindFinishedAnswersTheTerminalOnesInOneQuestion) {
  bring("done", JobState::completed);
  bring("failed", JobState::failed);
  bring("waits", JobState::inQueue);
  const std::vector<JobKey> keys{{"ep", "done"}, {"ep", "waits"}, {"other", "failed"}, {"ep", "failed"}, {"ep", "no"}};
  std::set<JobId> ids;
  for (const Job& job : storage_->jobs().findFinished(keys)) ids.insert(job.id);
  EXPECT_EQ(ids, (std::set<JobId>{"done", "failed"}));
}

TEST_P(StorageSuite, CancelTellsWhetherItRan) {
  submit("waits");
  auto result = storage_->jobs().cancel({"ep", "waits"});
  ASSERT_TRUE(std::holds_alternative<Cancelled>(result));
  EXPECT_FALSE(std::get<Cancelled>(result).wasRunning);
  submit("runs");
  const LeaseRef lease = claimOne();
  result = storage_->jobs().cancel({"ep", "runs"});
  ASSERT_TRUE(std::holds_alternative<Cancelled>(result));
  EXPECT_TRUE(std::get<Cancelled>(result).wasRunning);
  EXPECT_EQ(std::get<Cancelled>(result).lease, lease);
  EXPECT_EQ(find("runs")->finishedAt, clock_.now());
  EXPECT_TRUE(claim(9).empty()) << "a cancelled job is not in line";
}

TEST_P(StorageSuite, RetryResetsAJobAndPutsItAtTheEndOfTheLine) {
  const LeaseRef first = bring("a", JobState::failed);
  const Instant submitted = find("a")->submittedAt;
  submit("b");
  clock_.advance(Millis(7'000));
  ASSERT_TRUE(std::holds_alternative<Requeued>(storage_->jobs().requeue({"ep", "a"}, policy_)));
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

TEST_P(StorageSuite, PurgeRemovesWhatWaitsAndNothingElse) {
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

TEST_P(StorageSuite, AJobExpiresAtTheEarlierOfTtlAndRetention) {
  JobSpec job = spec("a");
  job.retention = Millis(60'000);
  submit(std::move(job));
  clock_.advance(Millis(1'000));
  EXPECT_EQ(complete(claimOne()), Fenced::accepted);
  EXPECT_EQ(find("a")->expiresAt, clock_.now() + Millis(60'000));
  clock_.advance(Millis(59'999));
  EXPECT_TRUE(find("a"));
  clock_.advance(Millis(1));
  EXPECT_FALSE(find("a"));
  JobSpec brief = spec("b");
  brief.policy.ttl = Millis(10'000);
  submit(std::move(brief));
  const Instant submitted = clock_.now();
  EXPECT_EQ(complete(claimOne()), Fenced::accepted);
  EXPECT_EQ(find("b")->expiresAt, submitted + Millis(10'000));
}

TEST_P(StorageSuite, SetTtlHoldsThroughCompletionWithinItsBounds) {
  submit("a");
  const Instant submitted = clock_.now();
  clock_.advance(Millis(5'000));
  EXPECT_EQ(storage_->jobs().setTtl({"ep", "a"}, Millis(0)), clock_.now() + kTtlFloor);
  EXPECT_EQ(storage_->jobs().setTtl({"ep", "a"}, Millis(999'999'999'999)), submitted + kTtlCeiling);
  EXPECT_EQ(storage_->jobs().setTtl({"ep", "a"}, Millis(20'000)), clock_.now() + Millis(20'000));
  const Instant pinned = clock_.now() + Millis(20'000);
  EXPECT_EQ(fail(claimOne()), Fenced::accepted);
  EXPECT_EQ(find("a")->expiresAt, pinned);
  EXPECT_TRUE(std::holds_alternative<Requeued>(storage_->jobs().requeue({"ep", "a"}, policy_)));
  EXPECT_EQ(find("a")->expiresAt, pinned);
  EXPECT_FALSE(storage_->jobs().setTtl({"ep", "none"}, Millis(1)));
}

TEST_P(StorageSuite, AListIsNewestFirstFilteredAndPaged) {
  for (int i = 0; i < 5; ++i) submit("j" + std::to_string(i));
  EXPECT_EQ(complete(claimOne()), Fenced::accepted);
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
  EXPECT_EQ(complete(jobs[0].lease), Fenced::accepted);
  EXPECT_EQ(fail(jobs[1].lease), Fenced::accepted);
  (void)storage_->leases().release(std::vector{jobs[2].lease});
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
  EXPECT_EQ(counts().completed, 1U) << "not lowered by expiry";
  EXPECT_EQ(counts("none").inQueue, 0U);
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

TEST_P(StorageSuite, BodiesComeBackByteForByte) {
  const std::string odd = "{ \"b\" : 1.0,\"a\":-0, \"n\":1234567890123456789012345, \"u\":\"\\u2028\xe2\x80\xa8\" }";
  std::vector<std::string> bodies{odd, "{\"s\":\"" + std::string(1 << 20, 'x') + "\"}",
                                  "{\"s\":\"" + std::string(20 << 20, 'y') + "\"}"};
  for (std::size_t i = 0; i < bodies.size(); ++i) {
    JobSpec job = spec("j" + std::to_string(i));
    job.input = bodies[i];
    job.s3Config = std::string("se\0aled", 7);
    job.webhook = "http://example.com/";
    submit(std::move(job));
    auto claimed = claim(1);
    ASSERT_EQ(claimed.size(), 1U);
    EXPECT_TRUE(claimed[0].input == bodies[i]);
    EXPECT_EQ(claimed[0].s3Config, std::string("se\0aled", 7));
    EXPECT_EQ(claimed[0].webhook, "http://example.com/");
    EXPECT_EQ(complete(claimed[0].lease, bodies[i]), Fenced::accepted);
    EXPECT_TRUE(find("j" + std::to_string(i))->output == bodies[i]);
  }
}

}  // namespace jobq::testkit
