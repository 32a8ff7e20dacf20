// Tests of remote workers (core/workers/remote_workers.h): what their silence means, on a clock that is moved by hand.
#include "core/workers/remote_workers.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <atomic>
#include <cstdint>
#include <memory>
#include <optional>
#include <set>
#include <string>
#include <vector>

#include "core/base/connection_owner.h"
#include "core/workers/executor_choice.h"
#include "core/workers/worker_pools.h"
#include "executor_fixture.h"
#include "jobq/lease_store.h"
#include "tests/support/held_caller.h"

namespace jobq {
namespace {

using testing::ElementsAre;
using testing::HasSubstr;
using testing::IsEmpty;

class RemoteWorkersTest : public testing::Test, protected test::ExecutorFixture {
 protected:
  RemoteWorkersTest() {
    auto release = std::make_shared<Release>();
    release->isRemote = true;
    auto remote = std::make_shared<Endpoint>(*endpoint);
    remote->spec.workersMax = 1;
    remote->release = std::move(release);
    pools_.setEndpoint(remote);
  }

  /// Parks a call of the worker, gives its place the job, and returns the job as the worker gets it.
  RemoteRunPtr deliverJob(const JobId& id, const RemoteWorkerKey& key = {"ep", "w"}) {
    storage.insert(id);
    return deliverNextJob(key);
  }
  RemoteRunPtr deliverNextJob(const RemoteWorkerKey& key = {"ep", "w"}) {
    const auto take = remote_.beginTake(key, 1, std::nullopt, caller_.call());
    for (const ClaimedJob& job : claimForPlaces()) remote_.assign(job);
    const auto got = remote_.pollTake(key, *take, false);
    return got && !got->empty() ? got->front() : nullptr;
  }
  /// Claims jobs for all idle places, as the dispatcher does, and returns the jobs, which no worker has yet.
  std::vector<ClaimedJob> claimForPlaces() {
    const auto wants = pools_.reserveWorkers({nullptr, 10, true});
    auto jobs = storage.real->leases().claim(wants, storage.life->holder(), ++lastClaim_);
    pools_.concludeReservations(wants, jobs);
    return jobs;
  }
  /// Makes the worker known by a call, and opens a connection of it.
  std::shared_ptr<const ConnectionOwner> connectWorker() {
    (void)stopsOf();
    return remote_.connect(key_);
  }
  RemoteRunPtr findRun(const JobId& id, const RemoteWorkerKey& key = {"ep", "w"}) {
    return remote_.findRuns(key, std::vector{id}).at(0);
  }
  void noteResult(const JobId& id, const RemoteRunPtr& run) {
    remote_.noteResults(key_, std::vector{RemoteWorkers::Reported{id, run}}, false);
  }
  void pass(Millis time) {
    storage.clock.advance(time);
    remote_.run();
  }
  std::optional<std::vector<JobId>> stopsOf(const RemoteWorkerKey& key = {"ep", "w"}) {
    if (!stopWait_ || stopWait_->isOver) stopWait_ = remote_.beginStopWait(key, caller_.call());
    return remote_.pollStopWait(key, *stopWait_, false);
  }

