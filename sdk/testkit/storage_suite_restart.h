// Conformance: a durable storage keeps its content through a close, and through the death of its process.
#pragma once

#include <optional>
#include <string>
#include <utility>
#include <variant>
#include <vector>

#include "jobq/holder.h"
#include "jobq/log.h"
#include "testkit/returned_jobs.h"
#include "testkit/storage_suite.h"
#include "testkit/storage_suite_record_changes.h"
#include "testkit/storage_suite_records.h"

namespace jobq::testkit {

/// Tests for durable storages only.
class RestartSuite : public StorageSuite {
 protected:
  void SetUp() override {
    if (!GetParam().durable) GTEST_SKIP() << GetParam().name << " does not promise to keep anything";
    StorageSuite::SetUp();
  }
};

TEST_P(RestartSuite, AcknowledgedWritesSurviveAReopen) {
  bring("done", JobState::completed);
  bring("failed", JobState::failed);
  submit("first");
  submit("second");
  (void)storage_->jobs().insert(spec("once"), policy_, {Idempotency{"k", "h"}});
  ASSERT_TRUE(std::holds_alternative<Stored>(storage_->records().create({"key", "id", "name", "{}", 0, {}})));
  reopen();
  EXPECT_EQ(find("done")->output, "{\"ok\":true}");
  EXPECT_EQ(find("failed")->error, "no");
  EXPECT_EQ(counts().completed, 1U);
  EXPECT_EQ(counts().failed, 1U);
  EXPECT_EQ(counts().inQueue, 3U);
  EXPECT_TRUE(storage_->records().find("key", "id"));
  EXPECT_TRUE(std::holds_alternative<Duplicate>(storage_->jobs().insert(spec("x"), policy_, {Idempotency{"k", "h"}})));
  EXPECT_EQ(claimOne().job, "first");
  submit("third");
  EXPECT_EQ(claimOne().job, "second");
  EXPECT_EQ(claimOne().job, "once");
  EXPECT_EQ(claimOne().job, "third") << "arrival numbers continue after the last stored job";
}

TEST_P(RestartSuite, JobsOfAClosedStorageAreCountedAndGoBackToTheQueue) {
  JobSpec job = spec("a");
  job.maxAttempts = 2;
  submit(std::move(job));
  submit("behind");
  LeaseRef lease = claimOne();
  reopen();
  newLife();
  SweepResult swept = sweep();
  EXPECT_EQ(swept.requeuedAt, (std::vector<EndpointId>{"ep"}));
  EXPECT_EQ(find("a")->losses, 1U);
  EXPECT_EQ(stateOf("a"), JobState::inQueue);
  EXPECT_EQ(complete(lease), ReportResult::staleAttempt);
  lease = claimOne();
  EXPECT_EQ(lease.job, "a") << "the job has the old position in the queue";
  reopen();
  newLife();
  swept = sweep();
  EXPECT_EQ(swept.finished, (std::vector<JobKey>{{"ep", "a"}}));
  EXPECT_EQ(stateOf("a"), JobState::failed);
  EXPECT_EQ(counts().inProgress, 0U);
  EXPECT_EQ(counts().inQueue, 1U);
}

TEST_P(RestartSuite, JobsOfADeadProcessAreCountedAndGoBackToTheQueue) {
  inAProcessThatDies([this] {
    JobSpec last = spec("last");
    last.maxAttempts = 1;
    last.webhook = "http://example.com/";
    submit(std::move(last));
    submit("a");
    submit("behind");
    const auto claimed = claim(2);
    ASSERT_EQ(claimed.size(), 2U);
    EXPECT_EQ(append(claimed[1].lease, {Chunk{"1", "", false}}), ReportResult::accepted);
    EXPECT_EQ(leases().progress(claimed[1].lease, "1"), ReportResult::accepted);
  });
  const LeaseRef before{"a", find("a")->attempt};
  const SweepResult swept = sweep();
  EXPECT_EQ(swept.finished, (std::vector<JobKey>{{"ep", "last"}}));
  EXPECT_EQ(swept.requeuedAt, (std::vector<EndpointId>{"ep"}));
  EXPECT_EQ(stateOf("last"), JobState::failed);
  EXPECT_NE(find("last")->error.find("1"), std::string::npos) << "the error names the number of losses";
  EXPECT_EQ(claimDue(Millis(1'000)).size(), 1U);
  const auto job = find("a");
  EXPECT_EQ(job->state, JobState::inQueue);
  EXPECT_EQ(job->losses, 1U);
  EXPECT_EQ(job->progress, "");
  EXPECT_TRUE(taken("a").empty());
  EXPECT_EQ(complete(before), ReportResult::staleAttempt);
  EXPECT_EQ(counts().inProgress, 0U);
  EXPECT_EQ(counts().inQueue, 2U);
  EXPECT_EQ(counts().failed, 1U);
  EXPECT_EQ(counts().retried, 2U) << "each loss counts, also the loss of the failed job";
  EXPECT_EQ(claimOne().job, "a") << "the job has the old position in the queue";
}

TEST_P(RestartSuite, AcknowledgedWritesSurviveTheDeathOfTheProcess) {
  inAProcessThatDies([this] {
    bring("done", JobState::completed);
    ASSERT_TRUE(std::holds_alternative<Inserted>(jobs().insert(spec("waits"), policy_, {Idempotency{"k", "h"}})));
    ASSERT_TRUE(std::holds_alternative<Stored>(records().create({"key", "id", "", "{}", 0, {}})));
  });
  EXPECT_EQ(find("done")->output, "{\"ok\":true}");
  EXPECT_EQ(stateOf("waits"), JobState::inQueue);
  EXPECT_TRUE(std::holds_alternative<Duplicate>(jobs().insert(spec("b"), policy_, {Idempotency{"k", "h"}})));
  EXPECT_TRUE(records().find("key", "id"));
  EXPECT_EQ(counts().completed, 1U);
  EXPECT_EQ(counts().inQueue, 1U);
}

TEST_P(RestartSuite, ALifeGoesOnAfterAReopen) {
  submit("a");
  submit("b");
  const LeaseRef a = claimOne();
  const LeaseRef b = claimOne();
  reopen();
  EXPECT_TRUE(sweep().stopped.empty());
  EXPECT_EQ(leaseState(a), LeaseState::held);
  EXPECT_EQ(complete(a), ReportResult::accepted);
  EXPECT_EQ(nodes().beat(holder_, {}), BeatResult::extended);
  submit("c");
  const LeaseRef c = claimOne();
  EXPECT_EQ(c.job, "c");
  const Holder before = holder_;
  newLife();
  EXPECT_GT(holder_.epoch, before.epoch);
  EXPECT_EQ(sweep().stopped, (std::vector{b, c})) << "the holders were stored too";
}

TEST_P(RestartSuite, AJobIsTheSameAfterAReopen) {
  for (JobState state : kAllStates) {
    if (state == JobState::inProgress) continue;
    const JobId id = "j" + std::to_string(static_cast<int>(state));
    bring(id, state);
    clock_.advance(Millis(1'000));
  }
  JobSpec low = spec("low");
  low.policy.lowPriority = true;
  submit(std::move(low));
  (void)jobs().setTtl({"ep", "low"}, Millis(77'000));
  std::vector<std::string> before;
  for (const Job& job : jobs().list({"ep", std::nullopt}, {0, 50}).jobs) before.push_back(describe(*find(job.id)));
  EXPECT_EQ(before.size(), 6U);
  const EndpointCounts counted = counts();
  reopen();
  std::vector<std::string> after;
  for (const Job& job : jobs().list({"ep", std::nullopt}, {0, 50}).jobs) after.push_back(describe(*find(job.id)));
  EXPECT_EQ(before, after);
  EXPECT_EQ(counts().inQueue, counted.inQueue);
  EXPECT_EQ(counts().inQueueLow, counted.inQueueLow);
  EXPECT_EQ(counts().completed, counted.completed);
  EXPECT_EQ(counts().failed, counted.failed);
  EXPECT_EQ(counts().retried, counted.retried);
  const Instant expiry = find("low")->expiresAt;
  (void)jobs().cancel({"ep", "low"});
  EXPECT_EQ(find("low")->expiresAt, expiry) << "a cancel does not change the ttl";
}

TEST_P(RestartSuite, AStreamGoesOnAfterARestart) {
  submit("a");
  const LeaseRef lease = claimOne();
  EXPECT_EQ(append(lease, {Chunk{"1", "{}", true}, Chunk{"2", "", false}}), ReportResult::accepted);
  EXPECT_EQ(consume({"ep", "a"}, 1)->chunks.size(), 1U);
  EXPECT_EQ(appendLog(lease, {LogLine{{}, LogLevel::warning, "line"}}), ReportResult::accepted);
  EXPECT_EQ(leases().progress(lease, "{\"p\":1.0}"), ReportResult::accepted);
  reopen();
  EXPECT_EQ(find("a")->progress, "{\"p\":1.0}");
  EXPECT_EQ(append(lease, {Chunk{"3", "", false}}), ReportResult::accepted);
  const auto page = consume({"ep", "a"}, 100);
  ASSERT_EQ(page->chunks.size(), 2U);
  EXPECT_EQ(page->chunks[0].output, "2");
  EXPECT_EQ(page->chunks[1].output, "3");
  EXPECT_EQ(page->next, 3U);
  const auto all = chunks().read({"ep", "a"}, 0, 100);
  ASSERT_EQ(all->chunks.size(), 3U);
  EXPECT_TRUE(all->chunks[0].partial);
  EXPECT_EQ(all->chunks[0].metrics, "{}");
  ASSERT_EQ(chunks().readLog({"ep", "a"})->lines.size(), 1U);
  EXPECT_EQ(chunks().readLog({"ep", "a"})->lines.at(0).level, LogLevel::warning);
}

TEST_P(RestartSuite, OwedDeliveriesAreStillOwed) {
  for (const JobId id : {"owed", "rescheduled", "settled"}) {
    JobSpec job = spec(id);
    job.webhook = "http://example.com/";
    submit(std::move(job));
    EXPECT_EQ(complete(claimOne(), "\"of " + id + "\""), ReportResult::accepted);
    clock_.advance(Millis(1));
  }
  EXPECT_TRUE(recordNext(outbox(), last("owed.1"), {{}, 503, Millis(7), "busy", "later"}));
  EXPECT_TRUE(outbox().reschedule(last("rescheduled.1"), Millis(60'000)));
  EXPECT_TRUE(outbox().finishDelivery(last("settled.1"), DeliveryState::delivered));
  reopen();
  auto due = claimDue(Millis(1'000));
  ASSERT_EQ(due.size(), 1U);
  EXPECT_EQ(due[0].id, "owed.1");
  EXPECT_EQ(due[0].job.output, "\"of owed\"");
  EXPECT_EQ(due[0].input, "{\"n\":1.0}");
  ASSERT_EQ(due[0].attempts.size(), 1U);
  EXPECT_EQ(due[0].attempts[0].reason, "busy");
  EXPECT_TRUE(outbox().finishDelivery(last("owed.1"), DeliveryState::abandoned));
  clock_.advance(Millis(60'001));
  due = claimDue(Millis(1'000));
  ASSERT_EQ(due.size(), 1U);
  EXPECT_EQ(due[0].id, "rescheduled.1");
  EXPECT_EQ(outbox().list("ep", "", 9).size(), 3U);
}

TEST_P(RestartSuite, GroupsAndQueueAreKept) {
  const TakeTurns turns;
  const auto put = [&](const JobId& id, const std::string& group) {
    JobSpec job = spec(id);
    job.apiKeyId = group;
    ASSERT_TRUE(std::holds_alternative<Inserted>(jobs().insert(std::move(job), turns)));
  };
  for (int i = 0; i < 3; ++i) put("noisy" + std::to_string(i), "noisy");
  reopen();
  put("quiet0", "quiet");
  put("noisy3", "noisy");
  put("quiet1", "quiet");
  std::vector<JobId> order;
  for (const ClaimedJob& job : claim(9)) order.push_back(job.lease.job);
  EXPECT_EQ(order, (std::vector<JobId>{"noisy0", "quiet0", "noisy1", "quiet1", "noisy2", "noisy3"}));
}

TEST_P(RestartSuite, VersionsOfRecordsAreNotUsedAgain) {
  (void)records().create({"key", "k1", "one", "{}", 0, {}});
  const auto version = std::get<Stored>(records().create({"key", "k2", "two", "{}", 0, {}})).version;
  EXPECT_TRUE(records().remove("key", "k2"));
  const auto last = records().changedSince("key", 0).version;
  EXPECT_GT(last, version);
  reopen();
  const Changes changes = records().changedSince("key", version);
  EXPECT_TRUE(changes.changed.empty());
  EXPECT_EQ(changes.removed, (std::vector<std::string>{"k2"}));
  EXPECT_EQ(changes.version, last);
  EXPECT_GT(std::get<Stored>(records().create({"key", "k3", "", "{}", 0, {}})).version, last);
  EXPECT_EQ(records().find("key", "k1")->name, "one");
}

TEST_P(RestartSuite, RecordsAreTheSameAfterAReopen) {
  const auto first = versionOf(records().create(record("t1", "alpha", std::string("\0\xC3\xA9", 3))));
  clock_.advance(Millis(1'000));
  const auto second = versionOf(records().update(record("t1", "beta", std::string(1 << 20, 'x') + '\0'), first));
  (void)records().create(record("t2", ""));
  (void)records().create({"key", "t1", "beta", "{}", 0, {}});
  const std::string before = describe(records().list("template")) + describe(records().list("key"));
  clock_.advance(Millis(1'000));
  reopen();
  // Not EXPECT_EQ, which would print a megabyte.
  EXPECT_TRUE(describe(records().list("template")) + describe(records().list("key")) == before);
  EXPECT_EQ(holderOf(records().create(record("t3", "beta"))), "t1") << "names are still taken";
  EXPECT_TRUE(std::holds_alternative<Conflict>(records().update(record("t1", "x"), first)));
  EXPECT_TRUE(stored(records().update(record("t1", "alpha"), second)))
      << "the version read before the reopen is still current";
  EXPECT_TRUE(stored(records().create(record("t3", "beta"))));
}

TEST_P(RestartSuite, AFollowerGoesOnFromTheLastVersionAfterAReopen) {
  RecordFollower follower("template");
  for (const char* id : {"t1", "t2", "t3"}) (void)records().create(record(id, id));
  follower.follow(records());
  (void)records().update(record("t1", "x"), records().find("template", "t1")->version);
  EXPECT_TRUE(records().remove("template", "t2"));
  reopen();
  EXPECT_TRUE(records().remove("template", "t3"));
  (void)records().create(record("t2", "back"));
  follower.follow(records());
  EXPECT_EQ(describe(follower.list()), describe(records().list("template")));
  EXPECT_EQ(records().changedSince("template", 0).removed, (std::vector<std::string>{"t3"}));
  clock_.advance(Millis(86'400'000));
  reopen();
  sweepAll();
  EXPECT_TRUE(records().changedSince("template", 0).removed.empty())
      << "a removal is remembered for a day from the removal on, not from the reopen";
}

TEST_P(RestartSuite, ChangesOfRecordsSurviveTheDeathOfTheProcess) {
  (void)records().create(record("t1", "alpha"));
  (void)records().create(record("t2", "beta"));
  const auto version = records().changedSince("template", 0).version;
  inAProcessThatDies([this] {
    ASSERT_TRUE(stored(records().update(record("t1", "gamma"), records().find("template", "t1")->version)));
    ASSERT_TRUE(records().remove("template", "t2"));
    ASSERT_TRUE(stored(records().create(record("t3", "beta"))));
  });
  EXPECT_EQ(idsOf(records().list("template")), (std::vector<std::string>{"t1", "t3"}));
  const Changes changes = records().changedSince("template", version);
  EXPECT_EQ(idsOf(changes.changed), (std::vector<std::string>{"t1", "t3"}));
  EXPECT_EQ(changes.removed, (std::vector<std::string>{"t2"}));
  EXPECT_EQ(holderOf(records().create(record("t4", "beta"))), "t3");
  EXPECT_TRUE(stored(records().create(record("t4", "alpha"))));
}

TEST_P(RestartSuite, AttemptNumbersGrowAfterAReopen) {
  submit("a");
  const LeaseRef old = claimOne();
  (void)testkit::release(leases(), std::vector{old});
  reopen();
  const LeaseRef now = claimOne();
  EXPECT_GT(now.attempt, old.attempt);
  reopen();
  newLife();
  sweepAll();
  EXPECT_GT(claimOne().attempt, now.attempt);
}

}  // namespace jobq::testkit
