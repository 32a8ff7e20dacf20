// Conformance: the insert of a job whose first attempt has begun before (JobStore::insert with Begun in
// sdk/include/jobq/job_store.h). A storage without this step has to refuse each call and to change nothing.
#pragma once

#include <functional>
#include <optional>
#include <string>
#include <utility>
#include <variant>
#include <vector>

#include "jobq/error.h"
#include "jobq/holder.h"
#include "testkit/returned_jobs.h"
#include "testkit/storage_suite.h"

namespace jobq::testkit {

class InsertRunSuite : public StorageSuite {
 protected:
  void insertBegun(JobSpec job, const Begun& begun) {
    const JobSpec before = job;
    EXPECT_TRUE(std::holds_alternative<Inserted>(jobs().insert(std::move(job), policy_, {.start = begun})));
    EXPECT_EQ(job.input, before.input) << "the storage only reads the job";  // NOLINT(bugprone-use-after-move)
  }
  /// Inserts the job as one whose attempt began `age` ago. Returns false for a storage without the step, and then
  /// checks that the call changes nothing.
  bool insertRun(const JobSpec& job, const std::optional<Outcome>& outcome, Millis age = Millis(0)) {
    if (storage_->capabilities().has(Capability::insertBegun)) {
      insertBegun(job, {"w0", holder_, age, outcome ? &*outcome : nullptr});
      return true;
    }
    EXPECT_THROW(insertBegun(job, {"w0", holder_, age}), StorageError);
    EXPECT_FALSE(find(job.id, job.endpoint));
    return false;
  }

  /// Brings a job into the storage by both ways, in the endpoints `one` and `two`: the attempt takes 30 ms. Returns
  /// false for a storage without the step.
  bool insertTwins(JobSpec job, const std::optional<Outcome>& outcome) {
    job.id = "b";
    job.endpoint = "two";
    submit(job);
    EXPECT_EQ(storage_->leases().claim(std::vector{ClaimWant{"two", {"w0"}}}, holder_, nextCall()).jobs.size(), 1U);
    clock_.advance(Millis(30));
    if (outcome) {
      EXPECT_EQ(storage_->leases().finish({"b", 1}, *outcome), ReportResult::accepted);
    }
    job.id = "a";
    job.endpoint = "one";
    return insertRun(job, outcome, Millis(30));
  }

  /// Compares every value of the twins that is open to reading.
  void expectEqualTwins() {
    auto one = find("a", "one");
    auto two = find("b", "two");
    ASSERT_EQ(one.has_value(), two.has_value());
    if (one) {
      two->id = "a";
      two->endpoint = "one";
      EXPECT_EQ(describe(*one), describe(*two));
    }
    EXPECT_EQ(describe(counts("one")), describe(counts("two")));
    const auto pageOf = [this](const EndpointId& endpoint) { return jobs().list({endpoint, {}}, {0, 10, 0}); };
    EXPECT_EQ(pageOf("one").jobs.size(), pageOf("two").jobs.size());
    EXPECT_EQ(pageOf("one").total, pageOf("two").total);
  }

  static std::string describe(const Job& job) { return testkit::describe(job); }
  static std::string describe(const EndpointCounts& counts) {
    std::string text;
    for (const auto number :
         {counts.inQueue, counts.inQueueLow, counts.inProgress, counts.completed, counts.failed, counts.retried}) {
      text += std::to_string(number) + " ";
    }
    return text;
  }

