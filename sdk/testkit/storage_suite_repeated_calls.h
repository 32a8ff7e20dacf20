// Conformance: a repeated call has the effect and the answer of a single call (sdk/include/jobq/storage.h,
// "Repeatable"). A caller repeats a call whose answer was lost.
#pragma once

#include <cstddef>
#include <cstdint>
#include <optional>
#include <sstream>
#include <string>
#include <utility>
#include <variant>
#include <vector>

#include "jobq/error.h"
#include "testkit/returned_jobs.h"
#include "testkit/storage_suite.h"

namespace jobq::testkit {

class RepeatedCalls : public StorageSuite {
 protected:
  static JobSpec hooked(const JobId& id) {
    JobSpec job = spec(id);
    job.webhook = "http://example.com/";
    return job;
  }
  bool insertAgain(const JobSpec& job, const std::optional<Idempotency>& idempotency = std::nullopt) {
    return std::holds_alternative<Inserted>(jobs().insert(JobSpec(job), policy_, {idempotency}));
  }
  /// Returns the job and the counters of its endpoint as text.
  std::string picture(const JobId& id) {
    const auto job = find(id);
    const EndpointCounts now = counts();
    std::ostringstream text;
    text << (job ? describe(*job) : "absent") << " counts " << now.inQueue << ' ' << now.inProgress << ' '
         << now.completed << ' ' << now.failed << ' ' << now.retried;
    return text.str();
  }
};

TEST_P(RepeatedCalls, ARepeatedReleaseOrPurgeFindsNoJob) {
  submit("a");
  const LeaseRef lease = claimOne();
  EXPECT_EQ(testkit::release(leases(), std::vector{lease}), 1U);
  const std::string before = picture("a");
  EXPECT_EQ(testkit::release(leases(), std::vector{lease}), 0U);
  EXPECT_EQ(picture("a"), before);
  EXPECT_EQ(jobs().purgeQueued("ep"), 1U);
  EXPECT_EQ(jobs().purgeQueued("ep"), 0U);
}

TEST_P(RepeatedCalls, ARepeatedInsertIsOneJobInEveryState) {
  for (JobState state : kAllStates) {
    const JobId id = "j" + std::to_string(static_cast<int>(state));
    bring(id, state);
    const std::string before = picture(id);
    clock_.advance(Millis(10));
    JobSpec again = spec(id);
    again.policy.executionTimeout = Millis(5'000);
    EXPECT_TRUE(insertAgain(again)) << nameOf(state);
    EXPECT_EQ(picture(id), before) << nameOf(state);
    (void)jobs().purgeQueued("ep");
  }
}

TEST_P(RepeatedCalls, ADifferentInsertFindsTheIdTaken) {
  submit("a");
  const std::string before = picture("a");
  JobSpec otherKey = spec("a");
  otherKey.apiKeyId = "other";
  JobSpec otherInput = spec("a");
  otherInput.input = "{\"n\":1.00}";
  JobSpec noInput = spec("a");
  noInput.input.clear();
  for (const JobSpec& other : {otherKey, otherInput, noInput, spec("a", "other")}) {
    EXPECT_THROW((void)jobs().insert(JobSpec(other), policy_), StorageError);
  }
  EXPECT_EQ(picture("a"), before);
  EXPECT_TRUE(claim(1, "other").empty());
}

TEST_P(RepeatedCalls, ARepeatedInsertOfALargeInputIsOneJob) {
  JobSpec job = spec("a");
  job.input = "\"" + std::string(2'000'000, 'x') + "\"";
  submit(job);
  EXPECT_TRUE(insertAgain(job));
  job.input.back() = '\'';
  EXPECT_THROW((void)jobs().insert(JobSpec(job), policy_), StorageError) << "the last byte differs";
  EXPECT_EQ(counts().inQueue, 1U);
}

TEST_P(RepeatedCalls, ARepeatedInsertLeavesTheTurnsOfItsGroupAlone) {
  const TakeTurns turns;
  const auto insert = [&](const JobId& id, const std::string& group) {
    JobSpec job = spec(id);
    job.apiKeyId = group;
    EXPECT_TRUE(std::holds_alternative<Inserted>(jobs().insert(std::move(job), turns))) << id;
  };
  insert("a1", "a");
  insert("b1", "b");
  for (int i = 0; i < 3; ++i) insert("a1", "a");
  insert("a2", "a");
  insert("b2", "b");
  insert("b3", "b");
  const auto claimed = claim(9);
  std::vector<JobId> order;
  order.reserve(claimed.size());
  for (const ClaimedJob& job : claimed) order.push_back(job.lease.job);
  EXPECT_EQ(order, (std::vector<JobId>{"a1", "b1", "a2", "b2", "b3"}));
}

TEST_P(RepeatedCalls, ARepeatedInsertWithAnIdempotencyKeyIsNoDuplicate) {
  JobSpec job = spec("a");
  job.policy.ttl = Millis(10'000);
  const Idempotency once{"k", "h"};
  EXPECT_TRUE(insertAgain(job, once));
  EXPECT_TRUE(insertAgain(job, once));
  EXPECT_EQ(counts().inQueue, 1U);
  EXPECT_TRUE(std::holds_alternative<KeyConflict>(jobs().insert(JobSpec(job), policy_, {Idempotency{"k", "other"}})));
  EXPECT_THROW((void)jobs().insert(spec("a", "other"), policy_, {once}), StorageError)
      << "the key is used at a different endpoint";
  clock_.advance(Millis(10'000));
  sweepAll();
  EXPECT_TRUE(insertAgain(job, once)) << "the record outlives the job";
  EXPECT_FALSE(find("a")) << "the expired job does not come back";
  EXPECT_EQ(counts().inQueue, 0U);
}

// The job outlives the idempotency record, which was written a day ago.
TEST_P(RepeatedCalls, ALateRepetitionOfAnInsertWritesNoSecondRecord) {
  const Idempotency once{"k", "h"};
  EXPECT_TRUE(insertAgain(spec("a"), once));
  EXPECT_TRUE(jobs().setTtl({"ep", "a"}, kTtlCeiling));
  clock_.advance(kIdempotencyLife);
  EXPECT_TRUE(insertAgain(spec("a"), once));
  EXPECT_FALSE(jobs().findByIdempotencyKey("ep", "key", once));
  EXPECT_EQ(counts().inQueue, 1U);
  EXPECT_TRUE(insertAgain(spec("b"), once)) << "the key is free";
  const auto late = jobs().insert(spec("a"), policy_, {once});
  ASSERT_TRUE(std::holds_alternative<Duplicate>(late)) << "the key is judged first";
  EXPECT_EQ(std::get<Duplicate>(late).id, "b");
}

TEST_P(RepeatedCalls, ARepeatedCancelIsOneEnd) {
  const auto cancelTwice = [this](const LeaseRef& last) {
    const JobKey key{"ep", last.job};
    const auto first = jobs().cancel(key);
    ASSERT_TRUE(std::holds_alternative<Cancelled>(first)) << last.job;
    EXPECT_EQ(std::get<Cancelled>(first).lease, last);
    const std::string before = picture(last.job);
    clock_.advance(Millis(10));
    const auto again = jobs().cancel(key);
    ASSERT_TRUE(std::holds_alternative<Cancelled>(again)) << last.job;
    EXPECT_EQ(std::get<Cancelled>(again).lease, last);
    EXPECT_EQ(picture(last.job), before);
    EXPECT_EQ(outbox().list("ep", last.job, 9).size(), 1U) << "an end has a single webhook delivery";
  };
  submit(hooked("waits"));
  EXPECT_EQ(testkit::release(leases(), std::vector{claimOne()}), 1U);
  cancelTwice({"waits", 2});
  submit(hooked("runs"));
  cancelTwice(claimOne());
}

TEST_P(RepeatedCalls, ARepeatedRetryPutsTheJobInTheQueueOnce) {
  const LeaseRef failed = bring("a", JobState::failed);
  const auto retry = [this](std::uint32_t attempt) { return jobs().requeue({"ep", "a"}, attempt, policy_); };
  EXPECT_EQ(std::get<WrongState>(retry(failed.attempt + 1)).state, JobState::failed) << "the attempt never existed";
  EXPECT_TRUE(std::holds_alternative<Requeued>(retry(failed.attempt)));
  const std::string queued = picture("a");
  clock_.advance(Millis(10));
  EXPECT_TRUE(std::holds_alternative<Requeued>(retry(failed.attempt)));
  EXPECT_EQ(picture("a"), queued);
  const LeaseRef second = claimOne();
  EXPECT_TRUE(std::holds_alternative<Requeued>(retry(failed.attempt)));
  EXPECT_EQ(stateOf("a"), JobState::inProgress);
  EXPECT_EQ(fail(second), ReportResult::accepted);
  EXPECT_TRUE(std::holds_alternative<Requeued>(retry(failed.attempt)));
  EXPECT_EQ(stateOf("a"), JobState::failed) << "the second end has no retry yet";
  EXPECT_TRUE(std::holds_alternative<Requeued>(retry(second.attempt)));
  EXPECT_EQ(stateOf("a"), JobState::inQueue);
  EXPECT_EQ(find("a")->retries, 2U);
}

TEST_P(RepeatedCalls, ARepeatedFinishIsOneEnd) {
  const std::vector<Outcome> outcomes{Completed{"[1.0]"}, Completed{""}, Failed{"no", "{\"half\":1}"},
                                      Failed{"no", ""}};
  for (std::size_t i = 0; i < outcomes.size(); ++i) {
    const JobId id = "j" + std::to_string(i);
    submit(hooked(id));
    const LeaseRef lease = claimOne();
    EXPECT_EQ(leases().finish(lease, outcomes[i]), ReportResult::accepted);
    const std::string before = picture(id);
    clock_.advance(Millis(100));
    EXPECT_EQ(leases().finish(lease, outcomes[i]), ReportResult::accepted);
    EXPECT_EQ(picture(id), before);
    EXPECT_EQ(outbox().list("ep", id, 9).size(), 1U) << "an end has a single webhook delivery";
  }
}

TEST_P(RepeatedCalls, AReportDifferentFromTheEndIsStale) {
  submit("a");
  const LeaseRef a = claimOne();
  EXPECT_EQ(leases().finish(a, Failed{"no", "1"}), ReportResult::accepted);
  const std::string before = picture("a");
  const std::vector<Outcome> others{Completed{"1"}, Failed{"no", ""}, Failed{"no", "2"}, Failed{"", "1"},
                                    Failed{"no!", "1"}};
  for (const Outcome& other : others) EXPECT_EQ(leases().finish(a, other), ReportResult::staleAttempt);
  EXPECT_EQ(leases().finish({"a", a.attempt - 1}, Failed{"no", "1"}), ReportResult::staleAttempt);
  EXPECT_EQ(leases().finish({"a", a.attempt + 1}, Failed{"no", "1"}), ReportResult::staleAttempt);
  EXPECT_EQ(picture("a"), before);
  submit("b");
  const LeaseRef b = claimOne();
  EXPECT_EQ(leases().finish(b, Completed{""}), ReportResult::accepted);
  EXPECT_EQ(leases().finish(b, Completed{"1"}), ReportResult::staleAttempt);
  EXPECT_EQ(leases().finish(b, Failed{"", ""}), ReportResult::staleAttempt);
}

TEST_P(RepeatedCalls, NoReportRepeatsATimeoutOrACancel) {
  const LeaseRef late = bring("late", JobState::timedOut);
  EXPECT_EQ(leases().finish(late, Failed{find("late")->error, ""}), ReportResult::staleAttempt);
  submit("cancelled");
  const LeaseRef cancelled = claimOne();
  EXPECT_TRUE(std::holds_alternative<Cancelled>(jobs().cancel({"ep", "cancelled"})));
  EXPECT_EQ(leases().finish(cancelled, Completed{""}), ReportResult::staleAttempt);
}

TEST_P(RepeatedCalls, TheTimeOfTheLastCallCounts) {
  submit(hooked("a"));
  const LeaseRef lease = claimOne();
  for (int i = 0; i < 2; ++i) {
    EXPECT_EQ(leaseState(lease), LeaseState::held);
    EXPECT_EQ(nodes().beat(holder_, {}), BeatResult::extended);
    EXPECT_EQ(leases().progress(lease, "[1]"), ReportResult::accepted);
    EXPECT_EQ(jobs().setTtl({"ep", "a"}, Millis(60'000)), clock_.now() + Millis(60'000));
    if (i == 0) clock_.advance(Millis(5'000));
  }
  EXPECT_EQ(find("a")->progress, "[1]");
  EXPECT_EQ(find("a")->expiresAt, clock_.now() + Millis(60'000));
  clock_.advance(Millis(9'999));
  EXPECT_TRUE(sweep().stopped.empty()) << "10 s after the second call";
  EXPECT_EQ(complete(lease), ReportResult::accepted);
  ASSERT_EQ(claimDue(Millis(30'000)).size(), 1U);
  const DeliveryClaim claim = last("a.1");
  EXPECT_TRUE(outbox().reschedule(claim, Millis(1'000)));
  clock_.advance(Millis(500));
  EXPECT_TRUE(outbox().reschedule(claim, Millis(1'000)));
  clock_.advance(Millis(999));
  EXPECT_TRUE(claimDue(Millis(30'000)).empty());
  clock_.advance(Millis(1));
  EXPECT_EQ(claimDue(Millis(30'000)).size(), 1U);
}

TEST_P(RepeatedCalls, AFinishIsRepeatedUntilTheJobIsRetried) {
  const LeaseRef first = bring("a", JobState::failed);
  EXPECT_EQ(fail(first), ReportResult::accepted);
  EXPECT_TRUE(std::holds_alternative<Requeued>(requeue({"ep", "a"}, policy_)));
  EXPECT_EQ(fail(first), ReportResult::staleAttempt);
  const LeaseRef second = claimOne();
  EXPECT_EQ(fail(first), ReportResult::staleAttempt);
  EXPECT_EQ(stateOf("a"), JobState::inProgress);
  EXPECT_EQ(fail(second), ReportResult::accepted);
  EXPECT_EQ(fail(first), ReportResult::staleAttempt) << "the same outcome, of the former attempt";
  EXPECT_EQ(fail(second), ReportResult::accepted);
  EXPECT_EQ(counts().failed, 2U);
}

TEST_P(RepeatedCalls, RepeatedChunksAreStoredOnce) {
  submit("a");
  const LeaseRef first = claimOne();
  const auto add = [&](const LeaseRef& lease, std::uint64_t from, const std::vector<std::string>& outputs) {
    std::vector<Chunk> added;
    added.reserve(outputs.size());
    for (const std::string& output : outputs) added.push_back({output, "", false});
    return chunks().append(lease, from, std::move(added));
  };
  EXPECT_THROW((void)add(first, 1, {"gap"}), Error) << "the first chunk is missing";
  EXPECT_EQ(add(first, 0, {"0", "1"}), ReportResult::accepted);
  EXPECT_EQ(add(first, 0, {"0", "1"}), ReportResult::accepted);
  EXPECT_EQ(add(first, 1, {"1", "2", "3"}), ReportResult::accepted) << "the rest is stored";
  EXPECT_EQ(add(first, 2, {}), ReportResult::accepted);
  EXPECT_THROW((void)add(first, 5, {}), Error);
  const auto stored = [this] { return outputsOf(chunks().read({"ep", "a"}, 0, 1'000).value()); };
  EXPECT_EQ(stored(), "0123");
  EXPECT_EQ(taken("a").size(), 4U);
  EXPECT_EQ(add(first, 2, {"2", "3", "4"}), ReportResult::accepted);
  EXPECT_EQ(taken("a").size(), 1U) << "each chunk is handed out once";
  EXPECT_EQ(testkit::release(leases(), std::vector{first}), 1U);
  const LeaseRef second = claimOne();
  EXPECT_EQ(add(first, 5, {"5"}), ReportResult::staleAttempt);
  EXPECT_EQ(add(second, 0, {"new"}), ReportResult::accepted) << "each attempt counts from 0";
  EXPECT_EQ(stored(), "new");
}

TEST_P(RepeatedCalls, ARepeatedEndOfADeliveryIsOneEnd) {
  for (const DeliveryState state : {DeliveryState::delivered, DeliveryState::abandoned}) {
    const JobId id = "j" + std::to_string(static_cast<int>(state));
    submit(hooked(id));
    EXPECT_TRUE(std::holds_alternative<Cancelled>(jobs().cancel({"ep", id})));
    ASSERT_EQ(claimDue(Millis(30'000)).size(), 1U);
    const DeliveryClaim claim = last(id + ".0");
    EXPECT_TRUE(outbox().finishDelivery(claim, state));
    EXPECT_TRUE(outbox().finishDelivery(claim, state));
    const bool delivered = state == DeliveryState::delivered;
    EXPECT_FALSE(outbox().finishDelivery(claim, delivered ? DeliveryState::abandoned : DeliveryState::delivered));
    EXPECT_FALSE(outbox().finishDelivery({claim.id, claim.number - 1}, state)) << "a former claim";
    EXPECT_EQ(outbox().list("ep", id, 9).at(0).state, state);
    EXPECT_EQ(outbox().owed("ep").count, 0U);
    EXPECT_TRUE(outbox().replay(claim.id));
    EXPECT_FALSE(outbox().finishDelivery(claim, state)) << "the replay owns the delivery";
    EXPECT_EQ(outbox().owed("ep").count, 1U);
    EXPECT_TRUE(outbox().finishDelivery(last(claim.id), state));
    clock_.advance(kDeliveryRecordLife);
    EXPECT_FALSE(outbox().finishDelivery({claim.id, claim.number + 1}, state)) << "the delivery is no longer listed";
  }
}

TEST_P(RepeatedCalls, ARepeatedTryIsRecordedOnce) {
  submit(hooked("a"));
  EXPECT_TRUE(std::holds_alternative<Cancelled>(jobs().cancel({"ep", "a"})));
  ASSERT_EQ(claimDue(Millis(30'000)).size(), 1U);
  const DeliveryClaim claim = last("a.0");
  const auto record = [&](std::uint32_t number, int status) {
    return outbox().recordAttempt(claim, number, {{}, status, Millis(1), "no", "reply"});
  };
  EXPECT_FALSE(record(0, 1)) << "tries are counted from 1";
  EXPECT_FALSE(record(2, 1)) << "the first is missing";
  EXPECT_TRUE(record(1, 501));
  EXPECT_TRUE(record(1, 501));
  EXPECT_TRUE(record(2, 502));
  EXPECT_TRUE(record(2, 502));
  EXPECT_FALSE(record(1, 501)) << "only the last try can be repeated";
  EXPECT_FALSE(record(4, 1));
  const Delivery recorded = outbox().list("ep", "a", 9).at(0);
  EXPECT_EQ(recorded.tries, 2U);
  ASSERT_EQ(recorded.attempts.size(), 2U);
  EXPECT_EQ(recorded.attempts[0].status, 501);
  EXPECT_EQ(recorded.attempts[1].status, 502);
  EXPECT_TRUE(outbox().replay("a.0"));
  EXPECT_FALSE(record(2, 502)) << "the replay owns the delivery";
  EXPECT_EQ(outbox().list("ep", "a", 9).at(0).tries, 0U);
}

TEST_P(RepeatedCalls, RacingRepetitionsHaveOneEffect) {
  for (int round = 0; round < 20; ++round) {
    const JobSpec job = hooked("j" + std::to_string(round));
    race(16, [&](int) { EXPECT_TRUE(insertAgain(job)); });
    EXPECT_EQ(counts().inQueue, 1U);
    const LeaseRef lease = claimOne();
    race(16, [&](int) { EXPECT_EQ(complete(lease), ReportResult::accepted); });
    EXPECT_EQ(outbox().list("ep", job.id, 9).size(), 1U);
  }
  EXPECT_EQ(counts().completed, 20U);
}

}  // namespace jobq::testkit
