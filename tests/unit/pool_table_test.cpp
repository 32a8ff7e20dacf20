// Tests of the choice of the pools that a pass visits (core/workers/pool/pool_table.h).
#include "core/workers/pool/pool_table.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <memory>
#include <string>
#include <vector>

namespace jobq {
namespace {

using testing::ElementsAre;
using testing::IsEmpty;

class PoolTableTest : public testing::Test {
 protected:
  /// Adds pools whose idle workers beyond none leave after a minute.
  PoolTableTest() {
    for (const char* id : {"a", "b", "c"}) {
      auto endpoint = std::make_shared<Endpoint>();
      endpoint->spec.id = id;
      endpoint->spec.idleTimeout = Millis(60'000);
      endpoint->release = std::make_shared<Release>();
      table_.add(endpoint, endpoint);
    }
  }
  std::vector<std::string> taken(PoolTask task) {
    std::vector<std::string> ids;
    for (const PoolSlot* slot : table_.beginVisits(task, now_)) ids.push_back(slot->id());
    return ids;
  }
  /// Lets each task visit each pool.
  void visitAll() {
    for (const PoolTask task :
         {PoolTask::stuck, PoolTask::release, PoolTask::idle, PoolTask::claim, PoolTask::scaling}) {
      (void)table_.beginVisits(task, now_);
    }
    (void)table_.nextTaskAt(now_);
  }
  void addIdle(const EndpointId& endpoint, const WorkerId& worker) {
    WorkerPool& pool = table_.change(endpoint)->pool;
    (void)pool.addWorker(worker, {}, now_);
    (void)pool.recordReady(worker, now_);
  }
  void run(const EndpointId& endpoint, const WorkerId& worker, const LeaseRef& lease) {
    ClaimedJob job;
    job.endpoint = endpoint;
    job.worker = worker;
    job.lease = lease;
    PoolSlot& slot = *table_.change(endpoint);
    slot.pool.workers().reserveWorker(worker);
    table_.assignJob(slot, job);
  }

  Instant now_{Millis(1'000'000)};
  PoolTable table_;
};

TEST_F(PoolTableTest, EachTaskVisitsAChangedPoolOnce) {
  EXPECT_THAT(taken(PoolTask::claim), ElementsAre("a", "b", "c")) << "new pools are changed";
  EXPECT_THAT(taken(PoolTask::claim), IsEmpty());
  EXPECT_THAT(taken(PoolTask::stuck), ElementsAre("a", "b", "c"));
  visitAll();
  (void)table_.change("b");
  EXPECT_THAT(taken(PoolTask::claim), ElementsAre("b"));
  (void)table_.nextTaskAt(now_);
  EXPECT_THAT(taken(PoolTask::scaling), ElementsAre("b")) << "the end of a pass takes no visit from a task";
  table_.mark(*table_.find("c"), PoolTask::release);
  EXPECT_THAT(taken(PoolTask::idle), ElementsAre("b")) << "a mark counts for a single task";
  EXPECT_THAT(taken(PoolTask::release), ElementsAre("b", "c"));
}

TEST_F(PoolTableTest, APoolIsVisitedWhenDue) {
  addIdle("b", "w1");
  visitAll();
  now_ += Millis(1);
  addIdle("c", "w2");
  visitAll();
  EXPECT_EQ(table_.nextTaskAt(now_), now_ + Millis(59'999));
  now_ += Millis(59'999);
  EXPECT_THAT(taken(PoolTask::idle), ElementsAre("b"));
  EXPECT_EQ(table_.nextTaskAt(now_), now_) << "the worker still has to leave";
  EXPECT_THAT(taken(PoolTask::idle), ElementsAre("b")) << "the next pass visits the pool again";
  (void)table_.change("b")->pool.workers().remove("w1");
  EXPECT_EQ(table_.nextTaskAt(now_), now_ + Millis(1));
}

// A pass may fail before its end. The failed pass has looked too early at work that becomes due before the next pass.
TEST_F(PoolTableTest, ATimeBetweenTheVisitsAndTheNextPlanIsNotMissed) {
  auto broken = [this] {
    (void)table_.change("a")->pool.addWorker("w", {}, now_);
    (void)table_.change("a")->pool.recordGone("w", WorkerFailure{"broken"}, now_);
  };
  visitAll();
  broken();
  EXPECT_THAT(taken(PoolTask::scaling), ElementsAre("a")) << "no worker may start yet";
  now_ += Millis(2'000);
  EXPECT_THAT(taken(PoolTask::scaling), IsEmpty());
  EXPECT_LE(table_.nextTaskAt(now_), now_) << "the backoff has ended";
  EXPECT_THAT(taken(PoolTask::scaling), ElementsAre("a"));
  EXPECT_EQ(table_.nextTaskAt(now_), Instant::max());
}

TEST_F(PoolTableTest, ARemovedPoolIsVisitedNoMore) {
  addIdle("a", "w1");
  (void)table_.nextTaskAt(now_);
  (void)table_.change("a")->pool.workers().remove("w1");
  table_.erase("a");
  EXPECT_THAT(taken(PoolTask::claim), ElementsAre("c", "b"));
  EXPECT_EQ(table_.nextTaskAt(now_), Instant::max());
  (void)table_.change("b");
  table_.erase("c");
  table_.erase("c");
  visitAll();
  EXPECT_EQ(table_.change("c"), nullptr);
  EXPECT_THAT(taken(PoolTask::claim), IsEmpty());
  (void)table_.change("b");
  EXPECT_THAT(taken(PoolTask::claim), ElementsAre("b"));
}

TEST_F(PoolTableTest, AnAttemptIsFoundUntilTheRunEnds) {
  addIdle("a", "w1");
  addIdle("a", "w2");
  addIdle("b", "w3");
  run("a", "w1", {"job", 1});
  run("a", "w2", {"job", 2});
  run("b", "w3", {"other", 1});
  ClaimedJob lost;
  lost.worker = "none";
  lost.lease = {"lost", 1};
  table_.assignJob(*table_.find("b"), lost);
  EXPECT_EQ(table_.findRun({"lost", 1}), nullptr) << "no worker has the job";
  table_.endRun(*table_.find("a"), "w1");
  EXPECT_EQ(table_.findRun({"job", 1}), nullptr);
  EXPECT_EQ(table_.findRun({"job", 2}), table_.find("a"));
  EXPECT_EQ(table_.findRun({"other", 1}), table_.find("b"));
  table_.endRun(*table_.find("b"), "none");
  EXPECT_EQ(table_.findRun({"other", 2}), nullptr);
}

}  // namespace
}  // namespace jobq
