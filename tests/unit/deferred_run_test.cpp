// Tests of the runs of jobs that the storage does not have (core/workers/thread_executor.h).
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <atomic>
#include <future>
#include <memory>
#include <string>
#include <string_view>
#include <utility>

#include "core/jobs/completion_notifier.h"
#include "core/jobs/deferred_insert.h"
#include "core/workers/deferred_inserts.h"
#include "deferred_insert_fixture.h"
#include "executor_fixture.h"
#include "jobq/job.h"
#include "jobq/time.h"
#include "tests/support/held_caller.h"
#include "unit_storage.h"

namespace jobq {
namespace {

using InsertState = DeferredInsert::State;
using test::holdsSoon;
using test::kSoon;
using test::makeInsert;
using testing::Contains;
using testing::HasSubstr;
using testing::IsEmpty;

/// Runs on an executor whose worker `w` is ready.
class DeferredRunTest : public testing::Test, protected test::ExecutorFixture {
 protected:
  DeferredRunTest() { startWorker(); }

  /// Begins the run of the job.
  std::shared_ptr<DeferredInsert> run(const JobId& id, Millis runsFor = Millis(5'000)) {
    EXPECT_TRUE(events.has(1));
    auto insert = makeInsert(storage, id);
    ClaimedJob job;
    job.lease = {id, 1};
    job.endpoint = "ep";
    job.worker = "w";
    job.input = "{}";
    job.runsFor = runsFor;
    executor.assignUnstored(std::move(job), insert);
    return insert;
  }
  bool isAbsent(const JobId& id) { return !storage.real->jobs().find({"ep", id}); }
  std::uint64_t callsOf(auto&& act) {
    const std::uint64_t before = storage.faults.calls();
    act();
    return storage.faults.calls() - before;
  }
};

TEST_F(DeferredRunTest, ABriefRunCallsTheStorageOnce) {
  handlers.run = [this](std::string_view, JobContext& context) {
    EXPECT_EQ(context.attempt(), 1U);
    EXPECT_TRUE(isAbsent("a"));
    return std::string("[1.0]");
  };
  const std::uint64_t calls = callsOf([this] {
    run("a");
    ASSERT_TRUE(events.has(2));
  });
  EXPECT_EQ(calls, 1U);
  EXPECT_EQ(find("a").state, JobState::completed);
  EXPECT_EQ(find("a").output, "[1.0]");
  EXPECT_EQ(find("a").workerId, "w");
}

TEST_F(DeferredRunTest, AHandlerReadingTheIdHasAStoredJob) {
  handlers.run = [this](std::string_view, JobContext& context) {
    EXPECT_EQ(context.id(), "a");
    EXPECT_EQ(find("a").state, JobState::inProgress);
    return std::string("1");
  };
  run("a");
  ASSERT_TRUE(events.has(2));
  EXPECT_EQ(find("a").state, JobState::completed);
}

TEST_F(DeferredRunTest, ReportsComeBehindTheInsert) {
  handlers.run = [](std::string_view, JobContext& context) {
    context.emit("1");
    context.progress("2");
    context.log(LogLevel::information, "three");
    return std::string("4");
  };
  run("a");
  ASSERT_TRUE(events.has(2));
  EXPECT_EQ(storage.real->chunks().read({"ep", "a"}, 0, 1'000)->chunks.size(), 1U);
  EXPECT_EQ(storage.real->chunks().readLog({"ep", "a"})->lines.size(), 1U);
  EXPECT_EQ(find("a").output, "4");
}

TEST_F(DeferredRunTest, LongOrKnownRunsAreNotBrief) {
  ASSERT_TRUE(events.has(1));
  const auto provesBrief = [this](const test::HandlerBody& body) {
    handlers.run = body;
    for (int i = 0; i < DeferredInserts::kProof; ++i) {
      const std::size_t before = events.all().size();
      give("job" + std::to_string(storage.faults.calls()));
      EXPECT_TRUE(events.has(before + 1));
    }
    return inserts.mayDefer("ep");
  };
  EXPECT_TRUE(provesBrief([](std::string_view, JobContext&) { return std::string("1"); }));
  EXPECT_FALSE(provesBrief([this](std::string_view, JobContext&) {
    storage.clock.advance(DeferredInserts::kLatest);
    return std::string("1");
  }));
  EXPECT_TRUE(provesBrief([](std::string_view, JobContext&) { return std::string("1"); }));
  EXPECT_FALSE(provesBrief([](std::string_view, JobContext& context) { return "\"" + context.id() + "\""; }));
}

TEST_F(DeferredRunTest, ARefusedJobFreesTheWorkerAndWakesTheCaller) {
  storage.faults.failNext("jobs.insertBegun");
  CompletionNotifier::Waiter waiter(watch, {"ep", "a"});
  run("a");
  ASSERT_TRUE(events.has(2));
  test::HeldCaller caller;
  EXPECT_TRUE(caller.awaitEvent(waiter, storage.clock.now() + Millis(60'000)));
  EXPECT_TRUE(isAbsent("a"));
  EXPECT_THAT(storage.log.lines(), Contains(HasSubstr("job.unstored")));
}

TEST_F(DeferredRunTest, AHandlerReadsNoIdOfARefusedJob) {
  storage.faults.failNext("jobs.insertBegun");
  std::atomic<bool> hasId = false;
  handlers.run = [&hasId](std::string_view, JobContext& context) {
    context.log(LogLevel::information, "dropped");
    (void)context.id();
    hasId = true;
    return std::string("1");
  };
  run("a");
  ASSERT_TRUE(events.has(2));
  EXPECT_FALSE(hasId);
  EXPECT_TRUE(isAbsent("a"));
}

TEST_F(DeferredRunTest, AJobStoppedBeforeTheBeginningIsAbsent) {
  const RunningJobs::Claiming claiming(running);
  running.stop({"a", 1});
  CompletionNotifier::Waiter waiter(watch, {"ep", "a"});
  const auto insert = run("a");
  ASSERT_TRUE(events.has(2));
  EXPECT_EQ(insert->state(), InsertState::discarded);
  test::HeldCaller caller;
  EXPECT_TRUE(caller.awaitEvent(waiter, storage.clock.now() + Millis(60'000)))
      << "the caller is woken and finds no job";
  EXPECT_TRUE(isAbsent("a"));
}

TEST_F(DeferredRunTest, AnOutcomeBehindTheDeadlineIsATimeout) {
  handlers.run = [this](std::string_view, JobContext&) {
    storage.clock.advance(Millis(600'000));
    return std::string("1");
  };
  run("a", Millis(600'000));
  ASSERT_TRUE(events.has(2));
  EXPECT_EQ(find("a").state, JobState::timedOut);
}

// The lease keeper asks the storage about the running jobs, and stops the jobs missing in the storage.
TEST_F(DeferredRunTest, AnUnstoredJobIsNoRunningJobOfTheStorage) {
  std::promise<void> begun;
  std::promise<void> goesOn;
  handlers.run = [&](std::string_view, JobContext&) {
    begun.set_value();
    EXPECT_EQ(goesOn.get_future().wait_for(kSoon), std::future_status::ready);
    return std::string("1");
  };
  const auto insert = run("a");
  ASSERT_EQ(begun.get_future().wait_for(kSoon), std::future_status::ready);
  EXPECT_THAT(running.leases(), IsEmpty());
  insert->store();
  EXPECT_EQ(running.leases().size(), 1U);
  goesOn.set_value();
  ASSERT_TRUE(events.has(2));
  EXPECT_EQ(find("a").state, JobState::completed);
}

TEST_F(DeferredRunTest, AShutdownPutsARunningJobIntoTheQueue) {
  std::promise<void> begun;
  handlers.run = [&](std::string_view, JobContext& context) {
    begun.set_value();
    EXPECT_TRUE(holdsSoon([&] { return context.stopToken().stop_requested(); }));
    return std::string("1");
  };
  inserts.watch(run("a"));
  ASSERT_EQ(begun.get_future().wait_for(kSoon), std::future_status::ready);
  EXPECT_EQ(executor.stop(Millis(0)), 0U);
  EXPECT_EQ(find("a").state, JobState::inQueue);
  EXPECT_EQ(find("a").losses, 0U);
}

}  // namespace
}  // namespace jobq
