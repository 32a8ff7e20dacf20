// Tests of the workers of one endpoint on their way to a new release (core/workers/worker_pool.h), without threads and
// clocks.
#include "core/workers/worker_pool.h"

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
    EXPECT_EQ(crew_.addWorker(id, why(replaces, surge), now_), crew_.target());
  }
  bool ready(const WorkerId& id) { return crew_.recordReady(id, now_); }
  void join(const WorkerId& id) {
    startWorker(id);
    EXPECT_TRUE(ready(id));
  }
  static LeaseRef jobOf(const WorkerId& id) { return {id + "'s job", 1}; }
  void busy(const WorkerId& id) {
    const std::vector<WorkerId> reserved = crew_.workers().reserve(100);
    ClaimedJob job;
    job.lease = jobOf(id);
    job.worker = id;
    crew_.workers().assignJob(job);
    crew_.workers().releaseReserved(reserved);
    EXPECT_THAT(crew_.workers().collectRefusals(), IsEmpty());
  }
  void stuck(const WorkerId& id) {
    EXPECT_TRUE(crew_.workers().beginStopGrace(jobOf(id), now_));
    EXPECT_EQ(crew_.workers().markStuck(now_).size(), 1U);
  }
  bool drains(const WorkerId& id) const { return crew_.workers().all().at(id).drainAfterJob; }
  bool gone(const WorkerId& id, const std::string& failure = "") { return crew_.recordGone(id, failure, now_); }
  std::size_t outdated() const {
    std::size_t old = 0;
    for (const auto& [id, info] : crew_.workers().all()) old += info.release != crew_.endpoint()->release ? 1 : 0;
    return old;
  }

  const ReleasePtr first_ = std::make_shared<Release>();
  const ReleasePtr second_ = std::make_shared<Release>();
  const ReleasePtr third_ = std::make_shared<Release>();
  Instant now_{};
  WorkerPool crew_{endpoint(first_)};
};

TEST_F(WorkerPoolTest, NothingHappensWithoutARelease) {
  join("a");
  busy("a");
  join("b");
  const WorkerPool::Step step = crew_.nextStep();
  EXPECT_THAT(step.stoppedWorkers, IsEmpty());
  EXPECT_FALSE(step.startWorker);
  EXPECT_FALSE(crew_.isRolling());
}

TEST_F(WorkerPoolTest, TheFirstOfAReleaseComesBeforeAnybodyGoesIfThereIsRoom) {
  join("a");
  join("b");
  crew_.change(endpoint(second_));
  EXPECT_TRUE(crew_.isRolling());
  WorkerPool::Step step = crew_.nextStep();
  EXPECT_TRUE(step.startWorker);
  EXPECT_FALSE(step.replaces);
  EXPECT_THAT(step.stoppedWorkers, IsEmpty());
  startWorker("c");
  step = crew_.nextStep();
  EXPECT_FALSE(step.startWorker) << "one after the other";
  EXPECT_THAT(step.stoppedWorkers, IsEmpty());
  EXPECT_TRUE(ready("c"));
  EXPECT_THAT(crew_.nextStep().stoppedWorkers, ElementsAre("a"));
}

TEST_F(WorkerPoolTest, AFullCrewGivesUpOneAtATime) {
  for (const char* id : {"a", "b", "c"}) join(id);
  crew_.change(endpoint(second_));
  WorkerPool::Step step = crew_.nextStep();
  EXPECT_THAT(step.stoppedWorkers, ElementsAre("a"));
  EXPECT_TRUE(step.startWorker && step.replaces);
  startWorker("d", true);
  EXPECT_THAT(crew_.nextStep().stoppedWorkers, IsEmpty()) << "until its replacement is at work";
  EXPECT_TRUE(ready("d"));
  EXPECT_THAT(crew_.nextStep().stoppedWorkers, ElementsAre("b"));
}

TEST_F(WorkerPoolTest, WhoIsBusyLeavesAfterItsJob) {
  for (const char* id : {"a", "b", "c"}) {
    join(id);
    busy(id);
  }
  crew_.change(endpoint(second_));
  WorkerPool::Step step = crew_.nextStep();
  EXPECT_THAT(step.stoppedWorkers, IsEmpty());
  EXPECT_THAT(step.stopped, IsEmpty()) << "a release stops no job";
  EXPECT_TRUE(drains("a"));
  (void)crew_.nextStep();
  EXPECT_FALSE(drains("b")) << "one below the running count at most";
  EXPECT_TRUE(ready("b")) << "who is not asked to leave goes on";
  EXPECT_FALSE(ready("a"));
  step = crew_.nextStep();
  EXPECT_TRUE(step.startWorker && step.replaces);
}

