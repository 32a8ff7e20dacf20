// Tests of stopping worker threads: one job, and all jobs (core/workers/thread_executor.h).
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <filesystem>
#include <future>

#include "core/workers/thread_executor.h"
#include "executor_fixture.h"

namespace jobq {
namespace {

using test::holdsSoon;
using test::kSoon;
using testing::Contains;
using testing::ElementsAre;
using testing::HasSubstr;
using testing::IsEmpty;

class ThreadExecutorStop : public testing::Test, protected test::ExecutorFixture {};

TEST_F(ThreadExecutorStop, AStopFiresOnlyTheTokenOfTheAttempt) {
  std::promise<void> begun;
  handlers.run = [&begun](std::string_view, JobContext& context) {
    begun.set_value();
    EXPECT_TRUE(holdsSoon([&] { return context.stopToken().stop_requested(); }));
    return std::string("1");
  };
  startWorker();
  ASSERT_TRUE(events.has(1));
  const LeaseRef lease = give("a");
  ASSERT_EQ(begun.get_future().wait_for(kSoon), std::future_status::ready);
  running.stop({"a", lease.attempt + 1});
  running.stop({"other", lease.attempt});
  EXPECT_THAT(events.all(), ElementsAre("ready ep w"));
  running.stop(lease);
  ASSERT_TRUE(events.has(2));
}

TEST_F(ThreadExecutorStop, AJobStoppedBeforeTheBeginningDoesNotRun) {
  std::atomic<int> runs = 0;
  handlers.run = [&runs](std::string_view, JobContext&) {
    ++runs;
    return std::string("1");
  };
  startWorker();
  ASSERT_TRUE(events.has(1));
  {
    const RunningJobs::Claiming claiming(running);
    storage.insert("a");
    ClaimedJob job = storage.claim();
    (void)storage.real->jobs().cancel({"ep", "a"});
    running.stop(job.lease);
    giveClaimed(std::move(job));
  }
  ASSERT_TRUE(events.has(2)) << "the worker is free again";
  EXPECT_EQ(runs, 0);
  EXPECT_EQ(find("a").state, JobState::cancelled);
}

TEST_F(ThreadExecutorStop, AStopWaitsForJobsEndingInTime) {
  std::promise<void> begun;
  std::promise<void> released;
  handlers.run = [&](std::string_view, JobContext&) {
    begun.set_value();
    EXPECT_EQ(released.get_future().wait_for(kSoon), std::future_status::ready);
    return std::string("1");
  };
  startWorker();
  ASSERT_TRUE(events.has(1));
  give("a");
  ASSERT_EQ(begun.get_future().wait_for(kSoon), std::future_status::ready);
  auto stopping = std::async(std::launch::async, [this] { return executor.stop(Millis(30'000)); });
  storage.clock.awaitWaiter(Millis(30'000), Millis(30'000));
  released.set_value();
  ASSERT_EQ(stopping.wait_for(kSoon), std::future_status::ready) << "the stop did not end";
  EXPECT_EQ(stopping.get(), 0U);
  EXPECT_EQ(find("a").state, JobState::completed);
  EXPECT_THAT(events.all(), ElementsAre("ready ep w", "ready ep w", "gone w"));
}

TEST_F(ThreadExecutorStop, ALateJobGoesBackUnharmed) {
  std::promise<void> begun;
  handlers.run = [&begun](std::string_view, JobContext& context) {
    begun.set_value();
    EXPECT_TRUE(holdsSoon([&] { return context.stopToken().stop_requested(); }));
    return std::string("\"the work of a handler that was stopped\"");
  };
  startWorker();
  ASSERT_TRUE(events.has(1));
  give("a");
  ASSERT_EQ(begun.get_future().wait_for(kSoon), std::future_status::ready);
  EXPECT_EQ(executor.stop(Millis(0)), 0U);
  const Job job = find("a");
  EXPECT_EQ(job.state, JobState::inQueue);
  EXPECT_EQ(job.losses, 0U) << "a drain counts as no loss";
  EXPECT_EQ(job.retries, 0U);
  EXPECT_EQ(job.output, "");
}

// Another node may run the job as soon as the job is back in the queue.
TEST_F(ThreadExecutorStop, AJobGoesBackAtTheEndOfTheHandler) {
  std::promise<void> begun;
  std::promise<void> stopped;
  handlers.run = [&](std::string_view, JobContext& context) {
    begun.set_value();
    EXPECT_TRUE(holdsSoon([&] { return context.stopToken().stop_requested(); }));
    stopped.set_value();
    storage.clock.awaitWaiter(Millis(0), Millis(5'000));  // the stop waits for this handler
    EXPECT_EQ(find("a").state, JobState::inProgress) << "the handler still runs";
    return std::string("1");
  };
  startWorker();
  ASSERT_TRUE(events.has(1));
  give("a");
  ASSERT_EQ(begun.get_future().wait_for(kSoon), std::future_status::ready);
  EXPECT_EQ(executor.stop(Millis(0)), 0U);
  EXPECT_EQ(stopped.get_future().wait_for(Millis(0)), std::future_status::ready);
  EXPECT_EQ(find("a").state, JobState::inQueue);
}

TEST_F(ThreadExecutorStop, ARunningHandlerKeepsNoOtherJobBack) {
  std::promise<void> released;
  auto mayEnd = released.get_future().share();
  std::atomic<int> begun = 0;
  handlers.run = [&](std::string_view, JobContext& context) {
    ++begun;
    EXPECT_TRUE(holdsSoon([&] { return context.stopToken().stop_requested(); }));
    if (context.id() == "slow") {
      EXPECT_EQ(mayEnd.wait_for(kSoon), std::future_status::ready);
    }
    return std::string("1");
  };
  startWorker("v");
  startWorker("w");
  ASSERT_TRUE(events.has(2));
  give("slow", "v");
  give("quick", "w");
  ASSERT_TRUE(holdsSoon([&] { return begun == 2; }));
  auto stopping = std::async(std::launch::async, [this] { return executor.stop(Millis(0)); });
  EXPECT_TRUE(holdsSoon([&] { return find("quick").state == JobState::inQueue; }));
  EXPECT_EQ(find("slow").state, JobState::inProgress);
  released.set_value();
  EXPECT_EQ(stopping.get(), 0U);
  EXPECT_EQ(find("slow").state, JobState::inQueue);
}

TEST_F(ThreadExecutorStop, AStopWithoutWorkersReturnsAtOnce) {
  EXPECT_EQ(executor.stop(Millis(1'000)), 0U);
  EXPECT_EQ(executor.stop(Millis(1'000)), 0U);
  EXPECT_THAT(events.all(), IsEmpty());
}

// The abandoned thread stays in its handler until the process ends. All objects within reach of the thread stay alive
// too.
struct AbandonedFixture : test::ExecutorFixture {
  std::promise<void> begun;
  std::promise<void> never;
};

TEST(ThreadExecutorAbandon, AHandlerIgnoringTheStopIsAbandonedAndTheJobGoesBack) {
  static auto& kept = *new std::vector<AbandonedFixture*>;
  AbandonedFixture& world = *kept.emplace_back(new AbandonedFixture);
  auto impatient = std::make_shared<Endpoint>(*world.endpoint);
  impatient->spec.stopGrace = Millis(0);
  world.endpoint = impatient;
  world.handlers.run = [&world](std::string_view, JobContext&) {
    world.begun.set_value();
    world.never.get_future().wait();
    return std::string("1");
  };
  world.startWorker();
  ASSERT_TRUE(world.events.has(1));
  world.give("a");
  ASSERT_EQ(world.begun.get_future().wait_for(kSoon), std::future_status::ready);
  EXPECT_EQ(world.executor.stop(Millis(0)), 1U);
  EXPECT_EQ(world.find("a").state, JobState::inQueue);
  EXPECT_THAT(world.storage.log.lines(), Contains(HasSubstr("worker.stuck: worker w of ep")));
  std::filesystem::remove_all(world.folder.path());  // no destructor does it
}

}  // namespace
}  // namespace jobq