  const RemoteWorkerKey key_{"ep", "w"};
  test::HeldCaller caller_;
  WorkerPools pools_{{queueSignal, storage.clock, storage.log}, {}};
  std::atomic<bool> draining_ = false;
  RemoteWorkers remote_{{remoteRuns, pools_, draining_, storage.log}};
  std::shared_ptr<RemoteStopWait> stopWait_;
  CallId lastClaim_ = 100;
};

TEST_F(RemoteWorkersTest, ACallIsHeldFor25Seconds) {
  const auto take = remote_.beginTake(key_, 3, false, caller_.call());
  EXPECT_EQ(pools_.view("ep").workers.size(), 3U) << "a place for each job that may come, beyond workersMax";
  EXPECT_EQ(pools_.status("ep").counts.idle, 1U) << "one worker";
  pass(Millis(24'999));
  EXPECT_FALSE(remote_.pollTake(key_, *take, false).has_value());
  pass(Millis(1));
  EXPECT_THAT(remote_.pollTake(key_, *take, false).value(), IsEmpty());
  EXPECT_EQ(pools_.status("ep").counts.idle, 0U);
}

// The call is continued when the last job of the claim is there, so that its answer has all of them.
TEST_F(RemoteWorkersTest, ACallIsAnsweredWithAllJobsOfAClaim) {
  struct CountedCall final : CallResumer {
    void resume(std::uint64_t /*call*/) noexcept override { ++count; }
    int count = 0;
  } counted;
  const auto take = remote_.beginTake(key_, 3, false, {&counted, 1});
  for (const char* id : {"a", "b", "c"}) storage.insert(id);
  ExecutorChoice choice(executor, remote_);
  for (const ClaimedJob& job : claimForPlaces()) choice.assign(job);
  EXPECT_EQ(counted.count, 0);
  choice.sendAssigned();
  EXPECT_EQ(counted.count, 1);
  EXPECT_EQ(remote_.pollTake(key_, *take, false).value().size(), 3U);
  choice.sendAssigned();
  EXPECT_EQ(counted.count, 1) << "no job has come since";
}

TEST_F(RemoteWorkersTest, ResultsOfSeveralRunsAreStoredTogether) {
  const RemoteRunPtr a = deliverJob("a");
  const RemoteRunPtr b = deliverJob("b");
  storage.insert("c");
  const RemoteRunPtr gone = deliverNextJob();
  ASSERT_EQ(storage->leases().release(std::vector{gone->lease()}), 1U);
  EXPECT_THAT(remote_.findRuns(key_, std::vector<JobId>{"b", "unknown", "a"}), ElementsAre(b, nullptr, a));
  RemoteRun::finishAll({{a, Completed{"1"}}, {gone, Completed{"2"}}, {b, Failed{"no", ""}}});
  remote_.noteResults(key_, std::vector<RemoteWorkers::Reported>{{"a", a}, {"c", gone}, {"b", b}, {"unknown", nullptr}},
                      false);
  EXPECT_EQ(find("a").output, "1");
  EXPECT_EQ(find("b").error, "no");
  EXPECT_EQ(find("c").state, JobState::inQueue);
  EXPECT_TRUE(pools_.view("ep").workers.empty()) << "the places have ended";
}

TEST_F(RemoteWorkersTest, AResultEndsTheRunAndFreesThePlace) {
  const RemoteRunPtr run = deliverJob("a");
  ASSERT_NE(run, nullptr);
  EXPECT_EQ(pools_.status("ep").counts.running, 1U);
  EXPECT_EQ(findRun("a"), run);
  EXPECT_EQ(findRun("a", {"ep", "another"}), nullptr);
  EXPECT_EQ(run->finish(Completed{"1"}), ReportResult::accepted);
  noteResult("a", run);
  EXPECT_EQ(findRun("a"), nullptr);
  EXPECT_EQ(pools_.status("ep").counts.running, 0U);
  EXPECT_EQ(find("a").state, JobState::completed);
}

// A ping that was sent before the job came may arrive later.
TEST_F(RemoteWorkersTest, TwoPingsWithoutTheJobLoseIt) {
  const auto connection = connectWorker();
  deliverJob("a");
  remote_.notePing(key_, {}, false);
  remote_.notePing(key_, {}, false);
  pass(Millis(20'000));
  EXPECT_EQ(find("a").state, JobState::inProgress) << "both came too early to tell";
  remote_.notePing(key_, {}, false);
  remote_.notePing(key_, {"a"}, false);
  remote_.notePing(key_, {}, false);
  EXPECT_EQ(find("a").state, JobState::inProgress) << "no two in a row";
  remote_.notePing(key_, {}, false);
  EXPECT_EQ(find("a").state, JobState::inQueue);
  EXPECT_EQ(find("a").losses, 1U);
}

TEST_F(RemoteWorkersTest, TenSecondsWithoutAConnectionLoseTheJobs) {
  auto connection = connectWorker();
  auto other = connectWorker();
  deliverJob("a");
  EXPECT_TRUE(connection->needsConnection());
  connection.reset();
  pass(Millis(30'000));
  EXPECT_EQ(find("a").state, JobState::inProgress) << "one is left";
  other.reset();
  pass(Millis(9'999));
  EXPECT_EQ(find("a").state, JobState::inProgress);
  remote_.notePing(key_, {"a"}, false);
  pass(Millis(1));
  EXPECT_EQ(find("a").state, JobState::inQueue) << "the ping process may outlive its worker";
  connection = connectWorker();
  EXPECT_FALSE(connection->needsConnection());
}

// The storage may fail just then.
TEST_F(RemoteWorkersTest, ALossIsStoredAsSoonAsTheStorageTakesIt) {
  auto connection = connectWorker();
  deliverJob("a");
  connection.reset();
  storage.faults.failOperation("leases.lose");
  pass(Millis(10'000));
  EXPECT_EQ(find("a").state, JobState::inProgress);
  storage.faults.heal();
  pass(Millis(1'000));
  EXPECT_EQ(find("a").losses, 1U);
}

TEST_F(RemoteWorkersTest, AStopIsRepeatedUntilTwoPingsOmitTheJob) {
  const auto connection = connectWorker();
  const LeaseRef lease = deliverJob("a")->lease();
  EXPECT_FALSE(stopsOf().has_value());
  running.stop(lease);
  for (int second = 0; second < 3; ++second) {
    EXPECT_THAT(stopsOf().value(), ElementsAre("a"));
    EXPECT_FALSE(stopsOf().has_value()) << "once a second";
    pass(Millis(1'000));
  }
  remote_.notePing(key_, {"a"}, false);
  remote_.notePing(key_, {}, false);
  EXPECT_THAT(stopsOf().value(), ElementsAre("a"));
  remote_.notePing(key_, {}, false);
  pass(Millis(1'000));
  EXPECT_FALSE(stopsOf().has_value());
}

// The result of the earlier attempt would look like one of the new attempt.
TEST_F(RemoteWorkersTest, AJobThatTheWorkerMayStillRunGoesBack) {
  const auto connection = connectWorker();
  running.stop(deliverJob("a")->lease());
  storage.real->leases().release(std::vector{LeaseRef{"a", 1}});
  EXPECT_EQ(deliverNextJob(), nullptr);
  EXPECT_EQ(find("a").state, JobState::inQueue);
  EXPECT_EQ(find("a").losses, 0U);
  remote_.notePing(key_, {}, false);
  remote_.notePing(key_, {}, false);
  EXPECT_NE(deliverNextJob(), nullptr);
}

// The jobs are those of an earlier life of the server, which are in the queue again.
TEST_F(RemoteWorkersTest, AWorkerWithUnknownJobsGetsNoneOfThatTime) {
  storage.insert("old");
  storage.clock.advance(Millis(1'000));
  RemoteWorkers later({remoteRuns, pools_, draining_, storage.log});
  const auto take = later.beginTake(key_, 1, true, caller_.call());
  const auto jobs = claimForPlaces();
  ASSERT_EQ(jobs.size(), 1U);
  later.assign(jobs[0]);
  EXPECT_FALSE(later.pollTake(key_, *take, false).has_value());
  EXPECT_EQ(find("old").state, JobState::inQueue);
  later.notePing(key_, {"old"}, false);
  const auto wait = later.beginStopWait(key_, caller_.call());
  EXPECT_THAT(later.pollStopWait(key_, *wait, false).value(), ElementsAre("old"));
}

TEST_F(RemoteWorkersTest, AJobBehindItsCallWaitsForTheNextOne) {
  storage.insert("a");
  const auto take = remote_.beginTake(key_, 1, false, caller_.call());
  const auto jobs = claimForPlaces();
  pass(Millis(25'000));
  EXPECT_THAT(remote_.pollTake(key_, *take, false).value(), IsEmpty());
  remote_.assign(jobs.at(0));
  const auto next = remote_.beginTake(key_, 1, false, caller_.call());
  EXPECT_EQ(remote_.pollTake(key_, *next, false).value().at(0)->lease(), jobs[0].lease);
}

TEST_F(RemoteWorkersTest, AJobWithoutANextCallGoesBackUncounted) {
  storage.insert("a");
  const auto take = remote_.beginTake(key_, 1, false, caller_.call());
  const auto jobs = claimForPlaces();
  EXPECT_THAT(remote_.pollTake(key_, *take, true).value(), IsEmpty()) << "its client has left";
  remote_.assign(jobs.at(0));
  pass(Millis(10'000));
  EXPECT_EQ(find("a").state, JobState::inQueue);
  EXPECT_EQ(find("a").losses, 0U);
  EXPECT_EQ(pools_.status("ep").counts.running, 0U);
}

// The claim of a place may end behind its call: the job is for the call that is parked now.
TEST_F(RemoteWorkersTest, AJobBehindItsCallTakesAPlaceOfTheNextOne) {
  storage.insert("a");
  const auto take = remote_.beginTake(key_, 1, false, caller_.call());
  const auto jobs = claimForPlaces();
  pass(Millis(25'000));
  EXPECT_THAT(remote_.pollTake(key_, *take, false).value(), IsEmpty());
  const auto next = remote_.beginTake(key_, 1, false, caller_.call());
  EXPECT_EQ(pools_.view("ep").workers.size(), 2U) << "the place of the job and that of the call";
  remote_.assign(jobs.at(0));
  EXPECT_EQ(remote_.pollTake(key_, *next, false).value().at(0)->lease(), jobs[0].lease);
  EXPECT_EQ(pools_.view("ep").workers.size(), 1U);
}

TEST_F(RemoteWorkersTest, APlaceWithoutACallEndsWithItsClaim) {
  const auto take = remote_.beginTake(key_, 1, false, caller_.call());
  const auto wants = pools_.reserveWorkers({nullptr, 10, true});
  ASSERT_EQ(wants.size(), 1U);
  pass(Millis(25'000));
  EXPECT_THAT(remote_.pollTake(key_, *take, false).value(), IsEmpty());
  pools_.concludeReservations(wants, {});
  EXPECT_EQ(pools_.status("ep").counts.idle, 0U) << "the next job would go to nobody";
}

TEST_F(RemoteWorkersTest, AWorkerThatWasCutOffGetsNoJobThatItMayStillRun) {
  auto connection = connectWorker();
  deliverJob("a");
  connection.reset();
  pass(Millis(10'000));
  EXPECT_EQ(find("a").losses, 1U);
  connection = connectWorker();
  EXPECT_EQ(deliverNextJob(), nullptr);
  EXPECT_EQ(find("a").losses, 1U);
  pass(Millis(30'000));
  EXPECT_NE(deliverNextJob(), nullptr) << "not for ever: the job is the first of the queue";
}

// The server closes the connections then, and the next life adopts the jobs.
TEST_F(RemoteWorkersTest, AServerThatStopsLosesNoJob) {
  auto connection = connectWorker();
  deliverJob("a");
  draining_ = true;
  connection.reset();
  pass(Millis(60'000));
  EXPECT_EQ(find("a").state, JobState::inProgress);
}

TEST_F(RemoteWorkersTest, AnImageOfAHandlerEndsTheCallsAndStillTakesResults) {
  const auto connection = connectWorker();
  const RemoteRunPtr run = deliverJob("a");
  const auto take = remote_.beginTake(key_, 1, std::nullopt, caller_.call());
  auto changed = std::make_shared<Endpoint>(*endpoint);
  changed->spec.workersMax = 1;
  pools_.setEndpoint(changed);
  EXPECT_FALSE(remote_.isServed("ep"));
  const auto step = pools_.nextStep("ep");
  EXPECT_FALSE(step.stoppedWorkers.empty());
  for (const WorkerId& place : step.stoppedWorkers) remote_.removePlace(place);
  EXPECT_THAT(remote_.pollTake(key_, *take, false).value(), IsEmpty());
  EXPECT_EQ(findRun("a"), run);
  EXPECT_EQ(run->finish(Completed{"1"}), ReportResult::accepted);
  noteResult("a", run);
  EXPECT_TRUE(pools_.view("ep").workers.empty());
}

TEST_F(RemoteWorkersTest, AnAdoptedJobGoesOnWithItsChunks) {
  storage.insert("a");
  ClaimedJob job = storage.claim("w:7");
  std::vector<Chunk> chunks(5, Chunk{"1", "", false});
  ASSERT_EQ(storage->chunks().append(job.lease, 0, chunks), ReportResult::accepted);
  remote_.adopt({std::move(job)});
  const RemoteRunPtr run = findRun("a");
  ASSERT_NE(run, nullptr);
  EXPECT_EQ(run->addChunk("2", ""), ReportResult::accepted);
  EXPECT_EQ(storage->chunks().read({"ep", "a"}, 0, 1'000)->chunks.size(), 6U);
  pass(Millis(9'000));
  remote_.notePing(key_, {"a"}, false);
  pass(Millis(9'000));
  EXPECT_EQ(find("a").state, JobState::inProgress) << "a handler that blocks its worker lets only pings through";
  pass(Millis(1'000));
  EXPECT_EQ(find("a").losses, 1U);
}

TEST_F(RemoteWorkersTest, ADrainReturnsTheJobsThatDoNotEnd) {
  const auto connection = connectWorker();
  deliverJob("a");
  remote_.drain(Millis(0), std::nullopt);
  EXPECT_EQ(find("a").state, JobState::inQueue);
  EXPECT_EQ(find("a").losses, 0U);
  const auto take = remote_.beginTake(key_, 1, false, caller_.call());
  EXPECT_EQ(pools_.status("ep").counts.idle, 0U) << "the call is held, and has no place";
  EXPECT_FALSE(remote_.pollTake(key_, *take, false).has_value());
}

TEST_F(RemoteWorkersTest, ADrainForTheNextLifeLeavesTheJobs) {
  const auto connection = connectWorker();
  const RemoteRunPtr run = deliverJob("a");
  remote_.drain(Millis(0), std::set<RemoteWorkerKey>());
  EXPECT_EQ(find("a").state, JobState::inProgress);
  EXPECT_EQ(run->finish(Completed{"1"}), ReportResult::accepted) << "until the end of the process";
}

TEST_F(RemoteWorkersTest, AStopOfTheServerEndsTheCalls) {
  const auto take = remote_.beginTake(key_, 1, false, caller_.call());
  EXPECT_FALSE(stopsOf().has_value());
  remote_.stop();
  EXPECT_THAT(remote_.pollTake(key_, *take, false).value(), IsEmpty());
  EXPECT_THAT(remote_.pollStopWait(key_, *stopWait_, false).value(), IsEmpty());
}

}  // namespace
}  // namespace jobq