TEST_F(WorkerPoolTest, EverybodyHasTheReleaseInTheEnd) {
  for (const char* id : {"a", "b", "c"}) join(id);
  busy("b");
  crew_.change(endpoint(second_));
  int started = 0;
  for (int i = 0; crew_.isRolling() && i < 50; ++i) {
    const WorkerPool::Step step = crew_.nextStep();
    for (const WorkerId& id : step.stoppedWorkers) gone(id);
    if (step.startWorker) {
      const WorkerId id = "n" + std::to_string(++started);
      startWorker(id, step.replaces);
      EXPECT_TRUE(ready(id));
    }
    EXPECT_GE(crew_.slots(), 2U);
    EXPECT_LE(crew_.slots(), 3U);
    if (crew_.workers().all().contains("b") && drains("b")) {
      EXPECT_FALSE(ready("b"));
      gone("b");
    }
  }
  EXPECT_EQ(outdated(), 0U);
  EXPECT_EQ(crew_.slots(), 3U);
}

TEST_F(WorkerPoolTest, AReleaseThatDoesNotStartHalts) {
  join("a");
  crew_.change(endpoint(second_));
  EXPECT_TRUE(crew_.nextStep().startWorker);
  startWorker("b");
  EXPECT_TRUE(gone("b", "no such thing"));
  EXPECT_TRUE(crew_.view().halted);
  EXPECT_EQ(crew_.view().fault, "no such thing");
  EXPECT_FALSE(crew_.isRolling());
  EXPECT_EQ(crew_.target(), first_) << "the old workers keep serving, and new ones run what they run";
  EXPECT_EQ(crew_.status(now_).counts.throttled, 0U) << "nobody has to wait for the old one";
  EXPECT_TRUE(crew_.beginScaling(now_));
}

TEST_F(WorkerPoolTest, TheSlotThatAHaltedReleaseEmptiedIsFilledAgain) {
  crew_ = WorkerPool{endpoint(first_, 1)};
  join("a");
  crew_.change(endpoint(second_, 1));
  const WorkerPool::Step step = crew_.nextStep();
  EXPECT_THAT(step.stoppedWorkers, ElementsAre("a"));
  gone("a");
  startWorker("b", step.replaces);
  gone("b", "broken");
  EXPECT_TRUE(crew_.view().halted);
  const WorkerPool::Step again = crew_.nextStep();
  EXPECT_TRUE(again.startWorker);
  EXPECT_EQ(crew_.target(), first_);
}

TEST_F(WorkerPoolTest, TheNextReleaseEndsTheHalt) {
  join("a");
  crew_.change(endpoint(second_));
  (void)crew_.nextStep();
  startWorker("b");
  gone("b", "broken");
  crew_.change(endpoint(third_));
  EXPECT_FALSE(crew_.view().halted);
  EXPECT_EQ(crew_.view().fault, "");
  EXPECT_EQ(crew_.target(), third_);
  EXPECT_TRUE(crew_.isRolling());
}

TEST_F(WorkerPoolTest, AChangeOfTheRulesIsNoRelease) {
  join("a");
  crew_.change(endpoint(second_));
  (void)crew_.nextStep();
  startWorker("b");
  gone("b", "broken");
  crew_.change(endpoint(second_, 7));
  EXPECT_TRUE(crew_.view().halted) << "the same release does not start either";
}

