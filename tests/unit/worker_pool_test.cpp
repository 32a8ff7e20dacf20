// Tests of the workers of one endpoint on the way to a new release (core/workers/pool/worker_pool.h), without threads
// and clocks.
#include "core/workers/pool/worker_pool.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

namespace jobq {
namespace {

using testing::ElementsAre;
using testing::IsEmpty;

class WorkerPoolTest : public testing::Test {
 protected:
  static EndpointPtr endpoint(ReleasePtr release, std::uint32_t max = 3) {
    auto endpoint = std::make_shared<Endpoint>();
    endpoint->spec.id = "ep";
    endpoint->release = std::move(release);
    endpoint->spec.workersMax = max;
    endpoint->spec.maxStuck = max;
    return endpoint;
  }

  static WorkerPool::Step why(bool replaces, bool surge) {
    WorkerPool::Step step;
    step.replaces = replaces;
    step.surge = surge;
    return step;
  }
  void startWorker(const WorkerId& id, bool replaces = false, bool surge = false) {
    EXPECT_EQ(pool_.addWorker(id, why(replaces, surge), now_), pool_.target());
  }
  bool ready(const WorkerId& id) { return pool_.recordReady(id, now_); }
  void join(const WorkerId& id) {
    startWorker(id);
    EXPECT_TRUE(ready(id));
  }
  static LeaseRef jobOf(const WorkerId& id) { return {id + "'s job", 1}; }
  void busy(const WorkerId& id) {
    const std::vector<WorkerId> reserved = pool_.workers().reserve(100);
    ClaimedJob job;
    job.lease = jobOf(id);
    job.worker = id;
    pool_.workers().assignJob(job);
    pool_.workers().releaseReserved(reserved);
    EXPECT_THAT(pool_.workers().collectRefusals(), IsEmpty());
  }
  void stuck(const WorkerId& id) {
    EXPECT_TRUE(pool_.workers().beginStopGrace(jobOf(id), now_));
    EXPECT_EQ(pool_.workers().markStuck("ep", now_).size(), 1U);
  }
  bool drains(const WorkerId& id) const { return pool_.workers().all().at(id).drainAfterJob; }
  bool gone(const WorkerId& id) { return pool_.recordGone(id, {}, now_); }
  bool gone(const WorkerId& id, const std::string& reason) { return pool_.recordGone(id, WorkerFailure{reason}, now_); }
  std::size_t outdated() const {
    std::size_t old = 0;
    for (const auto& [id, info] : pool_.workers().all()) old += info.release != pool_.endpoint()->release ? 1 : 0;
    return old;
  }

