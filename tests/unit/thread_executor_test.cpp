// Tests of worker threads: the run and the end of jobs (core/workers/thread_executor.h).
#include "core/workers/thread_executor.h"
#include "core/jobs/claimer.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <future>
#include <optional>

#include "core/model/output_quota.h"
#include "core/workers/run/run_context.h"
#include "executor_fixture.h"

namespace jobq {
namespace {

using test::HandlerBody;
using test::kSoon;
using testing::Contains;
using testing::ElementsAre;
using testing::HasSubstr;

class ThreadExecutorTest : public testing::Test, protected test::ExecutorFixture {
 protected:
  /// Runs a job with the handler, and returns the ended job.
  Job runOnce(HandlerBody run) {
    handlers.run = std::move(run);
    startWorker();
    EXPECT_TRUE(events.has(1)) << "the worker was not ready";
    give("a");
    EXPECT_TRUE(events.has(2)) << "the job did not end";
    return find("a");
  }
};

TEST_F(ThreadExecutorTest, AStartedWorkerIsReadyAndRunsTheJob) {
  std::string input;
  const Job job = runOnce([&input](std::string_view text, JobContext& context) {
    input = text;
    EXPECT_EQ(context.id(), "a");
    EXPECT_EQ(context.attempt(), 1U);
    EXPECT_FALSE(context.stopToken().stop_requested());
    return std::string(R"({ "n" : 1.0 })");
  });
  EXPECT_EQ(input, "{}");
  EXPECT_EQ(job.state, JobState::completed);
  EXPECT_EQ(job.output, R"({ "n" : 1.0 })");
  EXPECT_EQ(job.workerId, "w");
  EXPECT_THAT(events.all(), ElementsAre("ready ep w", "ready ep w"));
}

TEST_F(ThreadExecutorTest, AWorkerRunsSuccessiveJobsInTheSameHandler) {
  std::atomic<int> made = 0;
  handlers.onMake = [&made](const HandlerEnv&) { ++made; };
  startWorker();
  for (std::size_t i = 1; i <= 3; ++i) {
    ASSERT_TRUE(events.has(i)) << "job " << i;
    give("j" + std::to_string(i));
  }
  ASSERT_TRUE(events.has(4));
  EXPECT_EQ(find("j3").state, JobState::completed);
  EXPECT_EQ(made, 1);
}

/// Claims the next job with each report, and gives the job to its worker.
class NextJobs final : public Claimer {
 public:
  explicit NextJobs(test::ExecutorFixture& fixture) : fixture_(fixture) {}
  void claimForCaller(const EndpointId&) override {}
  std::optional<InsertResult> insertForCaller(JobSpec&, const QueuePolicy&,
                                              const std::optional<Idempotency>&) override {
    return std::nullopt;
  }
  std::shared_ptr<DeferredInsert> runForCaller(const JobSpec&, const QueuePolicy&) override { return nullptr; }
  std::optional<FinishedRun> finishAndClaim(const ClaimedJob& job, const EndedAttempt& end, bool) override {
    const ReportResult result = fixture_.storage->leases().finish(end.lease, end.outcome);
    if (fixture_.storage.real->jobs().counts("ep").inQueue == 0) return FinishedRun{result, false};
    fixture_.giveClaimed(fixture_.storage.claim(job.worker));
    return FinishedRun{result, true};
  }

