// Tests of the rules for launched workers (core/workers/launched/launch_pool.h).
#include "core/workers/launched/launch_pool.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <memory>
#include <optional>
#include <string>
#include <vector>

namespace jobq {
namespace {

using testing::ElementsAre;
using testing::HasSubstr;
using testing::IsEmpty;

constexpr Millis kSecond{1'000};

class LaunchPoolTest : public testing::Test {
 protected:
  LaunchPoolTest() {
    endpoint_->spec.id = "ep";
    endpoint_->spec.workersMin = 0;
    endpoint_->spec.workersMax = 4;
    endpoint_->spec.idleTimeout = Millis(5'000);
    endpoint_->spec.stopGrace = Millis(3'000);
    endpoint_->spec.scaling = {ScalerType::requestCount, 1};
    situation_.endpoint = endpoint_;
    situation_.release = std::make_shared<Release>();
  }

  LaunchPool::Step decide() { return pool_.decide(situation_, now_); }
  /// Adds a worker, and lets it ask for jobs.
  void addWorker(const WorkerId& worker, std::size_t jobs = 0) {
    (void)pool_.addWorker(worker, situation_.release, now_);
    connect(worker, jobs);
  }
  void connect(const WorkerId& worker, std::size_t jobs = 0) {
    RemoteLoad& load = situation_.loads[worker];
    load.hasPolled = load.isConnected = true;
    load.jobs = jobs;
    load.isNormal = jobs > 0;
    if (jobs > 0) load.lastJobAt = now_;
  }
  void queueJobs(std::uint64_t jobs) { situation_.jobs.inQueue = jobs; }
  bool recordExit(const WorkerId& worker, bool isFailure, const std::string& reason = "it ended") {
    const bool hasFailed = pool_.recordExit({worker, isFailure, reason}, situation_.loads, now_);
    situation_.loads.erase(worker);
    return hasFailed;
  }

  std::shared_ptr<Endpoint> endpoint_ = std::make_shared<Endpoint>();
  LaunchSituation situation_;
  LaunchPool pool_;
  Instant now_{Millis(1'000'000)};
};

TEST(LaunchedStateTest, EachStateAndEventHasTheStateOfTheTable) {
  using enum LaunchedState;
  constexpr auto no = std::nullopt;
  // One row for each state; the columns are retire, retireStuck and stop.
  const std::optional<LaunchedState> table[4][3] = {
      {retired, stuck, no},  // serving
      {no, no, stopped},     // retired
      {no, no, stopped},     // stuck
      {no, no, no},          // stopped
  };
  for (int state = 0; state < 4; ++state) {
    for (int event = 0; event < 3; ++event) {
      EXPECT_EQ(nextState(kLaunchedTransitions, LaunchedState(state), LaunchedEvent(event)), table[state][event])
          << "event " << event << " in state " << state;
    }
  }
}

TEST_F(LaunchPoolTest, WorkersStartForTheJobsUpToWorkersMax) {
  EXPECT_EQ(decide().starts, 0U);
  queueJobs(2);
  EXPECT_EQ(decide().starts, 2U);
  queueJobs(100);
  EXPECT_EQ(decide().starts, 4U);
}

TEST_F(LaunchPoolTest, AStartingWorkerCountsForTheJobs) {
  queueJobs(2);
  for (const char* worker : {"a", "b"}) (void)pool_.addWorker(worker, situation_.release, now_);
  EXPECT_EQ(decide().starts, 0U);
  connect("a");
  EXPECT_EQ(decide().starts, 0U);
  connect("a", 1);
  queueJobs(2);
  EXPECT_EQ(decide().starts, 1U) << "a job runs, a worker starts, and two jobs wait";
}

TEST_F(LaunchPoolTest, AWorkerStartedFromOutsideCounts) {
  connect("elsewhere");
  queueJobs(1);
  EXPECT_EQ(decide().starts, 0U);
  queueJobs(100);
  EXPECT_EQ(decide().starts, 3U);
}

// The worker takes no job now, and keeps the place among workersMax because the worker may come back.
TEST_F(LaunchPoolTest, AWorkerWithoutAConnectionServesNoJob) {
  connect("elsewhere");
  situation_.loads["elsewhere"].hasNoConnection = true;
  queueJobs(1);
  EXPECT_EQ(decide().starts, 1U);
  endpoint_->spec.workersMax = 1;
  EXPECT_EQ(decide().starts, 0U);
  endpoint_->spec.workersMax = 4;
  connect("elsewhere", 1);
  EXPECT_EQ(decide().starts, 1U) << "the job of the lost connection still runs";
}

TEST_F(LaunchPoolTest, APausedEndpointStartsNoWorker) {
  endpoint_->spec.paused = true;
  queueJobs(3);
  EXPECT_EQ(decide().starts, 0U);
}

TEST_F(LaunchPoolTest, LowPriorityJobsStartNoWorker) {
  queueJobs(3);
  situation_.jobs.inQueueLow = 3;
  EXPECT_EQ(decide().starts, 0U);
}

TEST_F(LaunchPoolTest, WorkersMinIsKept) {
  endpoint_->spec.workersMin = 2;
  EXPECT_EQ(decide().starts, 2U);
  addWorker("a");
  addWorker("b");
  now_ += 10 * kSecond;
  const LaunchPool::Step step = decide();
  EXPECT_EQ(step.starts, 0U);
  EXPECT_THAT(step.retired, IsEmpty());
}

TEST_F(LaunchPoolTest, AnIdleWorkerLeavesAfterTheIdleTime) {
  addWorker("a");
  now_ += Millis(4'999);
  EXPECT_THAT(decide().retired, IsEmpty());
  now_ += Millis(1);
  EXPECT_THAT(decide().retired, ElementsAre("a"));
  EXPECT_THAT(decide().stopped, ElementsAre("a")) << "a retired worker gets no further job";
  EXPECT_THAT(decide().stopped, IsEmpty()) << "once";
  EXPECT_FALSE(recordExit("a", true)) << "a requested end is not a failure";
  EXPECT_THAT(pool_.all(), IsEmpty());
}

TEST_F(LaunchPoolTest, AJobBetweenTwoStepsEndsTheIdleTime) {
  addWorker("a");
  decide();
  now_ += Millis(4'000);
  situation_.loads["a"].lastJobAt = now_;
  now_ += Millis(4'000);
  EXPECT_THAT(decide().retired, IsEmpty());
  now_ += Millis(1'000);
  EXPECT_THAT(decide().retired, ElementsAre("a"));
}

TEST_F(LaunchPoolTest, TheEndOfALongJobEndsTheIdleTime) {
  addWorker("a", 1);
  now_ += 60 * kSecond;
  EXPECT_THAT(decide().retired, IsEmpty());
  connect("a", 0);
  now_ += Millis(4'999);
  EXPECT_THAT(decide().retired, IsEmpty());
}

TEST_F(LaunchPoolTest, AnIdleWorkerStaysWhileJobsWait) {
  addWorker("a");
  queueJobs(1);
  now_ += 10 * kSecond;
  EXPECT_THAT(decide().retired, IsEmpty());
}

TEST_F(LaunchPoolTest, ALoweredWorkersMaxEndsWorkersAtOnce) {
  addWorker("a", 1);
  addWorker("b");
  addWorker("c");
  endpoint_->spec.workersMax = 1;
  EXPECT_THAT(decide().retired, ElementsAre("b", "c"));
  endpoint_->spec.workersMax = 0;
  EXPECT_THAT(decide().retired, IsEmpty()) << "a job runs to the end";
  connect("a", 0);
  EXPECT_THAT(decide().retired, ElementsAre("a"));
}

TEST_F(LaunchPoolTest, ARetiredWorkerEndsTheJobsFirst) {
  addWorker("a", 2);
  situation_.loads["a"].isLeaving = true;
  EXPECT_THAT(decide().retired, ElementsAre("a"));
  EXPECT_THAT(decide().stopped, IsEmpty());
  connect("a", 0);
  EXPECT_THAT(decide().stopped, ElementsAre("a"));
}

TEST_F(LaunchPoolTest, AWorkerIgnoringAStopIsReplaced) {
  addWorker("a", 1);
  connect("a", 0);  // its job was cancelled
  queueJobs(1);
  now_ += 60 * kSecond;
  EXPECT_THAT(decide().retired, IsEmpty()) << "a public worker does not confirm a stop";
  situation_.loads["a"].stopIgnored = Millis(3'000);
  EXPECT_THAT(decide().retired, IsEmpty());
  situation_.loads["a"].stopIgnored = Millis(3'001);
  const LaunchPool::Step step = decide();
  EXPECT_THAT(step.retired, ElementsAre("a"));
  EXPECT_EQ(step.starts, 1U);
  EXPECT_THAT(decide().killed, ElementsAre("a")) << "the worker would also ignore a SIGTERM";
}

TEST_F(LaunchPoolTest, AWorkerWithoutAConnectionIsReplaced) {
  addWorker("a");
  addWorker("b");
  decide();
  situation_.loads["a"].isConnected = false;
  situation_.loads.erase("b");
  queueJobs(2);
  const LaunchPool::Step step = decide();
  EXPECT_THAT(step.retired, ElementsAre("a", "b")) << "lost workers would count as starting workers";
  EXPECT_EQ(step.starts, 2U);
}

TEST_F(LaunchPoolTest, AnUnhealthyWorkerLeaves) {
  addWorker("a");
  situation_.loads["a"].isUnhealthy = true;
  EXPECT_THAT(decide().retired, ElementsAre("a"));
}

TEST_F(LaunchPoolTest, FreeGpusBoundTheStarts) {
  queueJobs(3);
  situation_.gpuRoom = 2;
  EXPECT_EQ(decide().starts, 2U);
  EXPECT_TRUE(pool_.lacksGpu());
  situation_.gpuRoom = 3;
  EXPECT_EQ(decide().starts, 3U);
  EXPECT_FALSE(pool_.lacksGpu());
}

TEST_F(LaunchPoolTest, ANewReleaseWithoutAFreeGpuReplacesAWorker) {
  addWorker("a", 1);
  situation_.release = std::make_shared<Release>();
  situation_.gpuRoom = 0;
  const LaunchPool::Step step = decide();
  EXPECT_EQ(step.starts, 0U);
  EXPECT_THAT(step.retired, ElementsAre("a")) << "the new release waits for the GPU of the old worker";
}

TEST_F(LaunchPoolTest, ASlotIsTheLowestFreeNumber) {
  EXPECT_EQ(pool_.addWorker("a", situation_.release, now_), 0U);
  EXPECT_EQ(pool_.addWorker("b", situation_.release, now_), 1U);
  EXPECT_EQ(pool_.addWorker("c", situation_.release, now_), 2U);
  recordExit("b", false);
  EXPECT_EQ(pool_.addWorker("d", situation_.release, now_), 1U);
  EXPECT_EQ(pool_.addWorker("e", situation_.release, now_), 3U);
}

TEST_F(LaunchPoolTest, WithoutAReleaseAllWorkersLeave) {
  addWorker("a");
  addWorker("b", 1);
  situation_.release = nullptr;
  EXPECT_THAT(decide().retired, ElementsAre("a", "b"));
  EXPECT_THAT(decide().stopped, ElementsAre("a"));
}

TEST_F(LaunchPoolTest, AFailedStartDelaysTheNextStart) {
  queueJobs(1);
  for (const int seconds : {1, 2, 4, 8, 16, 30, 30}) {
    ASSERT_EQ(decide().starts, 1U);
    (void)pool_.addWorker("a", situation_.release, now_);
    EXPECT_TRUE(recordExit("a", true, "no such program"));
    EXPECT_EQ(pool_.fault(), "no such program");
    now_ += seconds * kSecond - Millis(1);
    EXPECT_TRUE(pool_.isThrottled(now_));
    EXPECT_EQ(decide().starts, 0U) << seconds;
    now_ += Millis(1);
  }
}

TEST_F(LaunchPoolTest, AnEndWithoutAJobIsAFailure) {
  addWorker("a");
  EXPECT_TRUE(recordExit("a", false));
}

TEST_F(LaunchPoolTest, AnEndAfterAJobIsNotAFailure) {
  addWorker("a", 1);
  connect("a", 0);
  EXPECT_FALSE(recordExit("a", false));
  queueJobs(1);
  EXPECT_EQ(decide().starts, 1U) << "a worker for a single job is replaced at once";
}

TEST_F(LaunchPoolTest, ACrashBehindAJobIsAFailure) {
  addWorker("a", 1);
  EXPECT_TRUE(recordExit("a", true));
}

TEST_F(LaunchPoolTest, ALivingWorkerEndsTheBackoff) {
  (void)pool_.addWorker("a", situation_.release, now_);
  recordExit("a", true);
  now_ += kSecond;
  addWorker("b", 1);
  now_ += 60 * kSecond;
  decide();
  EXPECT_FALSE(pool_.fault().has_value());
  recordExit("b", true);
  now_ += kSecond;
  EXPECT_FALSE(pool_.isThrottled(now_)) << "the first pause is 1 s again";
}

TEST_F(LaunchPoolTest, AMissingWorkerIsGivenUp) {
  (void)pool_.addWorker("a", situation_.release, now_);
  now_ += Millis(599'999);
  EXPECT_THAT(decide().retired, IsEmpty());
  now_ += Millis(1);
  const LaunchPool::Step step = decide();
  EXPECT_THAT(step.retired, ElementsAre("a"));
  EXPECT_THAT(step.givenUp, ElementsAre(HasSubstr("10 minutes")));
  EXPECT_TRUE(pool_.isThrottled(now_));
  EXPECT_THAT(decide().stopped, ElementsAre("a"));
}

TEST_F(LaunchPoolTest, ANewReleaseIsTriedBeforeAWorkerLeaves) {
  endpoint_->spec.workersMin = 2;
  addWorker("a", 1);
  addWorker("b");
  situation_.release = std::make_shared<Release>();
  LaunchPool::Step step = decide();
  EXPECT_EQ(step.starts, 1U);
  EXPECT_THAT(step.retired, IsEmpty());
  (void)pool_.addWorker("c", situation_.release, now_);
  EXPECT_THAT(decide().retired, IsEmpty()) << "the new worker has not connected yet";
  connect("c");
  EXPECT_THAT(decide().retired, ElementsAre("b")) << "the idle worker leaves first";
  EXPECT_THAT(decide().retired, IsEmpty()) << "the workers leave in turn";
  recordExit("b", false);
  EXPECT_THAT(decide().retired, ElementsAre("a"));
}

TEST_F(LaunchPoolTest, AFailedReleaseLeavesTheOldWorkers) {
  endpoint_->spec.workersMin = 1;
  addWorker("a");
  situation_.release = std::make_shared<Release>();
  EXPECT_EQ(decide().starts, 1U);
  (void)pool_.addWorker("b", situation_.release, now_);
  recordExit("b", true, "no such image");
  EXPECT_THAT(decide().retired, IsEmpty());
  now_ += kSecond;
  const LaunchPool::Step step = decide();
  EXPECT_EQ(step.starts, 1U) << "the new release is tried again";
  EXPECT_THAT(step.retired, IsEmpty());
}

TEST_F(LaunchPoolTest, WithoutAFreeSlotAnOldWorkerLeavesFirst) {
  endpoint_->spec.workersMin = endpoint_->spec.workersMax = 1;
  addWorker("a");
  situation_.release = std::make_shared<Release>();
  EXPECT_THAT(decide().retired, ElementsAre("a"));
  EXPECT_EQ(decide().starts, 1U);
}

}  // namespace
}  // namespace jobq
