// Tests of the lives of nodes for remote workers, and of the rule for a worker with unknown jobs.
#include "core/workers/remote/remote_lives.h"

#include <gtest/gtest.h>

#include <memory>

#include "core/workers/node/node_lives.h"
#include "core/workers/remote/remote_worker.h"
#include "jobq/holder.h"
#include "jobq/storage.h"
#include "jobq/time.h"
#include "testkit/manual_clock.h"
#include "tests/fault/faulty_storage.h"
#include "tests/support/shared_memory.h"
#include "unit_storage.h"

namespace jobq {
namespace {

class RemoteLivesTest : public testing::Test {
 protected:
  /// Moves the clocks by a second. Returns the moment.
  Instant later() {
    clock_.advance(Millis(1'000));
    storageClock_.advance(Millis(1'000));
    return clock_.now();
  }

  testkit::ManualClock clock_;
  testkit::ManualClock storageClock_;
  testkit::SilentLog log_;
  fault::FaultPlan faults_{clock_};
  fault::FaultyStorage storage_{test::sharedMemory(storageClock_, log_), faults_};
  RemoteLives lives_{storage_, clock_};
};

TEST_F(RemoteLivesTest, AnEndOfALifeMovesTheMoment) {
  const Holder node = storage_.nodes().join("node");
  const Holder other = storage_.nodes().join("other");
  const Instant begun = later();
  EXPECT_EQ(lives_.check(), begun);
  later();
  EXPECT_EQ(lives_.check(), begun) << "no life has ended since";
  storage_.nodes().leave(other);
  const Instant ended = later();
  EXPECT_EQ(lives_.check(), ended);
  (void)storage_.nodes().join("node");
  const Instant replaced = later();
  EXPECT_EQ(lives_.check(), replaced) << "a restarted node ends the former life";
}

TEST_F(RemoteLivesTest, ASecondReaderNoticesAnEndSooner) {
  const Holder node = storage_.nodes().join("node");
  EXPECT_EQ(lives_.check(), clock_.now());
  storage_.nodes().leave(node);
  const NodeLives before{clock_.now() - Millis(1), {{"node", node.epoch, Millis(0), true}}};
  const Instant noticed = later();
  lives_.note({noticed, storage_.nodes().nodes()});
  later();
  lives_.note(before);
  EXPECT_EQ(lives_.check(), noticed) << "an older answer is not a change";
}

TEST_F(RemoteLivesTest, AFailureOfTheStorageGivesTheLatestMoment) {
  (void)storage_.nodes().join("node");
  faults_.failOperation("nodes.nodes");
  EXPECT_EQ(lives_.check(), Instant::max());
}

TEST(RemoteLivesAloneTest, ASingleProcessHasNoOtherLives) {
  test::UnitStorage storage;
  EXPECT_EQ(RemoteLives(*storage, storage.clock).check(), Instant::min());
}

TEST(RemoteWorkerTest, AWorkerWithUnknownJobsGetsNoJobRunBefore) {
  const Instant now{Millis(1'000'000)};
  RemoteWorker worker;
  worker.shown.notePing(now);
  EXPECT_TRUE(worker.mayGet(1, now, now)) << "the job has never run";
  EXPECT_TRUE(worker.mayGet(2, Instant::min(), now)) << "all nodes are alive";
  EXPECT_FALSE(worker.mayGet(2, now, now));
  EXPECT_EQ(worker.shown.question(), now);
  EXPECT_TRUE(worker.mayGet(1, now, now)) << "the pings of the worker come soon";
  worker.shown.noteShown(now);
  EXPECT_FALSE(worker.shown.question().has_value()) << "the worker has answered";
  EXPECT_TRUE(worker.mayGet(2, now, now));
  EXPECT_FALSE(worker.mayGet(2, Instant::max(), now)) << "the storage did not answer";
  EXPECT_FALSE(worker.shown.question().has_value()) << "no answer of the worker would help";
  worker.take = std::make_shared<RemoteTake>();
  worker.take->isIdle = true;
  EXPECT_TRUE(worker.mayGet(2, Instant::max(), now)) << "the call reports an idle worker";
}

TEST(RemoteWorkerTest, AWorkerWithoutPingsGetsNoOtherJobMeanwhile) {
  Instant now{Millis(1'000'000)};
  RemoteWorker worker;
  EXPECT_FALSE(worker.mayGet(2, now, now));
  EXPECT_FALSE(worker.mayGet(1, now, now + Millis(999))) << "the handlers have to end first";
  EXPECT_TRUE(worker.mayGet(1, now, now + Millis(1'000))) << "a different worker has got the job";
}

}  // namespace
}  // namespace jobq