 private:
  test::ExecutorFixture& fixture_;
};

TEST_F(ThreadExecutorTest, AWorkerWithANextJobIsNotReportedReady) {
  NextJobs next(*this);
  claimer.bind(next);
  startWorker();
  ASSERT_TRUE(events.has(1));
  storage.insert("b");
  storage.insert("c");
  const ClaimedJob first = storage.claim();
  EXPECT_EQ(first.lease.job, "b");
  giveClaimed(first);
  ASSERT_TRUE(events.has(2));
  EXPECT_EQ(find("b").state, JobState::completed);
  EXPECT_EQ(find("c").state, JobState::completed);
  EXPECT_THAT(events.all(), ElementsAre("ready ep w", "ready ep w"))
      << "the worker is ready after the start and after the last job";
}

TEST_F(ThreadExecutorTest, WorkersRunAtTheSameTime) {
  std::promise<void> first;
  std::promise<void> second;
  std::shared_future<void> secondRuns = second.get_future().share();
  handlers.run = [&, calls = std::make_shared<std::atomic<int>>(0)](std::string_view, JobContext&) {
    if ((*calls)++ == 0) {
      first.set_value();
      EXPECT_EQ(secondRuns.wait_for(kSoon), std::future_status::ready) << "the second job waited for the first";
    } else {
      second.set_value();
    }
    return std::string("1");
  };
  startWorker("v");
  startWorker("w");
  ASSERT_TRUE(events.has(2));
  give("a", "v");
  ASSERT_EQ(first.get_future().wait_for(kSoon), std::future_status::ready);
  give("b", "w");
  ASSERT_TRUE(events.has(4));
  EXPECT_EQ(find("a").state, JobState::completed);
  EXPECT_EQ(find("b").state, JobState::completed);
}

TEST_F(ThreadExecutorTest, AHandlerIsMadeForEndpointAndRelease) {
  std::promise<HandlerEnv> seen;
  handlers.onMake = [&seen](const HandlerEnv& env) { seen.set_value(env); };
  startWorker("w-7");
  auto future = seen.get_future();
  ASSERT_EQ(future.wait_for(kSoon), std::future_status::ready);
  const HandlerEnv env = future.get();
  EXPECT_EQ(env.endpoint, "ep");
  EXPECT_EQ(env.worker, "w-7");
  EXPECT_EQ(env.script, "a-script");
  EXPECT_THAT(env.variables, ElementsAre(testing::Pair("CITY", "Ulm")));
}

TEST_F(ThreadExecutorTest, AFailedHandlerCreationEndsTheWorker) {
  handlers.onMake = [](const HandlerEnv&) { throw Error("no such model"); };
  startWorker();
  ASSERT_TRUE(events.has(1));
  handlers.onMake = [](const HandlerEnv&) { throw 7; };
  startWorker("v");
  ASSERT_TRUE(events.has(2));
  handlers.onMake = [](const HandlerEnv&) { throw Error(""); };
  startWorker("u");
  ASSERT_TRUE(events.has(3));
  EXPECT_THAT(events.all(), ElementsAre("gone w: no such model", HasSubstr("gone v: the handler threw an exception"),
                                        "gone u: the handler gave no reason"));
}

TEST_F(ThreadExecutorTest, AFailureOnPurposeKeepsMessageAndOutput) {
  const Job job =
      runOnce([](std::string_view, JobContext&) -> std::string { throw JobFailed("no luck", R"({"half":true})"); });
  EXPECT_EQ(job.state, JobState::failed);
  EXPECT_EQ(job.error, "no luck");
  EXPECT_EQ(job.output, R"({"half":true})");
}

TEST_F(ThreadExecutorTest, AnInvalidOutputBesideAnErrorIsDropped) {
  const Job job = runOnce([](std::string_view, JobContext&) -> std::string { throw JobFailed("no luck", "{half"); });
  EXPECT_EQ(job.error, "no luck");
  EXPECT_EQ(job.output, "");
}

TEST_F(ThreadExecutorTest, WhateverAHandlerThrowsFailsTheJobAndNotTheWorker) {
  const Job job = runOnce([](std::string_view, JobContext&) -> std::string { throw std::out_of_range("index 9"); });
  EXPECT_EQ(job.state, JobState::failed);
  EXPECT_EQ(job.error, "index 9");
  handlers.run = [](std::string_view, JobContext&) -> std::string { throw 7; };
  give("b");
  ASSERT_TRUE(events.has(3));
  EXPECT_EQ(find("b").state, JobState::failed);
  EXPECT_THAT(find("b").error, HasSubstr("not a std::exception"));
  handlers.run = [](std::string_view, JobContext&) { return std::string("1"); };
  give("c");
  ASSERT_TRUE(events.has(4));
  EXPECT_EQ(find("c").state, JobState::completed);
}

TEST_F(ThreadExecutorTest, AnInvalidOutputFailsTheJob) {
  const Job job = runOnce([](std::string_view, JobContext&) { return std::string("{\"a\":"); });
  EXPECT_EQ(job.state, JobState::failed);
  EXPECT_THAT(job.error, HasSubstr("not JSON"));
}

TEST_F(ThreadExecutorTest, AnOutputOfMoreThan20MBFailsTheJob) {
  const std::string most = "\"" + std::string(kMaxOutput - 2, 'x') + "\"";
  const Job job = runOnce([&most](std::string_view, JobContext&) { return most; });
  EXPECT_EQ(job.state, JobState::completed);
  EXPECT_EQ(job.output.size(), kMaxOutput);
  handlers.run = [&most](std::string_view, JobContext&) { return most + " "; };
  give("b");
  ASSERT_TRUE(events.has(3));
  EXPECT_EQ(find("b").state, JobState::failed);
  EXPECT_THAT(find("b").error, HasSubstr("20971521 bytes, the limit is 20971520"));
}

TEST_F(ThreadExecutorTest, ASealedS3ConfigIsOpenedForTheHandler) {
  std::string seen;
  handlers.run = [&seen](std::string_view, JobContext& context) {
    seen = context.s3Config();
    return std::string("1");
  };
  startWorker();
  ASSERT_TRUE(events.has(1));
  storage.insert("a");
  ClaimedJob job = storage.claim();
  job.s3Config = secrets.seal("{\"accessSecret\":\"s\"}");
  giveClaimed(std::move(job));
  ASSERT_TRUE(events.has(2));
  EXPECT_EQ(seen, "{\"accessSecret\":\"s\"}");
  storage.insert("b");
  ClaimedJob damaged = storage.claim();
  damaged.s3Config = "sealed with another key";
  giveClaimed(std::move(damaged));
  ASSERT_TRUE(events.has(3));
  EXPECT_EQ(find("b").state, JobState::failed);
}

TEST_F(ThreadExecutorTest, AStoppedWorkerEndsWithoutAFailure) {
  startWorker();
  ASSERT_TRUE(events.has(1));
  executor.stopWorker("nobody");
  executor.stopWorker("w");
  ASSERT_TRUE(events.has(2));
  EXPECT_THAT(events.all(), ElementsAre("ready ep w", "gone w"));
  executor.stopWorker("w");
  startWorker("w");
  ASSERT_TRUE(events.has(3)) << "the name is free again";
}

TEST_F(ThreadExecutorTest, ALateResultChangesNothing) {
  const Job job = runOnce([this](std::string_view, JobContext&) {
    (void)storage.real->jobs().cancel({"ep", "a"});
    return std::string("1");
  });
  EXPECT_EQ(job.state, JobState::cancelled);
  EXPECT_EQ(job.output, "");
  EXPECT_THAT(storage.log.lines(), Contains(HasSubstr("job.stale")));
}

// The handler ignores its stop token, and ends before any other part has noticed the timeout.
TEST_F(ThreadExecutorTest, AnOutcomeAfterTheDeadlineIsTimedOut) {
  std::size_t ready = 0;
  handlers.run = [this](std::string_view, JobContext& context) -> std::string {
    storage.clock.advance(context.deadline() - storage.clock.now());
    if (context.id() == "failed") throw JobFailed("no");
    return "1";
  };
  startWorker();
  for (const char* id : {"completed", "failed"}) {
    ASSERT_TRUE(events.has(++ready)) << "before " << id;
    give(id);
    ASSERT_TRUE(events.has(ready + 1)) << id;
    const Job job = find(id);
    EXPECT_EQ(job.state, JobState::timedOut);
    EXPECT_EQ(job.output, "");
    EXPECT_EQ(job.error, overTimeError(Millis(600'000)));
  }
}

TEST_F(ThreadExecutorTest, AnOutcomeJustBeforeTheDeadlineCounts) {
  const Job job = runOnce([this](std::string_view, JobContext& context) {
    storage.clock.advance(context.deadline() - storage.clock.now() - Millis(1));
    return std::string("1");
  });
  EXPECT_EQ(job.state, JobState::completed);
}

// The storage failed at the report of the outcome, and stores the outcome after the deadline.
TEST_F(ThreadExecutorTest, AnOutcomeInTimeCountsDespiteALateStore) {
  handlers.run = [](std::string_view, JobContext&) { return std::string("1"); };
  storage.faults.failOperation("leases.finish");
  startWorker();
  ASSERT_TRUE(events.has(1));
  give("a");
  storage.clock.awaitWaiter(Millis(1), Millis(2'000));
  storage.faults.heal();
  storage.clock.advance(Millis(600'000));
  ASSERT_TRUE(events.has(2));
  EXPECT_EQ(find("a").state, JobState::completed);
}

TEST_F(ThreadExecutorTest, AnOutcomeIsOfferedUntilTheStorageAccepts) {
  std::atomic<int> runs = 0;
  handlers.run = [&runs](std::string_view, JobContext&) {
    ++runs;
    return std::string("1");
  };
  storage.faults.failOperation("leases.finish");
  startWorker();
  ASSERT_TRUE(events.has(1));
  give("a");
  for (int failures = 1; failures <= 3; ++failures) {
    storage.clock.awaitWaiter(Millis(1), Millis(2'000));
    EXPECT_THAT(storage.log.lines(), Contains(HasSubstr("job.unfinished")).Times(failures));
    EXPECT_THAT(events.all(), ElementsAre("ready ep w")) << "the worker keeps the outcome";
    if (failures == 3) storage.faults.heal();
    storage.clock.advance(Millis(2'000));
  }
  ASSERT_TRUE(events.has(2));
  EXPECT_EQ(find("a").state, JobState::completed);
  EXPECT_EQ(runs, 1);
}

}  // namespace
}  // namespace jobq
