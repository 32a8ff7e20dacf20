// Tests of the life of a node on a shared storage: beats, the fence, and the return to work.
#include "core/workers/lease_keeper.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <memory>
#include <span>
#include <string>
#include <variant>
#include <vector>

#include "core/jobs/queue_signal.h"
#include "core/workers/run/executor.h"
#include "testkit/forwarding_storage.h"
#include "tests/fault/faulty_storage.h"
#include "tests/support/shared_memory.h"
#include "unit_storage.h"

namespace jobq {
namespace {

using testing::ElementsAre;
using testing::HasSubstr;
using testing::IsEmpty;

/// A test begins and ends the runs itself.
class NoExecutor final : public Executor {
 public:
  void startWorker(const EndpointPtr&, const ReleasePtr&, const WorkerId&, WorkerEvents&) override {}
  void assign(ClaimedJob) override {}
  void stopWorker(const WorkerId&) override {}
};

/// The parts of a server for its leases.
struct Node {
  Node(Storage& storage, const std::string& name, Clock& clock)
      : shared(storage),
        pools({signal, clock, log}, {}),
        life(storage, name),
        supervisor({pools, storage, signal, executor, running, life, log}, name),
        keeper({life, storage, pools, supervisor, running, signal, clock, log}) {
    signal.clear("ep");
    (void)signal.consume();
    keeper.join();
  }
  /// Claims the next job of the endpoint.
  LeaseRef claim() {
    const ClaimWant want{"ep", {"w"}};
    return shared.leases().claim({&want, 1}, life.holder(), ++claims).jobs.at(0).lease;
  }