  const ReleasePtr first_ = std::make_shared<Release>();
  const ReleasePtr second_ = std::make_shared<Release>();
  const ReleasePtr third_ = std::make_shared<Release>();
  Instant now_{};
  WorkerPool pool_{endpoint(first_)};
};

// A worker that ends a job between a release and the next pass of the dispatcher would run the next job with the old
// image, although the worker is due to leave.
TEST_F(WorkerPoolTest, AnOldWorkerGoesOnOnlyDuringTheDrainOfASecondWorker) {
  join("a");
  busy("a");
  join("b");
  busy("b");
  EXPECT_TRUE(mayGoOn(pool_, "a"));
  EXPECT_FALSE(mayGoOn(pool_, "unknown"));
  pool_.change(endpoint(second_, 2));
  EXPECT_FALSE(mayGoOn(pool_, "a"));
  EXPECT_FALSE(mayGoOn(pool_, "b"));
  (void)pool_.nextStep(now_);
  ASSERT_TRUE(drains("a"));
  EXPECT_FALSE(mayGoOn(pool_, "a"));
  EXPECT_TRUE(mayGoOn(pool_, "b"));
}

TEST_F(WorkerPoolTest, WithoutAReleaseWorkersStay) {
  join("a");
  busy("a");
  join("b");
  const WorkerPool::Step step = pool_.nextStep(now_);
  EXPECT_THAT(step.stoppedWorkers, IsEmpty());
  EXPECT_FALSE(step.startWorker);
  EXPECT_FALSE(pool_.isRolling());
}

TEST_F(WorkerPoolTest, WithRoomTheFirstNewWorkerComesBeforeAnOldWorkerGoes) {
  join("a");
  join("b");
  pool_.change(endpoint(second_));
  EXPECT_TRUE(pool_.isRolling());
  WorkerPool::Step step = pool_.nextStep(now_);
  EXPECT_TRUE(step.startWorker);
  EXPECT_FALSE(step.replaces);
  EXPECT_THAT(step.stoppedWorkers, IsEmpty());
  startWorker("c");
  step = pool_.nextStep(now_);
  EXPECT_FALSE(step.startWorker) << "the new workers start in turn";
  EXPECT_THAT(step.stoppedWorkers, IsEmpty());
  EXPECT_TRUE(ready("c"));
  EXPECT_THAT(pool_.nextStep(now_).stoppedWorkers, ElementsAre("a"));
}

TEST_F(WorkerPoolTest, AFullPoolGivesUpASingleWorkerAtATime) {
  for (const char* id : {"a", "b", "c"}) join(id);
  pool_.change(endpoint(second_));
  WorkerPool::Step step = pool_.nextStep(now_);
  EXPECT_THAT(step.stoppedWorkers, ElementsAre("a"));
  EXPECT_TRUE(step.startWorker && step.replaces);
  startWorker("d", true);
  EXPECT_THAT(pool_.nextStep(now_).stoppedWorkers, IsEmpty()) << "the next old worker waits for the replacement";
  EXPECT_TRUE(ready("d"));
  EXPECT_THAT(pool_.nextStep(now_).stoppedWorkers, ElementsAre("b"));
}

TEST_F(WorkerPoolTest, ABusyWorkerLeavesAfterTheJob) {
  for (const char* id : {"a", "b", "c"}) {
    join(id);
    busy(id);
  }
  pool_.change(endpoint(second_));
  WorkerPool::Step step = pool_.nextStep(now_);
  EXPECT_THAT(step.stoppedWorkers, IsEmpty());
  EXPECT_THAT(step.stopped, IsEmpty()) << "a release stops no job";
  EXPECT_TRUE(drains("a"));
  (void)pool_.nextStep(now_);
  EXPECT_FALSE(drains("b")) << "the pool lacks a single worker at most";
  EXPECT_TRUE(ready("b")) << "a worker without an order to leave goes on";
  EXPECT_FALSE(ready("a"));
  step = pool_.nextStep(now_);
  EXPECT_TRUE(step.startWorker && step.replaces);
}

TEST_F(WorkerPoolTest, AllWorkersHaveTheReleaseInTheEnd) {
  for (const char* id : {"a", "b", "c"}) join(id);
  busy("b");
  pool_.change(endpoint(second_));
  int started = 0;
  for (int i = 0; pool_.isRolling() && i < 50; ++i) {
    const WorkerPool::Step step = pool_.nextStep(now_);
    for (const WorkerId& id : step.stoppedWorkers) gone(id);
    if (step.startWorker) {
      const WorkerId id = "n" + std::to_string(++started);
      startWorker(id, step.replaces);
      EXPECT_TRUE(ready(id));
    }
    EXPECT_GE(pool_.slots(), 2U);
    EXPECT_LE(pool_.slots(), 3U);
    if (pool_.workers().all().contains("b") && drains("b")) {
      EXPECT_FALSE(ready("b"));
      gone("b");
    }
  }
  EXPECT_EQ(outdated(), 0U);
  EXPECT_EQ(pool_.slots(), 3U);
}

TEST_F(WorkerPoolTest, AFailedReleaseHalts) {
  join("a");
  pool_.change(endpoint(second_));
  EXPECT_TRUE(pool_.nextStep(now_).startWorker);
  startWorker("b");
  EXPECT_TRUE(gone("b", "no such thing"));
  EXPECT_TRUE(pool_.view().halted);
  EXPECT_EQ(pool_.view().fault, "no such thing");
  EXPECT_FALSE(pool_.isRolling());
  EXPECT_EQ(pool_.target(), first_) << "old and new workers run the old release";
  EXPECT_EQ(pool_.status(now_).counts.throttled, 0U) << "no new worker waits for the end of an old worker";
  EXPECT_TRUE(pool_.beginScaling(now_));
}

TEST_F(WorkerPoolTest, AFailureWithoutAReasonIsAFailure) {
  startWorker("a");
  EXPECT_FALSE(gone("a", ""));
  EXPECT_EQ(pool_.nextTaskAt(now_), now_ + Millis(1'000)) << "the next worker starts after the backoff";
  join("b");
  pool_.change(endpoint(second_));
  (void)pool_.nextStep(now_);
  startWorker("c");
  EXPECT_TRUE(gone("c", "")) << "the release is halted";
}

TEST_F(WorkerPoolTest, TheSlotEmptiedByAHaltedReleaseIsFilledAgain) {
  pool_ = WorkerPool{endpoint(first_, 1)};
  join("a");
  pool_.change(endpoint(second_, 1));
  const WorkerPool::Step step = pool_.nextStep(now_);
  EXPECT_THAT(step.stoppedWorkers, ElementsAre("a"));
  gone("a");
  startWorker("b", step.replaces);
  gone("b", "broken");
  EXPECT_TRUE(pool_.view().halted);
  const WorkerPool::Step again = pool_.nextStep(now_);
  EXPECT_TRUE(again.startWorker);
  EXPECT_EQ(pool_.target(), first_);
}

TEST_F(WorkerPoolTest, TheNextReleaseEndsTheHalt) {
  join("a");
  pool_.change(endpoint(second_));
  (void)pool_.nextStep(now_);
  startWorker("b");
  gone("b", "broken");
  pool_.change(endpoint(third_));
  EXPECT_FALSE(pool_.view().halted);
  EXPECT_EQ(pool_.view().fault, std::nullopt);
  EXPECT_EQ(pool_.target(), third_);
  EXPECT_TRUE(pool_.isRolling());
}

TEST_F(WorkerPoolTest, AChangeOfTheRulesIsNoRelease) {
  join("a");
  pool_.change(endpoint(second_));
  (void)pool_.nextStep(now_);
  startWorker("b");
  gone("b", "broken");
  pool_.change(endpoint(second_, 7));
  EXPECT_TRUE(pool_.view().halted) << "the same release does not start either";
}

TEST_F(WorkerPoolTest, TheFirstReleaseEverIsTriedAgainAfterAWhile) {
  startWorker("a");
  gone("a", "not yet");
  EXPECT_FALSE(pool_.view().halted);
  EXPECT_EQ(pool_.nextTaskAt(now_), now_ + Millis(1'000));
  startWorker("b");
  gone("b", "not yet");
  EXPECT_EQ(pool_.nextTaskAt(now_), now_ + Millis(2'000));
  EXPECT_FALSE(pool_.beginScaling(now_ + Millis(1'999)));
  EXPECT_TRUE(pool_.beginScaling(now_ + Millis(2'000)));
  join("c");
  EXPECT_EQ(pool_.view().fault, std::nullopt);
  startWorker("d");
  now_ += Millis(60'000);
  gone("d", "not yet");
  EXPECT_FALSE(pool_.beginScaling(now_ + Millis(999)));
  EXPECT_TRUE(pool_.beginScaling(now_ + Millis(1'000))) << "a ready worker has ended the backoff";
}

TEST_F(WorkerPoolTest, AFailedReplacementIsTriedAgainAfterTheBackoff) {
  pool_ = WorkerPool{endpoint(first_, 1)};
  join("a");
  pool_.change(endpoint(second_, 1));
  EXPECT_THAT(pool_.nextStep(now_).stoppedWorkers, ElementsAre("a"));
  gone("a");
  startWorker("b", true);
  EXPECT_TRUE(gone("b", "broken")) << "the release is halted, and the slot is empty";
  for (const Millis pause : {Millis(1'000), Millis(2'000), Millis(4'000)}) {
    const WorkerPool::Step step = pool_.nextStep(now_);
    ASSERT_TRUE(step.startWorker && step.replaces);
    startWorker("c", true);
    EXPECT_FALSE(gone("c", "no thread"));
    EXPECT_FALSE(pool_.nextStep(now_).startWorker) << "a loop without a pause would take the dispatcher's thread";
    EXPECT_TRUE(pool_.isRolling());
    EXPECT_EQ(pool_.nextTaskAt(now_), now_ + pause);
    now_ += pause;
  }
}

TEST_F(WorkerPoolTest, AHealthyWorkerStaysAfterAFailedStartOfTheReplacement) {
  for (const char* id : {"a", "b"}) join(id);
  busy("b");
  pool_.change(endpoint(second_));
  const WorkerPool::Step surge = pool_.nextStep(now_);
  startWorker("c", surge.replaces, surge.surge);
  EXPECT_TRUE(ready("c")) << "the release is proven";
  pool_.change(endpoint(first_));
  startWorker("d");
  EXPECT_TRUE(gone("d", "no thread")) << "the pool halts, because a different release is proven";
  startWorker("e");
  EXPECT_FALSE(gone("e", "no thread"));
  const WorkerPool::Step step = pool_.nextStep(now_);
  EXPECT_THAT(step.stoppedWorkers, IsEmpty());
  EXPECT_FALSE(step.startWorker);
}

TEST_F(WorkerPoolTest, TwoReleasesInARowLeadToTheLast) {
  for (const char* id : {"a", "b"}) join(id);
  pool_.change(endpoint(second_));
  (void)pool_.nextStep(now_);
  startWorker("c");
  pool_.change(endpoint(third_));
  EXPECT_TRUE(ready("c"));
  int started = 0;
  for (int i = 0; pool_.isRolling() && i < 50; ++i) {
    const WorkerPool::Step step = pool_.nextStep(now_);
    for (const WorkerId& id : step.stoppedWorkers) gone(id);
    if (!step.startWorker) continue;
    const WorkerId id = "n" + std::to_string(++started);
    startWorker(id, step.replaces);
    EXPECT_TRUE(ready(id));
  }
  EXPECT_EQ(outdated(), 0U);
}

TEST_F(WorkerPoolTest, AReleaseLeavesTheNumberOfWorkersUnchanged) {
  join("a");
  for (const ReleasePtr& release : {second_, third_}) {
    pool_.change(endpoint(release));
    int started = 0;
    for (int i = 0; pool_.isRolling() && i < 50; ++i) {
      const WorkerPool::Step step = pool_.nextStep(now_);
      for (const WorkerId& id : step.stoppedWorkers) gone(id);
      if (!step.startWorker) continue;
      const WorkerId id = (release == second_ ? "s" : "t") + std::to_string(++started);
      startWorker(id, step.replaces, step.surge);
      EXPECT_TRUE(ready(id));
    }
    EXPECT_EQ(outdated(), 0U);
    EXPECT_EQ(pool_.slots(), 1U);
  }
}

TEST_F(WorkerPoolTest, AWorkerOverALoweredMaximumLeavesWhenFree) {
  join("a");
  join("b");
  busy("a");
  busy("b");
  auto less = std::make_shared<Endpoint>(*pool_.endpoint());
  less->spec.workersMax = 1;
  pool_.change(less);
  EXPECT_FALSE(ready("a"));
  EXPECT_TRUE(ready("b"));
  EXPECT_FALSE(pool_.isRolling()) << "no replacement is missing";
}

TEST_F(WorkerPoolTest, AStuckHandlerStopsNoRelease) {
  for (const char* id : {"a", "b", "c"}) {
    join(id);
    busy(id);
  }
  pool_.change(endpoint(second_));
  (void)pool_.nextStep(now_);
  ASSERT_TRUE(drains("a"));
  stuck("a");
  const WorkerPool::Step step = pool_.nextStep(now_);
  EXPECT_TRUE(step.startWorker || drains("b")) << "the next old worker has a turn";
}

TEST_F(WorkerPoolTest, AnUnusableEndpointLosesTheWorkersAfterTheJobs) {
  join("a");
  join("b");
  busy("b");
  pool_.change(endpoint(nullptr));
  const WorkerPool::Step step = pool_.nextStep(now_);
  EXPECT_THAT(step.stoppedWorkers, ElementsAre("a"));
  EXPECT_THAT(step.stopped, IsEmpty());
  EXPECT_FALSE(ready("b"));
  EXPECT_FALSE(pool_.isRolling()) << "no replacement is missing";
}

TEST_F(WorkerPoolTest, ARemovedEndpointStopsTheJobs) {
  join("a");
  join("b");
  busy("b");
  pool_.setRetiring(true);
  const WorkerPool::Step step = pool_.nextStep(now_);
  EXPECT_THAT(step.stoppedWorkers, ElementsAre("a"));
  EXPECT_THAT(step.stopped, ElementsAre(jobOf("b")));
  EXPECT_FALSE(ready("b"));
}

TEST_F(WorkerPoolTest, ANewEndpointWithTheIdOfARemovedOneHasWorkersAgain) {
  join("a");
  pool_.setRetiring(true);
  EXPECT_THAT(pool_.nextStep(now_).stoppedWorkers, ElementsAre("a"));
  pool_.setRetiring(false);
  EXPECT_FALSE(pool_.isRetiring());
  EXPECT_NE(pool_.target(), nullptr);
}

TEST_F(WorkerPoolTest, AReturningStuckWorkerLeavesIfTheSlotIsTaken) {
  pool_ = WorkerPool{endpoint(first_, 1)};
  join("a");
  busy("a");
  stuck("a");
  join("b");
  EXPECT_EQ(pool_.slots(), 1U);
  EXPECT_FALSE(ready("a"));
}

}  // namespace
}  // namespace jobq