TEST_F(WorkerPoolTest, TheFirstReleaseEverIsTriedAgainAfterAWhile) {
  startWorker("a");
  gone("a", "not yet");
  EXPECT_FALSE(crew_.view().halted);
  EXPECT_EQ(crew_.nextDuty(now_), now_ + Millis(1'000));
  startWorker("b");
  gone("b", "not yet");
  EXPECT_EQ(crew_.nextDuty(now_), now_ + Millis(2'000));
  EXPECT_FALSE(crew_.beginScaling(now_ + Millis(1'999)));
  EXPECT_TRUE(crew_.beginScaling(now_ + Millis(2'000)));
  join("c");
  EXPECT_EQ(crew_.view().fault, "");
  startWorker("d");
  now_ += Millis(60'000);
  gone("d", "not yet");
  EXPECT_FALSE(crew_.beginScaling(now_ + Millis(999)));
  EXPECT_TRUE(crew_.beginScaling(now_ + Millis(1'000))) << "a worker that was ready has ended the backoff";
}

TEST_F(WorkerPoolTest, TwoReleasesInARowLeadToTheLast) {
  for (const char* id : {"a", "b"}) join(id);
  crew_.change(endpoint(second_));
  (void)crew_.nextStep();
  startWorker("c");
  crew_.change(endpoint(third_));
  EXPECT_TRUE(ready("c"));
  int started = 0;
  for (int i = 0; crew_.isRolling() && i < 50; ++i) {
    const WorkerPool::Step step = crew_.nextStep();
    for (const WorkerId& id : step.stoppedWorkers) gone(id);
    if (!step.startWorker) continue;
    const WorkerId id = "n" + std::to_string(++started);
    startWorker(id, step.replaces);
    EXPECT_TRUE(ready(id));
  }
  EXPECT_EQ(outdated(), 0U);
}

TEST_F(WorkerPoolTest, AReleaseLeavesAsManyAsItFound) {
  join("a");
  for (const ReleasePtr& release : {second_, third_}) {
    crew_.change(endpoint(release));
    int started = 0;
    for (int i = 0; crew_.isRolling() && i < 50; ++i) {
      const WorkerPool::Step step = crew_.nextStep();
      for (const WorkerId& id : step.stoppedWorkers) gone(id);
      if (!step.startWorker) continue;
      const WorkerId id = (release == second_ ? "s" : "t") + std::to_string(++started);
      startWorker(id, step.replaces, step.surge);
      EXPECT_TRUE(ready(id));
    }
    EXPECT_EQ(outdated(), 0U);
    EXPECT_EQ(crew_.slots(), 1U);
  }
}

TEST_F(WorkerPoolTest, WhoIsOverALoweredMaximumLeavesWhenItIsFree) {
  join("a");
  join("b");
  busy("a");
  busy("b");
  auto less = std::make_shared<Endpoint>(*crew_.endpoint());
  less->spec.workersMax = 1;
  crew_.change(less);
  EXPECT_FALSE(ready("a"));
  EXPECT_TRUE(ready("b"));
  EXPECT_FALSE(crew_.isRolling()) << "no replacement is missing";
}

TEST_F(WorkerPoolTest, AStuckHandlerStopsNoRelease) {
  for (const char* id : {"a", "b", "c"}) {
    join(id);
    busy(id);
  }
  crew_.change(endpoint(second_));
  (void)crew_.nextStep();
  ASSERT_TRUE(drains("a"));
  stuck("a");
  const WorkerPool::Step step = crew_.nextStep();
  EXPECT_TRUE(step.startWorker || drains("b")) << "somebody else's turn";
}

TEST_F(WorkerPoolTest, AnEndpointThatNothingHereCanRunLosesItsWorkersAfterTheirJobs) {
  join("a");
  join("b");
  busy("b");
  crew_.change(endpoint(nullptr));
  const WorkerPool::Step step = crew_.nextStep();
  EXPECT_THAT(step.stoppedWorkers, ElementsAre("a"));
  EXPECT_THAT(step.stopped, IsEmpty());
  EXPECT_FALSE(ready("b"));
  EXPECT_FALSE(crew_.isRolling()) << "no replacement is missing";
}

TEST_F(WorkerPoolTest, AnEndpointThatIsGoneStopsItsJobs) {
  join("a");
  join("b");
  busy("b");
  crew_.retire();
  const WorkerPool::Step step = crew_.nextStep();
  EXPECT_THAT(step.stoppedWorkers, ElementsAre("a"));
  EXPECT_THAT(step.stopped, ElementsAre(jobOf("b")));
  EXPECT_FALSE(ready("b"));
}

TEST_F(WorkerPoolTest, WhoWasStuckAndComesBackLeavesWhenItsSlotIsTaken) {
  crew_ = WorkerPool{endpoint(first_, 1)};
  join("a");
  busy("a");
  stuck("a");
  join("b");
  EXPECT_EQ(crew_.slots(), 1U);
  EXPECT_FALSE(ready("a"));
}

}  // namespace
}  // namespace jobq