  Storage& shared;
  testkit::RecordingLog log;
  QueueSignal signal{{"ep"}};
  RunningJobs running;
  NoExecutor executor;
  WorkerPools pools;
  NodeLife life;
  WorkerSupervisor supervisor;
  LeaseKeeper keeper;
  CallId claims = 0;
};

class LeaseKeeperTest : public testing::Test {
 protected:
  LeaseKeeperTest() {
    for (const char* id : {"a", "b", "c"}) {
      JobSpec job;
      job.id = id;
      job.endpoint = "ep";
      job.input = "{}";
      (void)storage_.jobs().insert(std::move(job), policy_);
    }
  }
  /// Lets the time pass, with a beat of each node of `beating` every second.
  void pass(Millis time, const std::vector<Node*>& beating) {
    for (; time > Millis(0); time -= Millis(1'000)) {
      clock_.advance(std::min(time, Millis(1'000)));
      for (Node* node : beating) {
        node->keeper.beat();
        node->keeper.followRuns();
      }
      for (Node* node : {&one_, &two_}) node->keeper.checkFence();
    }
  }
  Job job(const JobId& id) { return storage_.jobs().find({"ep", id}).value(); }

  testkit::ManualClock clock_;
  testkit::RecordingLog log_;
  test::ArrivalOrder policy_;
  fault::FaultPlan faults_{clock_};
  fault::FaultyStorage storage_{test::sharedMemory(clock_, log_), faults_};
  Node one_{storage_, "one", clock_};
  Node two_{storage_, "two", clock_};
};

TEST_F(LeaseKeeperTest, BeatsKeepTheLeasesOfANode) {
  const LeaseRef lease = one_.claim();
  const RunningJobs::Entry run(one_.running, lease);
  pass(test::kLeaseLife * 3, {&one_, &two_});
  EXPECT_THAT(storage_.leases().sweep(9).stopped, IsEmpty());
  EXPECT_FALSE(run.token().stop_requested());
  EXPECT_FALSE(one_.life.isFenced());
}

TEST_F(LeaseKeeperTest, ANodeWithoutBeatsStopsTheHandlersBeforeTheLifeEnds) {
  const RunningJobs::Entry run(one_.running, one_.claim());
  pass(test::kLeaseLife - Millis(5'001), {&two_});
  EXPECT_FALSE(one_.life.isFenced());
  EXPECT_FALSE(run.token().stop_requested());
  pass(Millis(1), {&two_});
  EXPECT_TRUE(one_.life.isFenced());
  EXPECT_TRUE(run.token().stop_requested());
  EXPECT_FALSE(run.beginReport()) << "the handler was stopped and has not failed";
  EXPECT_THAT(storage_.leases().sweep(9).stopped, IsEmpty()) << "no other node has the job yet";
  EXPECT_THAT(one_.log.lines(), ElementsAre(HasSubstr("node.fenced")));
  pass(Millis(5'000), {&two_});
  EXPECT_THAT(storage_.leases().sweep(9).stopped, ElementsAre(LeaseRef{"a", 1}));
  EXPECT_THAT(one_.log.lines(), ElementsAre(HasSubstr("1 handlers are stopped"))) << "the stop is logged once";
  EXPECT_FALSE(two_.life.isFenced());
}

TEST_F(LeaseKeeperTest, AFailedBeatExtendsNothing) {
  faults_.failOperation("nodes.beat");
  for (int second = 0; second < 9; ++second) {
    clock_.advance(Millis(1'000));
    EXPECT_THROW(one_.keeper.beat(), StorageError);
    one_.keeper.checkFence();
    EXPECT_FALSE(one_.life.isFenced());
  }
  clock_.advance(Millis(1'000));
  EXPECT_THROW(one_.keeper.beat(), StorageError);
  one_.keeper.checkFence();
  EXPECT_TRUE(one_.life.isFenced());
}

TEST_F(LeaseKeeperTest, TheJobsOfStoppedHandlersGoBackUncountedIfTheLifeGoesOn) {
  const Holder holder = one_.life.holder();
  {
    const RunningJobs::Entry run(one_.running, one_.claim());
    pass(Millis(10'000), {&two_});
    EXPECT_FALSE(run.beginReport());
    one_.keeper.beat();
    EXPECT_FALSE(one_.life.isFenced());
    EXPECT_EQ(one_.life.holder(), holder);
    EXPECT_EQ(job("a").state, JobState::inProgress) << "the handler has not ended, so the job stays claimed";
  }
  one_.signal.clear("ep");
  faults_.failNext("leases.giveBack");
  EXPECT_THROW(one_.keeper.beat(), StorageError);
  EXPECT_EQ(job("a").state, JobState::inProgress);
  one_.keeper.beat();
  EXPECT_EQ(job("a").state, JobState::inQueue);
  EXPECT_EQ(job("a").losses, 0U);
  EXPECT_TRUE(one_.signal.isSet("ep"));
  const RunningJobs::Entry again(one_.running, one_.claim());
  EXPECT_FALSE(again.token().stop_requested());
  EXPECT_TRUE(again.beginReport());
  EXPECT_THAT(one_.log.lines(), ElementsAre(HasSubstr("node.fenced"), HasSubstr("node.resumed")));
}

// A claim that hangs together with the beats is answered together with them.
TEST_F(LeaseKeeperTest, ARunBegunDuringTheReturnIsNotForgotten) {
  const LeaseRef lease = one_.claim();
  pass(Millis(10'000), {&two_});
  auto run = std::make_unique<RunningJobs::Entry>(one_.running, lease);
  one_.keeper.beat();
  EXPECT_TRUE(run->token().stop_requested());
  EXPECT_FALSE(run->beginReport());
  run.reset();
  EXPECT_EQ(job("a").state, JobState::inProgress);
  one_.keeper.beat();
  EXPECT_EQ(job("a").state, JobState::inQueue);
}

TEST_F(LeaseKeeperTest, ANodeBeginsANewLifeAfterTheEndOfALife) {
  const LeaseRef lease = one_.claim();
  const Holder holder = one_.life.holder();
  const RunningJobs::Entry run(one_.running, lease);
  pass(test::kLeaseLife, {&two_});
  (void)storage_.leases().sweep(9);
  faults_.failNext("nodes.join");
  EXPECT_THROW(one_.keeper.beat(), StorageError);
  EXPECT_TRUE(one_.life.isFenced());
  one_.keeper.beat();
  EXPECT_FALSE(one_.life.isFenced());
  EXPECT_GT(one_.life.holder().epoch, holder.epoch);
  clock_.advance(Millis(9'999));
  one_.keeper.checkFence();
  EXPECT_FALSE(one_.life.isFenced()) << "the time counts from the join";
  EXPECT_EQ(job("a").losses, 1U);
  EXPECT_TRUE(one_.signal.isSet("ep"));
  EXPECT_EQ(one_.claim().job, "a") << "the job has the old position under the new life";
}

// The join has happened: a beat of the former life would find the node replaced, and stay fenced.
TEST_F(LeaseKeeperTest, AJoinWithoutAnAnswerIsRepeated) {
  pass(test::kLeaseLife, {&two_});
  (void)storage_.leases().sweep(9);
  faults_.failCall("nodes.join", 1, fault::CallFault::unanswered);
  EXPECT_THROW(one_.keeper.beat(), StorageError);
  EXPECT_THROW(one_.keeper.beat(), StorageError);
  EXPECT_TRUE(one_.life.isFenced());
  faults_.heal();
  one_.keeper.beat();
  EXPECT_FALSE(one_.life.isFenced());
  one_.keeper.beat();
  EXPECT_FALSE(one_.life.isFenced());
}

/// Answers each beat after a time; the beat has its effect at once.
class SlowBeats final : public testkit::ForwardingStorage {
 public:
  SlowBeats(Storage& inner, testkit::ManualClock& clock) : ForwardingStorage(inner), nodes_(inner.nodes(), clock) {}
  NodeStore& nodes() override { return nodes_; }
  void answerAfter(Millis time) { nodes_.time = time; }

 private:
  struct Nodes final : testkit::ForwardingNodes {
    Nodes(NodeStore& inner, testkit::ManualClock& of) : ForwardingNodes(inner), clock(of) {}
    BeatResult beat(const Holder& holder, std::span<const EndpointWorkers> workers) override {
      const BeatResult result = ForwardingNodes::beat(holder, workers);
      clock.advance(time);
      return result;
    }
    testkit::ManualClock& clock;
    Millis time{0};
  };
  Nodes nodes_;
};

// The life may end a moment later, so a job claimed now could soon run at another node, too.
TEST_F(LeaseKeeperTest, ABeatAnsweredTooLateDoesNotEndTheFence) {
  SlowBeats slow(storage_, clock_);
  Node node(slow, "slow", clock_);
  clock_.advance(Millis(10'000));
  node.keeper.checkFence();
  ASSERT_TRUE(node.life.isFenced());
  slow.answerAfter(Millis(10'000));
  node.keeper.beat();
  EXPECT_TRUE(node.life.isFenced());
  slow.answerAfter(Millis(9'999));
  node.keeper.beat();
  EXPECT_FALSE(node.life.isFenced());
}

// A pause of the process, such as SIGSTOP, is noticed by the first beat after it: the fence had no time to act.
TEST_F(LeaseKeeperTest, APausedNodeStopsTheHandlers) {
  const RunningJobs::Entry run(one_.running, one_.claim());
  for (int second = 0; second < 15; ++second) {
    clock_.advance(Millis(1'000));
    two_.keeper.beat();
  }
  (void)storage_.leases().sweep(9);
  one_.keeper.beat();
  EXPECT_TRUE(run.token().stop_requested());
  EXPECT_FALSE(run.beginReport());
  EXPECT_FALSE(one_.life.isFenced()) << "the node works again at once";
  EXPECT_THAT(one_.log.lines(), ElementsAre(HasSubstr("node.fenced"), HasSubstr("node.resumed")));
}

TEST_F(LeaseKeeperTest, ABegunReportIsCompleted) {
  const LeaseRef lease = one_.claim();
  const RunningJobs::Entry run(one_.running, lease);
  EXPECT_TRUE(run.beginReport());
  pass(Millis(10'000), {&two_});
  EXPECT_FALSE(run.token().stop_requested());
  one_.keeper.beat();
  EXPECT_EQ(storage_.leases().finish(lease, Completed{"1"}), ReportResult::accepted);
}

TEST_F(LeaseKeeperTest, OfTwoServersOfTheSameNameTheOlderStaysFenced) {
  const LeaseRef lease = one_.claim();
  const RunningJobs::Entry run(one_.running, lease);
  NodeLife twin(storage_, "one");
  twin.join();
  one_.keeper.beat();
  EXPECT_TRUE(one_.life.isFenced());
  EXPECT_TRUE(run.token().stop_requested());
  EXPECT_THAT(one_.log.lines(), ElementsAre(HasSubstr("same node.name")));
  for (int i = 0; i < 3; ++i) one_.keeper.beat();
  EXPECT_TRUE(one_.life.isFenced());
  EXPECT_EQ(storage_.nodes().beat(twin.holder(), {}), BeatResult::extended) << "the younger server works";
}

TEST_F(LeaseKeeperTest, NodesShareTheWorkers) {
  pass(Millis(3'000), {&one_, &two_});
  EXPECT_EQ(one_.life.share(), (NodeShare{0, 2}));
  EXPECT_EQ(two_.life.share(), (NodeShare{1, 2}));
  NodeLife third(storage_, "a third");
  third.join();
  EXPECT_EQ(one_.life.share().nodes, 2U);
  pass(Millis(3'000), {&one_, &two_});
  EXPECT_EQ(one_.life.share(), (NodeShare{1, 3})) << "the names give the order";
  third.leave();
  pass(Millis(3'000), {&one_, &two_});
  EXPECT_EQ(one_.life.share(), (NodeShare{0, 2}));
}

TEST_F(LeaseKeeperTest, ABeatStopsRunsEndedAtOtherNodes) {
  const RunningJobs::Entry cancelled(one_.running, one_.claim());
  const RunningJobs::Entry goesOn(one_.running, one_.claim());
  (void)storage_.jobs().cancel({"ep", "a"});
  one_.keeper.followRuns();
  EXPECT_TRUE(cancelled.token().stop_requested());
  EXPECT_FALSE(goesOn.token().stop_requested());
  EXPECT_FALSE(one_.life.isFenced());
}

TEST_F(LeaseKeeperTest, ALeavingNodeIsReplacedAtOnce) {
  const LeaseRef lease = one_.claim();
  faults_.failCall("nodes.leave", 1, fault::CallFault::done);
  one_.keeper.leave();
  EXPECT_THAT(storage_.leases().sweep(9).stopped, ElementsAre(lease));
}

TEST_F(LeaseKeeperTest, ANodeLeavesAlsoWithoutAReturnOfTheJobs) {
  const LeaseRef lease = one_.claim();
  { const RunningJobs::Entry run(one_.running, (one_.running.fence(), lease)); }
  faults_.failOperation("leases.giveBack");
  EXPECT_THROW(one_.keeper.leave(), StorageError);
  EXPECT_THAT(storage_.leases().sweep(9).stopped, ElementsAre(lease)) << "no other node waits for the end of the life";
}

TEST_F(LeaseKeeperTest, ALeavingFencedNodeReturnsTheJobsUncounted) {
  { const RunningJobs::Entry run(one_.running, (one_.running.fence(), one_.claim())); }
  one_.keeper.leave();
  EXPECT_EQ(job("a").state, JobState::inQueue);
  EXPECT_EQ(job("a").losses, 0U);
}

TEST_F(LeaseKeeperTest, AStorageForASingleProcessKeepsNoLeases) {
  test::UnitStorage single;
  Node node(*single, "node", single.clock);
  node.keeper.start();
  single.faults.failOperation("nodes.beat");
  single.clock.advance(Millis(86'400'000));
  node.keeper.checkFence();
  EXPECT_FALSE(node.life.isFenced());
  node.keeper.stop();
  EXPECT_THAT(single.faults.failed(), IsEmpty());
}

}  // namespace
}  // namespace jobq
