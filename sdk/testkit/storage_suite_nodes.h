// Conformance: NodeStore (node_store.h), and the leases of lives.
#pragma once

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <set>
#include <string>
#include <vector>

#include "jobq/holder.h"
#include "jobq/mutex.h"
#include "testkit/returned_jobs.h"
#include "testkit/storage_suite.h"

namespace jobq::testkit {

TEST_P(StorageSuite, EveryLifeHasAGreaterEpoch) {
  std::set<std::uint64_t> epochs{0, holder_.epoch};
  for (const char* name : {"node", "other", "node", "a name with \"quotes\" and \xc3\xa4"}) {
    const Holder holder = nodes().join(name);
    EXPECT_EQ(holder.node, name);
    EXPECT_GT(holder.epoch, *epochs.rbegin());
    epochs.insert(holder.epoch);
  }
}

TEST_P(StorageSuite, ANewLifeOfTheNodeEndsItsLeases) {
  submit("a");
  const LeaseRef lease = claimOne();
  clock_.advance(Millis(100));
  EXPECT_TRUE(sweep().stopped.empty());
  newLife();
  EXPECT_EQ(leaseState(lease), LeaseState::held) << "the lease is held until a sweep takes the job back";
  const SweepResult swept = sweep();
  EXPECT_EQ(swept.stopped, (std::vector{lease}));
  EXPECT_EQ(swept.requeuedAt, (std::vector<EndpointId>{"ep"}));
  EXPECT_EQ(leaseState(lease), LeaseState::takenOver);
  EXPECT_EQ(find("a")->losses, 1U);
  EXPECT_EQ(complete(lease), ReportResult::staleAttempt);
  EXPECT_EQ(claimOne().job, "a") << "the new life claims";
}

TEST_P(StorageSuite, ALeavingLifeClaimsNoJobAndTheHeldJobsGoBack) {
  submit("a");
  submit("b");
  const LeaseRef lease = claimOne();
  for (int i = 0; i < 2; ++i) nodes().leave(holder_);
  EXPECT_TRUE(claim(9).empty());
  EXPECT_EQ(nodes().beat(holder_, {}), BeatResult::ended);
  EXPECT_EQ(sweep().stopped, (std::vector{lease}));
  EXPECT_EQ(counts().inQueue, 2U);
  EXPECT_EQ(counts().retried, 1U);
  newLife();
  EXPECT_EQ(claim(9).size(), 2U);
}

TEST_P(StorageSuite, AnOlderLifeClaimsNoJobAndTheBeatAnswersReplaced) {
  submit("a");
  const Holder old = holder_;
  newLife();
  EXPECT_TRUE(claimAs(old, 9).empty());
  EXPECT_TRUE(claimAs({"node", 0}, 9).empty());
  EXPECT_TRUE(claimAs({"node", holder_.epoch + 1}, 9).empty());
  EXPECT_EQ(stateOf("a"), JobState::inQueue);
  EXPECT_EQ(nodes().beat(old, std::vector<EndpointWorkers>{{"ep", {9, 9, 9, 9, 9, 9}}}), BeatResult::replaced);
  EXPECT_EQ(nodes().count("ep", ""), WorkerCounts{});
  nodes().leave(old);
  EXPECT_EQ(nodes().beat(holder_, {}), BeatResult::extended) << "an old life ends no other life";
  nodes().leave(holder_);
  EXPECT_EQ(nodes().beat(old, {}), BeatResult::replaced);
  EXPECT_EQ(nodes().beat(holder_, {}), BeatResult::ended);
}

TEST_P(StorageSuite, AnEndedJobIsNotLostWithTheHolder) {
  const LeaseRef done = bring("done", JobState::completed);
  const LeaseRef returned = bring("returned", JobState::inProgress);
  EXPECT_EQ(testkit::release(leases(), std::vector{returned}), 1U);
  newLife();
  EXPECT_TRUE(sweep().stopped.empty());
  EXPECT_EQ(complete(done), ReportResult::accepted) << "a repeated report";
  EXPECT_EQ(find("returned")->losses, 0U);
  EXPECT_EQ(counts().retried, 0U);
}

TEST_P(StorageSuite, ABeatReplacesTheWorkersOfTheLife) {
  const WorkerCounts all{1, 2, 3, 4, 5, 6};
  const auto beat = [this](std::vector<EndpointWorkers> workers) {
    EXPECT_EQ(nodes().beat(holder_, workers), BeatResult::extended);
  };
  beat({{"ep", all}, {"two", {1, 0, 0, 0, 0, 0}}});
  EXPECT_EQ(nodes().count("ep", ""), all);
  EXPECT_EQ(nodes().count("ep", "other"), all);
  EXPECT_EQ(nodes().count("ep", "node"), WorkerCounts{});
  EXPECT_EQ(nodes().count("none", ""), WorkerCounts{});
  for (int i = 0; i < 2; ++i) beat({{"two", {0, 0, 0, 7, 0, 0}}});
  EXPECT_EQ(nodes().count("ep", ""), WorkerCounts{});
  EXPECT_EQ(nodes().count("two", ""), (WorkerCounts{0, 0, 0, 7, 0, 0}));
  beat({});
  EXPECT_EQ(nodes().count("two", ""), WorkerCounts{});
  beat({{"ep", all}});
  newLife();
  EXPECT_EQ(nodes().count("ep", ""), WorkerCounts{}) << "a new life has no workers";
}

TEST_P(StorageSuite, NodesAreListedWithTheirLastLife) {
  const Holder zeta = nodes().join("zeta");
  clock_.advance(Millis(700));
  holder_ = nodes().join("alpha");
  clock_.advance(Millis(300));
  EXPECT_EQ(nodes().beat(holder_, {}), BeatResult::extended);
  nodes().leave(holder_);
  auto listed = nodes().nodes();
  ASSERT_EQ(listed.size(), 3U);
  EXPECT_EQ(listed[0].name, "alpha");
  EXPECT_EQ(listed[0].epoch, holder_.epoch);
  EXPECT_EQ(listed[0].sinceBeat, Millis(0));
  EXPECT_FALSE(listed[0].isAlive);
  EXPECT_EQ(listed[1].name, "node");
  EXPECT_EQ(listed[2].name, "zeta");
  EXPECT_EQ(listed[2].epoch, zeta.epoch);
  EXPECT_EQ(listed[2].sinceBeat, Millis(1'000));
  EXPECT_EQ(listed[2].isAlive, storage_->leaseLife().has_value());
}

TEST_P(StorageSuite, ANodeIsForgottenADayAfterItsLastBeat) {
  nodes().leave(nodes().join("gone"));
  clock_.advance(Millis(86'399'999));
  newLife();
  EXPECT_EQ(nodes().nodes().size(), 2U);
  clock_.advance(Millis(1));
  EXPECT_EQ(nodes().beat(holder_, {}), BeatResult::extended);
  sweepAll();
  const auto listed = nodes().nodes();
  ASSERT_EQ(listed.size(), 1U);
  EXPECT_EQ(listed[0].name, "node");
  EXPECT_TRUE(listed[0].isAlive);
}

/// Lives on a storage that several processes share.
class SharedSuite : public StorageSuite {
 protected:
  void SetUp() override {
    StorageSuite::SetUp();
    if (!storage_->leaseLife()) GTEST_SKIP() << GetParam().name << " is for a single process: lives do not end by time";
    life_ = *storage_->leaseLife();
  }
  /// Lets `time` pass while `holder` beats every second.
  void passWithBeats(const Holder& holder, Millis time) {
    for (; time > Millis(0); time -= Millis(1'000)) {
      clock_.advance(std::min(time, Millis(1'000)));
      EXPECT_EQ(nodes().beat(holder, {}), BeatResult::extended);
    }
  }

  Millis life_{0};
};

TEST_P(SharedSuite, LeasesLastWhileTheirHolderBeats) {
  const Holder other = nodes().join("other");
  submit("a");
  submit("b");
  const LeaseRef a = claimOne();
  const LeaseRef b = claimAs(other, 1).at(0).lease;
  passWithBeats(other, life_ - Millis(1));
  EXPECT_TRUE(sweep().stopped.empty()) << "neither life has ended";
  EXPECT_EQ(nodes().beat(holder_, {}), BeatResult::extended);
  passWithBeats(other, life_ - Millis(1));
  EXPECT_TRUE(sweep().stopped.empty()) << "the beat counts from then";
  passWithBeats(other, Millis(1));
  EXPECT_EQ(sweep().stopped, (std::vector{a}));
  EXPECT_EQ(leaseState(b), LeaseState::held);
  EXPECT_EQ(nodes().beat(holder_, {}), BeatResult::ended);
  EXPECT_TRUE(claim(1).empty());
  EXPECT_EQ(claimAs(other, 1).at(0).lease.job, "a");
  newLife();
  EXPECT_TRUE(sweep().stopped.empty()) << "the new life leaves the leases of the other node";
}

TEST_P(SharedSuite, ALifeEndsInASweepOnly) {
  const Holder other = nodes().join("other");
  submit("a");
  const LeaseRef lease = claimOne();
  passWithBeats(other, life_ * 2);
  EXPECT_EQ(nodes().beat(holder_, {}), BeatResult::extended) << "no sweep has ended the life";
  EXPECT_TRUE(sweep().stopped.empty());
  EXPECT_EQ(leaseState(lease), LeaseState::held);
}

TEST_P(SharedSuite, AnOutageOfTheStorageEndsNoLife) {
  const Holder other = nodes().join("other");
  submit("a");
  const LeaseRef lease = claimOne();
  clock_.advance(life_ * 4);
  EXPECT_TRUE(sweep().stopped.empty()) << "no node has beaten";
  EXPECT_EQ(nodes().beat(other, {}), BeatResult::extended);
  EXPECT_TRUE(sweep().stopped.empty()) << "the time without a beat counts as kBeatGap";
  passWithBeats(other, life_ - kBeatGap - Millis(1));
  EXPECT_TRUE(sweep().stopped.empty());
  passWithBeats(other, Millis(1));
  EXPECT_EQ(sweep().stopped, (std::vector{lease}));
}

TEST_P(SharedSuite, ANodeJoiningAfterAGapGivesOtherNodesTimeToo) {
  submit("a");
  const LeaseRef lease = claimOne();
  clock_.advance(life_ * 4);
  const Holder other = nodes().join("other");
  EXPECT_TRUE(sweep().stopped.empty());
  passWithBeats(other, life_ - kBeatGap - Millis(1));
  EXPECT_TRUE(sweep().stopped.empty());
  passWithBeats(other, Millis(1));
  EXPECT_EQ(sweep().stopped, (std::vector{lease}));
}

TEST_P(SharedSuite, ALongerTimeThanTheGapIsAddedToEachLife) {
  const Holder other = nodes().join("other");
  submit("a");
  const LeaseRef lease = claimOne();
  for (Millis gap : {kBeatGap, kBeatGap + Millis(1)}) {
    clock_.advance(gap);
    EXPECT_EQ(nodes().beat(other, {}), BeatResult::extended);
  }
  passWithBeats(other, life_ - 2 * kBeatGap - Millis(1));
  EXPECT_TRUE(sweep().stopped.empty()) << "a millisecond was added to the life";
  passWithBeats(other, Millis(1));
  EXPECT_EQ(sweep().stopped, (std::vector{lease}));
}

// A node that is started again and again must not keep a dead node alive.
TEST_P(SharedSuite, JoinsDoNotProlongADeadLifeForEver) {
  submit("a");
  const LeaseRef lease = claimOne();
  std::vector<LeaseRef> stopped;
  for (int start = 0; start < 20 && stopped.empty(); ++start) {
    clock_.advance(Millis(5'000));
    (void)nodes().join("other");
    stopped = sweep().stopped;
  }
  EXPECT_EQ(stopped, (std::vector{lease}));
}

TEST_P(SharedSuite, ASweepIsBoundedOverAllEndedLives) {
  for (int i = 0; i < 6; ++i) submit("j" + std::to_string(i));
  for (const char* node : {"x", "y", "z"}) {
    const Holder holder = nodes().join(node);
    ASSERT_EQ(claimAs(holder, 2).size(), 2U);
    nodes().leave(holder);
  }
  std::size_t stopped = 0;
  for (bool more = true; more;) {
    const SweepResult swept = leases().sweep(3);
    EXPECT_LE(swept.stopped.size(), 3U);
    stopped += swept.stopped.size();
    more = swept.more;
  }
  EXPECT_EQ(stopped, 6U);
}

TEST_P(SharedSuite, WorkersOfAllLivesAreSummed) {
  const Holder other = nodes().join("other");
  const std::vector<EndpointWorkers> workers{{"ep", {1, 2, 3, 4, 5, 6}}, {"two", {1, 0, 0, 0, 0, 0}}};
  EXPECT_EQ(nodes().beat(holder_, workers), BeatResult::extended);
  EXPECT_EQ(nodes().beat(other, workers), BeatResult::extended);
  EXPECT_EQ(nodes().count("ep", ""), (WorkerCounts{2, 4, 6, 8, 10, 12}));
  EXPECT_EQ(nodes().count("ep", "node"), (WorkerCounts{1, 2, 3, 4, 5, 6}));
  EXPECT_EQ(nodes().count("ep", "unknown"), (WorkerCounts{2, 4, 6, 8, 10, 12}));
  passWithBeats(holder_, life_);
  (void)sweep();
  EXPECT_EQ(nodes().count("ep", ""), WorkerCounts{}) << "the life of the other has ended, and the last beat was empty";
  EXPECT_EQ(nodes().nodes().at(1).name, "other");
  EXPECT_FALSE(nodes().nodes().at(1).isAlive);
}

TEST_P(SharedSuite, TheJobsOfADeadNodeAreTakenBackOnce) {
  const Holder other = nodes().join("other");
  for (int i = 0; i < 20; ++i) submit("j" + std::to_string(i));
  ASSERT_EQ(claimAs(other, 20).size(), 20U);
  passWithBeats(holder_, life_);
  Mutex mutex;
  std::multiset<JobId> stopped;
  race(4, [&](int) {
    for (bool more = true; more;) {
      const SweepResult swept = leases().sweep(3);
      more = swept.more;
      Lock lock(mutex);
      for (const LeaseRef& lease : swept.stopped) stopped.insert(lease.job);
    }
  });
  EXPECT_EQ(stopped.size(), 20U);
  EXPECT_EQ(std::set<JobId>(stopped.begin(), stopped.end()).size(), 20U);
  EXPECT_EQ(counts().retried, 20U);
  EXPECT_EQ(counts().inQueue, 20U);
}

}  // namespace jobq::testkit
