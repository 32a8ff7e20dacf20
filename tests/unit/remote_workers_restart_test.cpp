// Tests of remote workers at the start and the end of the server (core/workers/remote/remote_workers.h).
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <set>
#include <string>
#include <utility>
#include <vector>

#include "core/workers/remote/remote_workers.h"
#include "jobq/lease_store.h"
#include "remote_workers_fixture.h"
#include "testkit/returned_jobs.h"

namespace jobq {
namespace {

using testing::ElementsAre;
using testing::IsEmpty;

class RemoteWorkersRestartTest : public test::RemoteWorkersFixture {
 protected:
  /// Stores a job that has run before and is queued again.
  void insertReturned(const JobId& id) {
    storage.insert(id);
    testkit::release(storage.real->leases(), std::vector{storage.claim().lease});
  }
};

// The jobs are those of an earlier life of the server, which are in the queue again.
TEST_F(RemoteWorkersRestartTest, AWorkerWithUnknownJobsGetsNoJobOfTheFormerServer) {
  insertReturned("old");
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

// Another job of the worker may have ended by a fault and be queued again, while the handler still runs.
TEST_F(RemoteWorkersRestartTest, AWorkerWithAnAdoptedJobGetsNoOtherJobOfTheFormerServer) {
  storage.insert("adopted");
  ClaimedJob job = storage.claim("w:7");
  insertReturned("again");
  storage.clock.advance(Millis(1'000));
  RemoteWorkers later({remoteRuns, pools_, draining_, storage.log});
  later.adopt({std::move(job)});
  const auto take = later.beginTake(key_, 1, true, caller_.call());
  for (ClaimedJob& next : claimForPlaces()) later.assign(std::move(next));
  EXPECT_FALSE(later.pollTake(key_, *take, false).has_value());
  EXPECT_EQ(find("again").state, JobState::inQueue);
  later.notePing(key_, {"adopted", "again"}, false);
  const auto wait = later.beginStopWait(key_, caller_.call());
  EXPECT_THAT(later.pollStopWait(key_, *wait, false).value(), ElementsAre("again"));
}

TEST_F(RemoteWorkersRestartTest, AJobWithoutARunIsNotAnUnknownJob) {
  storage.insert("new");
  storage.clock.advance(Millis(1'000));
  RemoteWorkers later({remoteRuns, pools_, draining_, storage.log});
  const auto take = later.beginTake(key_, 1, true, caller_.call());
  for (ClaimedJob& next : claimForPlaces()) later.assign(std::move(next));
  EXPECT_THAT(later.pollTake(key_, *take, false).value(), testing::SizeIs(1));
}

TEST_F(RemoteWorkersRestartTest, ManyPingsOfUnknownJobsAreBounded) {
  RemoteWorkers later({remoteRuns, pools_, draining_, storage.log});
  std::vector<JobId> jobs;
  for (int i = 0; i < 1'000; ++i) jobs.push_back("unknown-" + std::to_string(i));
  for (int i = 0; i < 101; ++i) later.notePing({"ep", "w-" + std::to_string(i)}, jobs, false);
  const auto last = later.beginStopWait({"ep", "w-100"}, caller_.call());
  EXPECT_FALSE(later.pollStopWait({"ep", "w-100"}, *last, false).has_value()) << "100,000 are remembered";
  const auto first = later.beginStopWait({"ep", "w-0"}, caller_.call());
  EXPECT_THAT(later.pollStopWait({"ep", "w-0"}, *first, false).value(), testing::SizeIs(1'000));
}

// The server closes the connections then, and the next life adopts the jobs.
TEST_F(RemoteWorkersRestartTest, AStoppingServerLosesNoJob) {
  auto connection = connectWorker();
  deliverJob("a");
  draining_ = true;
  tear(connection);
  pass(Millis(60'000));
  EXPECT_EQ(find("a").state, JobState::inProgress);
}

TEST_F(RemoteWorkersRestartTest, AnAdoptedJobGoesOnWithTheChunks) {
  storage.insert("a");
  ClaimedJob job = storage.claim("w:7");
  std::vector<Chunk> chunks(5, Chunk{"1", "", false});
  ASSERT_EQ(storage->chunks().append(job.lease, 0, chunks), ReportResult::accepted);
  remote_.adopt({std::move(job)});
  const RemoteRunPtr run = findRun("a");
  ASSERT_NE(run, nullptr);
  EXPECT_EQ(run->addChunk("2", ""), ReportResult::accepted);
  EXPECT_EQ(storage->chunks().read({"ep", "a"}, 0, 1'000)->chunks.size(), 6U);
  for (int ping = 0; ping < 9; ++ping) {
    pass(Millis(21'999));
    EXPECT_EQ(find("a").state, JobState::inProgress) << "a blocked worker sends only pings";
    remote_.notePing(key_, {"a"}, false);
  }
  pass(Millis(22'000));
  EXPECT_EQ(find("a").losses, 1U);
}

TEST_F(RemoteWorkersRestartTest, ADrainReturnsRunningJobs) {
  const auto connection = connectWorker();
  deliverJob("a");
  remote_.drain(Millis(0), std::nullopt);
  EXPECT_EQ(find("a").state, JobState::inQueue);
  EXPECT_EQ(find("a").losses, 0U);
  const auto take = remote_.beginTake(key_, 1, false, caller_.call());
  EXPECT_EQ(pools_.status("ep").counts.idle, 0U) << "the call is held, and has no place";
  EXPECT_FALSE(remote_.pollTake(key_, *take, false).has_value());
}

TEST_F(RemoteWorkersRestartTest, ADrainForTheNextLifeLeavesTheJobs) {
  const auto connection = connectWorker();
  const RemoteRunPtr run = deliverJob("a");
  remote_.drain(Millis(0), std::set<RemoteWorkerKey>());
  EXPECT_EQ(find("a").state, JobState::inProgress);
  EXPECT_EQ(run->finish(Completed{"1"}), ReportResult::accepted) << "reports are accepted until the end of the process";
}

TEST_F(RemoteWorkersRestartTest, AStopOfTheServerEndsTheCalls) {
  const auto take = remote_.beginTake(key_, 1, false, caller_.call());
  EXPECT_FALSE(stopsOf().has_value());
  remote_.stop();
  EXPECT_THAT(remote_.pollTake(key_, *take, false).value(), IsEmpty());
  EXPECT_THAT(remote_.pollStopWait(key_, *stopWait_, false).value(), IsEmpty());
}

}  // namespace
}  // namespace jobq
