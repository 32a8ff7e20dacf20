// Tests of the state of a remote worker after ends of connections and pings (core/workers/remote/remote_link.h), of
// workers with the same id (core/workers/remote/remote_rivals.h), and of the other statements of a worker.
#include "core/workers/remote/remote_link.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cstddef>
#include <memory>
#include <vector>

#include "core/base/connection_owner.h"
#include "core/workers/remote/remote_worker.h"
#include "core/workers/remote/remote_workers.h"
#include "remote_workers_fixture.h"

namespace jobq {
namespace {

using testing::HasSubstr;
using testing::Not;

class RemoteLinkTest : public test::RemoteWorkersFixture {};

// A proxy may close the connection after each answer, and an early public worker closes an idle connection after 15 s.
TEST_F(RemoteLinkTest, AfterAnOrderlyEndThePingsListTheJobs) {
  auto connection = connectWorker();
  deliverJob("a");
  deliverJob("b");
  connection.reset();
  for (int ping = 0; ping < 9; ++ping) {
    pass(Millis(10'000));
    remote_.notePing(key_, ping == 0 ? std::vector<JobId>{"a", "b"} : std::vector<JobId>{"a"}, false);
  }
  EXPECT_EQ(find("a").state, JobState::inProgress);
  EXPECT_EQ(find("b").losses, 1U) << "the pings omit the job";
  EXPECT_EQ(remote_.view("ep").at(0).state, "running") << "the worker has a job";
  pass(Millis(21'999));
  EXPECT_EQ(find("a").state, JobState::inProgress);
  pass(Millis(1));
  EXPECT_EQ(find("a").losses, 1U) << "two pings are missing";
}

TEST_F(RemoteLinkTest, AJobHasTwoIntervalsToAppearInAPing) {
  auto connection = connectWorker();
  deliverJob("a");
  connection.reset();
  pass(Millis(21'999));
  EXPECT_EQ(find("a").state, JobState::inProgress);
  pass(Millis(1));
  EXPECT_EQ(find("a").losses, 1U);
}

// The kernel closes the connections of a killed process one after the other.
TEST_F(RemoteLinkTest, AnOrderlyEndNextToATornConnectionIsNoSign) {
  auto first = connectWorker();
  auto last = connectWorker();
  deliverJob("a");
  tear(first);
  pass(Millis(1'000));
  last.reset();
  for (int second = 0; second < 10; ++second) {
    EXPECT_EQ(find("a").losses, 0U) << second;
    remote_.notePing(key_, {"a"}, false);
    pass(Millis(1'000));
  }
  EXPECT_EQ(find("a").losses, 1U);
}

TEST_F(RemoteLinkTest, ACallAfterATornConnectionIsASignOfLife) {
  auto torn = connectWorker();
  deliverJob("a");
  tear(torn);
  auto next = connectWorker();
  next.reset();
  pass(Millis(21'999));
  EXPECT_EQ(find("a").state, JobState::inProgress) << "the pings decide";
}

// A public worker sends each progress over a connection of its own.
TEST_F(RemoteLinkTest, TheEndOfAConnectionWithReportsAloneIsInOrder) {
  auto connection = connectWorker();
  deliverJob("a");
  auto progress = remote_.connect(key_, WorkerCall::report);
  tear(progress);
  connection.reset();
  pass(Millis(21'999));
  EXPECT_EQ(find("a").state, JobState::inProgress);
  auto asked = connectWorker();
  auto report = remote_.connect(key_, WorkerCall::report);
  report->noteFormer(*asked);
  asked.reset();
  tear(report);
  pass(Millis(10'000));
  EXPECT_EQ(find("a").losses, 1U) << "the former connection has asked for stops";
}

// Replicas of a container share their environment.
TEST_F(RemoteLinkTest, TwoProcessesWithTheSameIdAreAWarning) {
  std::vector<std::shared_ptr<RemoteTake>> takes;
  const auto callTimes = [&](int times) {
    for (int call = 0; call < times; ++call) takes.push_back(remote_.beginTake(key_, 1, false, caller_.call()));
  };
  callTimes(4);
  pass(Millis(30'000));
  callTimes(3);
  EXPECT_THAT(storage.log.text(), Not(HasSubstr("remote.sharedId"))) << "a process may have been replaced";
  callTimes(1);
  EXPECT_THAT(storage.log.text(), HasSubstr("remote.sharedId: two processes work as w of the endpoint ep"));
  const std::size_t lines = storage.log.lines().size();
  pass(Millis(30'000));
  callTimes(5);
  EXPECT_EQ(storage.log.lines().size(), lines) << "the log has a single line in ten minutes";
}

TEST_F(RemoteLinkTest, AResultOfADisownedJobIsASignOfASecondProcess) {
  const auto connection = connectWorker();
  for (const char* id : {"a", "b", "c", "d"}) {
    deliverJob(id);
    EXPECT_THAT(storage.log.text(), Not(HasSubstr("remote.sharedId")));
    auto other = remote_.beginTake(key_, 1, false, caller_.call());
    (void)remote_.pollTake(key_, *other, true);
    EXPECT_EQ(find(id).losses, 1U);
    (void)storage.real->jobs().cancel({"ep", id});
    noteResult(id, nullptr);
  }
  EXPECT_THAT(storage.log.text(), HasSubstr("remote.sharedId"));
}

TEST_F(RemoteLinkTest, JobsInTheSameAnswerNameTheAnswer) {
  std::string shared;
  deliverJob("a")->moveText(shared, "", "b1");
  EXPECT_THAT(shared, HasSubstr(R"("batchId":"b1")"));
  std::string alone;
  deliverJob("b")->moveText(alone, "", "");
  EXPECT_THAT(alone, Not(HasSubstr("batchId")));
}

// Else a text of 20 MB is copied at each growth, and the processors have less time for others.
TEST_F(RemoteLinkTest, TheTextOfAJobFitsIntoTheSize) {
  const auto run = deliverJob("a");
  std::string text;
  text.reserve(run->textSize());
  const char* const begin = text.data();
  run->moveText(text, "", "batch");
  EXPECT_EQ(text.data(), begin);
  EXPECT_EQ(run->inputSize(), 0U);
}

TEST_F(RemoteLinkTest, TheReasonOfAnUnhealthyPingIsShownUntilTheWorkerIsWell) {
  remote_.notePing(key_, {}, true, "disk: 4 % are free");
  EXPECT_EQ(remote_.view("ep").at(0).state, "unhealthy");
  EXPECT_EQ(remote_.view("ep").at(0).reason, "disk: 4 % are free");
  remote_.notePing(key_, {}, false);
  EXPECT_EQ(remote_.view("ep").at(0).reason, "");
}

TEST_F(RemoteLinkTest, AnEndedProcessWithoutConnectionsHasLostTheJobs) {
  RemoteLink link;
  const Instant now(Millis(1'000'000));
  link.begin(now);
  link.noteOpened();
  link.noteExit();
  EXPECT_FALSE(link.hasLost(now, now)) << "a result may be among the unread bytes";
  EXPECT_TRUE(link.noteEnded(ConnectionEnd::inOrder, now));
  EXPECT_TRUE(link.hasLost(now, now));
  link.noteElsewhere(true, false, now);
  EXPECT_EQ(link.state(), RemoteLink::State::exited);
}

}  // namespace
}  // namespace jobq
