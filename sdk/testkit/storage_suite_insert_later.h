// Conformance: the insert of a job with a receiver of the result (JobStore::insertLater in
// sdk/include/jobq/job_store.h). A storage without the operation has to report a StorageError to the receiver of each
// call, and to change nothing.
#pragma once

#include <cstddef>
#include <optional>
#include <string>
#include <utility>
#include <variant>
#include <vector>

#include "jobq/error.h"
#include "testkit/later_inserts.h"
#include "testkit/storage_suite.h"

namespace jobq::testkit {

class InsertLaterSuite : public StorageSuite {
 protected:
  /// Begins an insert. The receiver has the next number of `inserts_`.
  void beginInsert(JobSpec job, const std::optional<Idempotency>& idempotency = std::nullopt) {
    storage_->jobs().insertLater(std::move(job), policy_, idempotency, inserts_.addReceiver());
  }
  /// Inserts a job and waits for the end of the insert. Returns the text of the receiver (LaterInserts).
  std::string insertLater(JobSpec job, const std::optional<Idempotency>& idempotency = std::nullopt) {
    beginInsert(std::move(job), idempotency);
    return inserts_.awaitAll().back();
  }

  /// Claims all jobs of the endpoint. Returns the ids in the order of the claim.
  std::vector<JobId> claimedIds() {
    std::vector<JobId> ids;
    for (const ClaimedJob& job : claim(1'000)) ids.push_back(job.lease.job);
    return ids;
  }

  /// Compares every readable value of the job `a` of the endpoint `one` and of the job `b` of the endpoint `two`.
  void expectEqualTwins() {
    const auto one = find("a", "one");
    auto two = find("b", "two");
    ASSERT_TRUE(one && two);
    two->id = "a";
    two->endpoint = "one";
    EXPECT_EQ(describe(*one), describe(*two));
    const EndpointCounts ones = counts("one");
    const EndpointCounts twos = counts("two");
    EXPECT_EQ(ones.inQueue, twos.inQueue);
    EXPECT_EQ(ones.inQueueLow, twos.inQueueLow);
    EXPECT_EQ(ones.inProgress, twos.inProgress);
    EXPECT_EQ(ones.completed, twos.completed);
    EXPECT_EQ(jobs().list({"one", one->state}, {0, 10, 0}).total, jobs().list({"two", one->state}, {0, 10, 0}).total);
  }

  const TakeTurns turns_{};  // a policy has to outlive the receivers
  LaterInserts inserts_;
};

TEST_P(InsertLaterSuite, AStorageWithoutTheOperationThrows) {
  if (storage_->capabilities().has(Capability::insertLater)) return;
  EXPECT_THROW(beginInsert(spec("a"), Idempotency{"k", "h"}), StorageError);
  EXPECT_EQ(inserts_.calls(), std::vector<std::string>{""}) << "the receiver is not called";
  EXPECT_EQ(inserts_.destroyed(), 1U);
  EXPECT_FALSE(find("a"));
  EXPECT_EQ(counts().inQueue, 0U);
  EXPECT_FALSE(jobs().findByIdempotencyKey("ep", "key", {"k", "h"}));
}

TEST_P(InsertLaterSuite, AJobIsReadableFromTheCallOfTheReceiverOn) {
  if (!storage_->capabilities().has(Capability::insertLater)) return;
  for (std::size_t i = 0; i < 20; ++i) {
    const JobId id = "j" + std::to_string(i);
    beginInsert(spec(id), Idempotency{id, "h"});
    ASSERT_EQ(inserts_.awaitCall(i), "inserted");
    const auto job = find(id);
    ASSERT_TRUE(job) << id;
    EXPECT_EQ(job->state, JobState::inQueue);
    EXPECT_EQ(job->attempt, 0U);
    EXPECT_EQ(counts().inQueue, i + 1);
    EXPECT_EQ(jobs().list({"ep", {}}, {0, 1, 0}).jobs.at(0).id, id);
    EXPECT_TRUE(jobs().findByIdempotencyKey("ep", "key", {id, "h"}));
  }
}

TEST_P(InsertLaterSuite, AJobIsAsAfterAnInsert) {
  if (!storage_->capabilities().has(Capability::insertLater)) return;
  JobSpec job = spec("a", "one");
  job.policy.executionTimeout = Millis(5'000);
  job.policy.ttl = Millis(20'000);
  job.policy.lowPriority = true;
  job.policy.priority = 3;
  job.retention = Millis(7'000);
  job.maxAttempts = 2;
  job.webhook = "http://h/done";
  job.s3Config = "sealed";
  ASSERT_EQ(insertLater(job), "inserted");
  job.id = "b";
  job.endpoint = "two";
  submit(job);
  expectEqualTwins();
  const auto claimed =
      leases().claim(std::vector{ClaimWant{"one", {"w0"}}, ClaimWant{"two", {"w0"}}}, holder_, nextCall()).jobs;
  ASSERT_EQ(claimed.size(), 2U);
  expectEqualTwins();
  for (const ClaimedJob& each : claimed) {
    EXPECT_EQ(each.input, job.input);
    EXPECT_EQ(each.webhook, job.webhook);
    EXPECT_EQ(each.s3Config, job.s3Config);
    EXPECT_EQ(each.policy.priority, 3);
    EXPECT_TRUE(each.policy.lowPriority);
    EXPECT_EQ(each.runsFor, Millis(5'000));
    EXPECT_EQ(each.submittedAt, clock_.now());
  }
  for (const ClaimedJob& each : claimed) EXPECT_EQ(complete(each.lease, "[1.0]"), ReportResult::accepted);
  expectEqualTwins();
  EXPECT_EQ(claimDue(Millis(1'000)).size(), 2U) << "both webhooks are owed";
  clock_.advance(Millis(6'999));
  expectEqualTwins();
  clock_.advance(Millis(1));
  EXPECT_FALSE(find("a", "one")) << "the retention has passed";
  EXPECT_FALSE(find("b", "two"));
}

TEST_P(InsertLaterSuite, AnIdempotencyKeyGivesTheFirstJobForADay) {
  if (!storage_->capabilities().has(Capability::insertLater)) return;
  EXPECT_EQ(insertLater(spec("a"), Idempotency{"once", "h1"}), "inserted");
  EXPECT_EQ(insertLater(spec("b"), Idempotency{"once", "h1"}), "duplicate of a");
  EXPECT_EQ(insertLater(spec("c"), Idempotency{"once", "h2"}), "key conflict");
  EXPECT_FALSE(find("b"));
  EXPECT_FALSE(find("c"));
  EXPECT_EQ(insertLater(spec("a"), Idempotency{"once", "h1"}), "inserted") << "the call is repeated";
  EXPECT_EQ(counts().inQueue, 1U);
  const InsertResult again = jobs().insert(spec("d"), policy_, {Idempotency{"once", "h1"}});
  ASSERT_TRUE(std::holds_alternative<Duplicate>(again)) << "both operations know the key";
  EXPECT_EQ(std::get<Duplicate>(again).id, "a");
  ASSERT_TRUE(std::holds_alternative<Inserted>(jobs().insert(spec("e"), policy_, {Idempotency{"twice", "h1"}})));
  EXPECT_EQ(insertLater(spec("f"), Idempotency{"twice", "h1"}), "duplicate of e");
  clock_.advance(kIdempotencyLife);
  EXPECT_EQ(insertLater(spec("g"), Idempotency{"once", "h2"}), "inserted");
}

TEST_P(InsertLaterSuite, ManyInsertsAtOnceWithTheSameKeyMakeOneJob) {
  if (!storage_->capabilities().has(Capability::insertLater)) return;
  for (int i = 0; i < 20; ++i) beginInsert(spec("j" + std::to_string(i)), Idempotency{"once", i < 10 ? "h1" : "h2"});
  const auto results = inserts_.awaitAll();
  for (std::size_t i = 0; i < results.size(); ++i) {
    EXPECT_EQ(results[i], i == 0 ? "inserted" : i < 10 ? "duplicate of j0" : "key conflict") << i;
  }
  EXPECT_EQ(claimedIds(), std::vector<JobId>{"j0"});
}

TEST_P(InsertLaterSuite, ARepeatedInsertHasNoEffect) {
  if (!storage_->capabilities().has(Capability::insertLater)) return;
  EXPECT_EQ(insertLater(spec("a")), "inserted");
  submit("b");
  const std::string first = describe(*find("a"));
  clock_.advance(Millis(100));
  EXPECT_EQ(insertLater(spec("a")), "inserted");
  EXPECT_EQ(insertLater(spec("b")), "inserted") << "a job of insert()";
  submit("a");
  EXPECT_EQ(describe(*find("a")), first);
  EXPECT_EQ(counts().inQueue, 2U);
  EXPECT_EQ(claimedIds(), (std::vector<JobId>{"a", "b"}));
  const std::string running = describe(*find("a"));
  EXPECT_EQ(insertLater(spec("a")), "inserted");
  EXPECT_EQ(describe(*find("a")), running);
}

TEST_P(InsertLaterSuite, ATakenIdIsRefusedWithoutEffect) {
  if (!storage_->capabilities().has(Capability::insertLater)) return;
  submit("a");
  JobSpec other = spec("a");
  other.input = "{}";
  EXPECT_EQ(insertLater(other, Idempotency{"k", "h1"}), "StorageError");
  EXPECT_FALSE(jobs().findByIdempotencyKey("ep", "key", {"k", "h1"}));
  other.input = spec("a").input;
  other.endpoint = "elsewhere";
  EXPECT_EQ(insertLater(other), "StorageError") << "the id belongs to a different endpoint";
  EXPECT_EQ(counts("elsewhere").inQueue, 0U);
  EXPECT_EQ(counts().inQueue, 1U);
  EXPECT_EQ(insertLater(spec("b"), Idempotency{"k", "h2"}), "inserted") << "the key is free";
  EXPECT_EQ(claim(1).at(0).input, spec("a").input);
}

TEST_P(InsertLaterSuite, EachOfManyInsertsIsReportedOnceAndTheQueueKeepsTheOrder) {
  if (!storage_->capabilities().has(Capability::insertLater)) return;
  constexpr std::size_t kJobs = 200;
  std::vector<JobId> ids;
  for (std::size_t i = 0; i < kJobs; ++i) {
    ids.push_back("j" + std::to_string(i));
    beginInsert(spec(ids.back()));
  }
  EXPECT_EQ(inserts_.awaitAll(), std::vector<std::string>(kJobs, "inserted"));
  EXPECT_EQ(counts().inQueue, kJobs);
  EXPECT_EQ(claimedIds(), ids);
}

TEST_P(InsertLaterSuite, ARefusedInsertAmongManyHarmsNoOtherInsert) {
  if (!storage_->capabilities().has(Capability::insertLater)) return;
  submit("taken");
  std::vector<std::string> expected;
  std::vector<JobId> ids{"taken"};
  for (int i = 0; i < 30; ++i) {
    const bool isRefused = i % 10 == 5;
    JobSpec job = spec(isRefused ? "taken" : "j" + std::to_string(i));
    if (isRefused) job.input = "{}";
    if (!isRefused) ids.push_back(job.id);
    expected.emplace_back(isRefused ? "StorageError" : "inserted");
    beginInsert(std::move(job));
  }
  EXPECT_EQ(inserts_.awaitAll(), expected);
  EXPECT_EQ(claimedIds(), ids);
}

TEST_P(InsertLaterSuite, GroupsTakeTurns) {
  if (!storage_->capabilities().has(Capability::insertLater)) return;
  for (const JobId id : {"x1", "x2", "x3", "y1"}) {
    JobSpec job = spec(id);
    job.apiKeyId = id.substr(0, 1);
    storage_->jobs().insertLater(std::move(job), turns_, std::nullopt, inserts_.addReceiver());
  }
  EXPECT_EQ(inserts_.awaitAll(), std::vector<std::string>(4, "inserted"));
  EXPECT_EQ(claimedIds(), (std::vector<JobId>{"x1", "y1", "x2", "x3"}));
}

TEST_P(InsertLaterSuite, ThreadsInsertBothWays) {
  if (!storage_->capabilities().has(Capability::insertLater)) return;
  constexpr int kThreads = 8;
  constexpr int kEach = 20;
  race(kThreads, [this](int thread) {
    for (int i = 0; i < kEach; ++i) {
      const JobId id = std::to_string(thread) + "." + std::to_string(i);
      if (i % 2 == 0) {
        beginInsert(spec(id));
      } else {
        submit(id);
      }
    }
  });
  EXPECT_EQ(inserts_.awaitAll(), std::vector<std::string>(kThreads * kEach / 2, "inserted"));
  EXPECT_EQ(counts().inQueue, std::size_t{kThreads} * kEach);
  EXPECT_EQ(claimedIds().size(), std::size_t{kThreads} * kEach);
}

TEST_P(InsertLaterSuite, ALargeInputIsStoredWhole) {
  if (!storage_->capabilities().has(Capability::insertLater)) return;
  std::vector<std::string> inputs;
  for (const std::size_t bytes :
       {kLaterInput, kLaterInput + 1, std::size_t{256} << 10U, (std::size_t{256} << 10U) + 1, std::size_t{3} << 20U}) {
    const char letter = static_cast<char>('a' + inputs.size());
    inputs.push_back("{\"x\":\"" + std::string(bytes - 8, letter) + "\"}");
    JobSpec job = spec(std::string(1, letter));
    job.input = inputs.back();
    beginInsert(job);
    beginInsert(job);  // a repeated call
  }
  EXPECT_EQ(inserts_.awaitAll(), std::vector<std::string>(2 * inputs.size(), "inserted"));
  JobSpec other = spec(std::string(1, static_cast<char>('a' + inputs.size() - 1)));
  other.input = inputs.back();
  other.input[100] = '-';
  EXPECT_EQ(insertLater(other), "StorageError") << "the inputs differ in a byte";
  EXPECT_EQ(counts().inQueue, inputs.size());
  if (GetParam().durable) reopen();
  const auto claimed = claim(9);
  ASSERT_EQ(claimed.size(), inputs.size());
  for (std::size_t i = 0; i < inputs.size(); ++i) EXPECT_TRUE(claimed[i].input == inputs[i]) << inputs[i].size();
}

TEST_P(InsertLaterSuite, AClosingStorageAnswersEachReceiverFirst) {
  if (!storage_->capabilities().has(Capability::insertLater)) return;
  constexpr std::size_t kJobs = 50;
  for (std::size_t i = 0; i < kJobs; ++i) beginInsert(spec("j" + std::to_string(i)));
  storage_.reset();
  EXPECT_EQ(inserts_.calls(), std::vector<std::string>(kJobs, "inserted"));
  EXPECT_EQ(inserts_.destroyed(), kJobs);
  reopen();
  EXPECT_EQ(counts().inQueue, GetParam().durable ? kJobs : 0U);
}

TEST_P(InsertLaterSuite, AToldJobSurvivesTheDeathOfTheProcess) {
  if (!GetParam().durable || !storage_->capabilities().has(Capability::insertLater)) return;
  inAProcessThatDies([this] {
    for (std::size_t i = 0; i < 5; ++i) {
      beginInsert(spec("j" + std::to_string(i)));
      EXPECT_EQ(inserts_.awaitCall(i), "inserted");
    }
  });
  EXPECT_EQ(claimedIds(), (std::vector<JobId>{"j0", "j1", "j2", "j3", "j4"}));
}

}  // namespace jobq::testkit