  JobSpec twin() const {
    JobSpec job = spec("a");
    job.policy.executionTimeout = Millis(5'000);
    job.policy.ttl = Millis(20'000);
    job.policy.lowPriority = true;
    job.policy.priority = 3;
    job.s3Config = "sealed";
    return job;
  }
};

TEST_P(InsertRunSuite, ARunningJobIsAsAfterAnInsertAndAClaim) {
  if (!insertTwins(twin(), std::nullopt)) return;
  expectEqualTwins();
  EXPECT_EQ(*find("a", "one")->startedAt + Millis(30), clock_.now());
  EXPECT_EQ(storage_->leases().progress({"a", 1}, "1"), ReportResult::accepted);
  EXPECT_EQ(storage_->leases().progress({"b", 1}, "1"), ReportResult::accepted);
  expectEqualTwins();
  EXPECT_EQ(testkit::release(storage_->leases(), std::vector{LeaseRef{"a", 1}, LeaseRef{"b", 1}}), 2U);
  expectEqualTwins();
  const auto again = storage_->leases()
                         .claim(std::vector{ClaimWant{"one", {"w0"}}, ClaimWant{"two", {"w0"}}}, holder_, nextCall())
                         .jobs;
  ASSERT_EQ(again.size(), 2U);
  EXPECT_EQ(again[0].input, again[1].input);
  EXPECT_EQ(again[0].s3Config, again[1].s3Config);
  expectEqualTwins();
}

TEST_P(InsertRunSuite, ARunningJobEndsAtTheSameMoment) {
  if (!insertTwins(twin(), std::nullopt)) return;
  clock_.advance(Millis(4'969));
  (void)sweep();
  EXPECT_EQ(find("a", "one")->state, JobState::inProgress);
  clock_.advance(Millis(1));
  (void)sweep();
  EXPECT_EQ(find("a", "one")->state, JobState::timedOut);
  expectEqualTwins();
}

TEST_P(InsertRunSuite, ACompletedJobIsAsAfterItsReport) {
  if (!insertTwins(twin(), Completed{"{\"ok\": 1.0}"})) return;
  expectEqualTwins();
  EXPECT_EQ(find("a", "one")->state, JobState::completed);
  EXPECT_EQ(storage_->leases().finish({"a", 1}, Completed{"{\"ok\": 1.0}"}), ReportResult::accepted)
      << "a repeated report";
  EXPECT_EQ(storage_->leases().finish({"a", 1}, Completed{"2"}), ReportResult::staleAttempt);
  for (const Millis step : {Millis(19'969), Millis(1)}) {
    clock_.advance(step);
    expectEqualTwins();
  }
  EXPECT_FALSE(find("a", "one")) << "the job's ttl has passed";
  sweepAll();
  expectEqualTwins();
}

TEST_P(InsertRunSuite, AResultStaysForItsRetention) {
  JobSpec job = twin();
  job.retention = Millis(7'000);
  if (!insertTwins(job, Completed{"1"})) return;
  clock_.advance(Millis(6'999));
  expectEqualTwins();
  EXPECT_TRUE(find("a", "one"));
  clock_.advance(Millis(1));
  expectEqualTwins();
  EXPECT_FALSE(find("a", "one"));
}

TEST_P(InsertRunSuite, AFailedJobCanBeRetried) {
  if (!insertTwins(twin(), Failed{"bad luck", "[1]"})) return;
  expectEqualTwins();
  EXPECT_EQ(find("a", "one")->error, "bad luck");
  EXPECT_TRUE(std::holds_alternative<Requeued>(requeue({"one", "a"}, policy_)));
  EXPECT_TRUE(std::holds_alternative<Requeued>(requeue({"two", "b"}, policy_)));
  expectEqualTwins();
  EXPECT_EQ(claim(1, "one").at(0).lease, (LeaseRef{"a", 3}));
}

TEST_P(InsertRunSuite, ARetryKeepsTheInputAndDropsTheOutput) {
  JobSpec job = spec("a");
  job.apiKeyId = "key";
  if (!insertTwins(job, Failed{"bad luck", "[1]"})) return;
  expectEqualTwins();
  EXPECT_EQ(find("a", "one")->output, "[1]");
  for (const JobKey& key : {JobKey{"one", "a"}, JobKey{"two", "b"}}) {
    ASSERT_TRUE(std::holds_alternative<Requeued>(requeue(key, policy_)));
    EXPECT_EQ(find(key.id, key.endpoint)->error, "");
    EXPECT_EQ(find(key.id, key.endpoint)->output, "");
    const auto again = claim(1, key.endpoint);
    ASSERT_EQ(again.size(), 1U);
    EXPECT_EQ(again[0].input, job.input);
    EXPECT_EQ(storage_->leases().finish(again[0].lease, Completed{"[2]"}), ReportResult::accepted);
    EXPECT_EQ(find(key.id, key.endpoint)->output, "[2]");
  }
  expectEqualTwins();
}

TEST_P(InsertRunSuite, AnEndedJobOwesItsWebhook) {
  JobSpec job = spec("a");
  job.webhook = "http://h/done";
  if (!insertRun(job, Completed{"[1]"}, Millis(40))) return;
  const auto due = claimDue(Millis(1'000));
  ASSERT_EQ(due.size(), 1U);
  EXPECT_EQ(due[0].url, job.webhook);
  EXPECT_EQ(describe(due[0].job), describeWithoutKey(*find("a")));
  EXPECT_EQ(due[0].input, job.input);
}

TEST_P(InsertRunSuite, AQueueIsLeftUnchanged) {
  submit("first");
  if (!insertRun(spec("a"), std::nullopt)) return;
  EXPECT_EQ(stateOf("first"), JobState::inQueue);
  EXPECT_EQ(stateOf("a"), JobState::inProgress);
  EXPECT_EQ(claimOne(), (LeaseRef{"first", 1}));
  EXPECT_TRUE(storage_->leases().claimed(std::vector{ClaimWant{"ep", {"w0"}}}, nextCall()).empty());
}

TEST_P(InsertRunSuite, ATakenIdIsRefusedWithoutEffect) {
  submit("a");
  if (!storage_->capabilities().has(Capability::insertBegun)) return;
  JobSpec other = spec("a");
  other.input = "{}";
  const Outcome outcome = Completed{"1"};
  for (const Outcome* end : {static_cast<const Outcome*>(nullptr), &outcome}) {
    EXPECT_THROW(insertBegun(other, {"w0", holder_, Millis(0), end}), StorageError);
  }
  EXPECT_EQ(stateOf("a"), JobState::inQueue);
  EXPECT_EQ(describe(counts()), "1 0 0 0 0 0 ");
  EXPECT_EQ(claim(1).at(0).input, "{\"n\":1.0}");
}

TEST_P(InsertRunSuite, AnEndedLifeRunsNoJob) {
  if (!storage_->capabilities().has(Capability::insertBegun)) return;
  const Holder former = holder_;
  newLife();
  EXPECT_THROW(insertBegun(spec("a"), {"w0", former, Millis(0), nullptr}), StorageError);
  EXPECT_FALSE(find("a"));
  const Outcome outcome = Completed{"1"};
  insertBegun(spec("a"), {"w0", former, Millis(0), &outcome});
  EXPECT_EQ(stateOf("a"), JobState::completed) << "the outcome needs no life";
}

TEST_P(InsertRunSuite, AJobPastItsTtlIsRefused) {
  if (!storage_->capabilities().has(Capability::insertBegun)) return;
  JobSpec job = spec("a");
  job.policy.ttl = Millis(10'000);
  job.webhook = "http://h/done";
  EXPECT_THROW(insertRun(job, Completed{"1"}, Millis(10'000)), StorageError);
  EXPECT_EQ(describe(counts()), "0 0 0 0 0 0 ");
  EXPECT_TRUE(claimDue(Millis(1'000)).empty());
  EXPECT_TRUE(insertRun(job, Completed{"1"}, Millis(9'999)));
}

TEST_P(InsertRunSuite, ALostWorkerOfSuchAJobIsCounted) {
  if (!insertRun(spec("a"), std::nullopt)) return;
  newLife();
  (void)sweep();
  EXPECT_EQ(find("a")->losses, 1U);
  EXPECT_EQ(stateOf("a"), JobState::inQueue);
}

TEST_P(InsertRunSuite, SuchJobsSurviveTheDeathOfTheProcess) {
  if (!GetParam().durable || !storage_->capabilities().has(Capability::insertBegun)) return;
  inAProcessThatDies([this] {
    EXPECT_TRUE(insertRun(spec("a"), std::nullopt));
    EXPECT_TRUE(insertRun(spec("b"), Completed{"[1]"}));
  });
  (void)sweep();
  EXPECT_EQ(find("a")->losses, 1U);
  EXPECT_EQ(find("b")->output, "[1]");
  EXPECT_EQ(describe(counts()), "1 0 0 1 0 1 ");
}

}  // namespace jobq::testkit
