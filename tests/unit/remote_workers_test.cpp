// Tests of remote workers (core/workers/remote/remote_workers.h): the effect of silence, on a clock moved by hand.
#include "core/workers/remote/remote_workers.h"

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
#include "core/endpoints/worker_pool_view.h"
#include "core/workers/launched/remote_launches.h"
#include "core/workers/remote/remote_roster.h"
#include "core/workers/remote/remote_worker.h"
#include "jobq/lease_store.h"
#include "remote_workers_fixture.h"
#include "testkit/returned_jobs.h"
#include "tests/support/held_caller.h"

namespace jobq {
namespace {

using testing::ElementsAre;
using testing::IsEmpty;

class RemoteWorkersTest : public test::RemoteWorkersFixture {};

TEST_F(RemoteWorkersTest, ACallIsHeldFor25Seconds) {
  const auto take = remote_.beginTake(key_, 3, false, caller_.call());
  EXPECT_EQ(pools_.view("ep").workers.size(), 3U) << "each possible job has a place, beyond workersMax";
  EXPECT_EQ(pools_.status("ep").counts.idle, 1U) << "the places belong to a single worker";
  pass(Millis(24'999));
  EXPECT_FALSE(remote_.pollTake(key_, *take, false).has_value());
  pass(Millis(1));
  EXPECT_THAT(remote_.pollTake(key_, *take, false).value(), IsEmpty());
  EXPECT_EQ(pools_.status("ep").counts.idle, 0U);
}

// The call is continued when the last job of the claim is there, so the answer has all jobs.
TEST_F(RemoteWorkersTest, ACallIsAnsweredWithAllJobsOfAClaim) {
  struct CountedCall final : CallResumer {
    void resume(std::uint64_t /*call*/) noexcept override { ++count; }
    int count = 0;
  } counted;
  const auto take = remote_.beginTake(key_, 3, false, {&counted, 1});
  for (const char* id : {"a", "b", "c"}) storage.insert(id);
  CompletionNotifier completions(storage.clock);
  CompletionNotifier::Waiter stream(completions, {"ep", "a"}, CompletionNotifier::Interest::changes);
  ExecutorChoice choice(executor, remote_, completions);
  for (const ClaimedJob& job : claimForPlaces()) choice.assign(job);
  EXPECT_TRUE(test::HeldCaller().awaitEvent(stream, storage.clock.now())) << "a claim is a change of the job";
  EXPECT_EQ(counted.count, 0);
  choice.sendAssigned();
  EXPECT_EQ(counted.count, 1);
  EXPECT_EQ(remote_.pollTake(key_, *take, false).value().size(), 3U);
  choice.sendAssigned();
  EXPECT_EQ(counted.count, 1) << "no job was assigned since";
}

TEST_F(RemoteWorkersTest, ResultsOfSeveralRunsAreStoredTogether) {
  const RemoteRunPtr a = deliverJob("a");
  const RemoteRunPtr b = deliverJob("b");
  storage.insert("c");
  const RemoteRunPtr gone = deliverNextJob();
  ASSERT_EQ(testkit::release(storage->leases(), std::vector{gone->lease()}), 1U);
  EXPECT_THAT(remote_.findRuns(key_, std::vector<JobId>{"b", "unknown", "a"}), ElementsAre(b, nullptr, a));
  RemoteRun::finishAll({{a, Completed{"1"}}, {gone, Completed{"2"}}, {b, Failed{"no", ""}}});
  remote_.noteResults(key_, std::vector<RemoteWorkers::Reported>{{"a", a}, {"c", gone}, {"b", b}, {"unknown", nullptr}},
                      false);
  EXPECT_EQ(find("a").output, "1");
  EXPECT_EQ(find("b").error, "no");
  EXPECT_EQ(find("c").state, JobState::inQueue);
  EXPECT_TRUE(pools_.view("ep").workers.empty()) << "the places have ended";
}

// Two processes with one id would otherwise make each other call without a pause.
TEST_F(RemoteWorkersTest, AReplacedCallIsAnsweredWithinASecond) {
  test::HeldCaller other;
  const auto take = remote_.beginTake(key_, 1, std::nullopt, caller_.call());
  const auto later = remote_.beginTake(key_, 1, std::nullopt, other.call());
  EXPECT_FALSE(caller_.isResumed());
  pass(Millis(1'000));
  EXPECT_TRUE(caller_.isResumed());
  EXPECT_THAT(remote_.pollTake(key_, *take, false).value(), IsEmpty());
  EXPECT_FALSE(other.isResumed());
  EXPECT_FALSE(remote_.pollTake(key_, *later, false).has_value());
  (void)remote_.pollTake(key_, *later, true);
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
TEST_F(RemoteWorkersTest, TwoPingsWithoutTheJobLoseTheJob) {
  const auto connection = connectWorker();
  deliverJob("a");
  remote_.notePing(key_, {}, false);
  remote_.notePing(key_, {}, false);
  pass(Millis(20'000));
  EXPECT_EQ(find("a").state, JobState::inProgress) << "both pings came too early";
  remote_.notePing(key_, {}, false);
  remote_.notePing(key_, {"a"}, false);
  remote_.notePing(key_, {}, false);
  EXPECT_EQ(find("a").state, JobState::inProgress) << "no two in a row";
  remote_.notePing(key_, {}, false);
  EXPECT_EQ(find("a").state, JobState::inQueue);
  EXPECT_EQ(find("a").losses, 1U);
}

TEST_F(RemoteWorkersTest, TenSecondsAfterATornConnectionTheJobsAreLost) {
  auto connection = connectWorker();
  auto other = connectWorker();
  deliverJob("a");
  EXPECT_TRUE(connection->needsConnection());
  tear(connection);
  pass(Millis(30'000));
  EXPECT_EQ(find("a").state, JobState::inProgress) << "a connection is left";
  tear(other);
  pass(Millis(9'999));
  EXPECT_EQ(find("a").state, JobState::inProgress);
  remote_.notePing(key_, {"a"}, false);
  pass(Millis(1));
  EXPECT_EQ(find("a").state, JobState::inQueue) << "the ping process may outlive the worker";
  connection = connectWorker();
  EXPECT_FALSE(connection->needsConnection());
}

// The worker takes no job now. The jobs of the worker have 10 seconds, because the worker may come back.
TEST_F(RemoteWorkersTest, AWorkerWithoutConnectionsIsNotIdle) {
  const auto states = [this] {
    std::vector<std::string> states;
    for (const WorkerView& worker : remote_.view("ep")) states.emplace_back(worker.state);
    return states;
  };
  const auto hasNoConnection = [this] {
    return RemoteLaunches(remote_.registry()).loads("ep").at("w").hasNoConnection;
  };
  auto connection = connectWorker();
  deliverJob("a");
  EXPECT_THAT(states(), ElementsAre("running"));
  EXPECT_FALSE(hasNoConnection());
  tear(connection);
  pass(Millis(9'999));
  EXPECT_THAT(states(), ElementsAre("running"));
  EXPECT_TRUE(hasNoConnection());
  pass(Millis(1));
  EXPECT_THAT(states(), IsEmpty());
  connection = connectWorker();
  EXPECT_THAT(states(), ElementsAre("idle"));
  connection.reset();
  EXPECT_THAT(states(), IsEmpty()) << "the worker leaves at once";
}

// Ids are free text: a client may make up any number of them.
TEST_F(RemoteWorkersTest, AWorkerTakesThePlaceOfAWorkerWithoutAnyJob) {
  const auto connection = connectWorker();
  const RemoteRunPtr run = deliverJob("a", {"ep", "has worked"});
  remote_.noteResults({"ep", "has worked"}, std::vector{RemoteWorkers::Reported{"a", run}}, false);
  for (int i = 0; i < 20'000; ++i) remote_.notePing({"ep", "made up " + std::to_string(i)}, {}, false);
  EXPECT_EQ(remote_.connect({"ep", "made up 0"}, WorkerCall::question), nullptr) << "forgotten";
  for (const char* worker : {"w", "has worked", "made up 19999"}) {
    EXPECT_NE(remote_.connect({"ep", worker}, WorkerCall::question), nullptr) << worker;
  }
}

TEST_F(RemoteWorkersTest, TheLastPlacesAreForEndpointsWithFewWorkers) {
  const auto waits = [this](const EndpointId& endpoint, int worker) {
    return remote_.beginStopWait({endpoint, std::to_string(worker)}, caller_.call()) != nullptr;
  };
  for (int i = 0; i < 9'000; ++i) ASSERT_TRUE(waits("ep", i)) << i;
  EXPECT_FALSE(waits("ep", 9'000));
  EXPECT_TRUE(waits("ep", 0)) << "a known worker";
  for (int i = 0; i < 999; ++i) ASSERT_TRUE(waits("other", i)) << i;
  EXPECT_TRUE(waits("third", 0));
  EXPECT_FALSE(waits("third", 1)) << "all places are taken";
}

TEST(RemoteRosterTest, EndpointsWithoutAWorkerAreRememberedUpToABound) {
  RemoteRoster roster;
  const auto endpointAt = [](int number) { return "ep" + std::to_string(number); };
  constexpr int kEndpoints = 30'000;
  for (int number = 0; number < kEndpoints; ++number) {
    ASSERT_NE(roster.add({endpointAt(number), "w"}), nullptr);
    roster.removeIf([](const RemoteWorkerKey&, const RemoteWorker&) { return true; });
  }
  int remembered = 0;
  for (int number = 0; number < kEndpoints; ++number) remembered += roster.hasServed(endpointAt(number)) ? 1 : 0;
  EXPECT_LE(remembered, 10'000);
  EXPECT_TRUE(roster.hasServed(endpointAt(kEndpoints - 1)));
}

// The storage may fail just then.
TEST_F(RemoteWorkersTest, ALossIsOfferedUntilTheStorageAccepts) {
  auto connection = connectWorker();
  deliverJob("a");
  tear(connection);
  storage.faults.failOperation("leases.giveBack");
  pass(Millis(10'000));
  EXPECT_EQ(find("a").state, JobState::inProgress);
  storage.faults.heal();
  pass(Millis(1'000));
  EXPECT_EQ(find("a").losses, 1U);
}

TEST_F(RemoteWorkersTest, ALostJobMayGoToTheSameWorkerAtOnce) {
  const auto connection = connectWorker();
  const RemoteRunPtr run = deliverJob("a");
  remote_.noteResults(key_, std::vector{RemoteWorkers::Reported{"a", run, true}}, false);
  EXPECT_EQ(find("a").state, JobState::inQueue);
  EXPECT_EQ(find("a").losses, 1U);
  EXPECT_EQ(pools_.status("ep").counts.running, 0U);
  const RemoteRunPtr again = deliverNextJob();
  ASSERT_NE(again, nullptr);
  remote_.noteResults(key_, std::vector{RemoteWorkers::Reported{"a", run, true}}, false);
  EXPECT_EQ(find("a").losses, 1U) << "the loss was of the attempt before";
}

TEST_F(RemoteWorkersTest, ALossIsKeptUntilTheStorageWorks) {
  const auto connection = connectWorker();
  const RemoteRunPtr run = deliverJob("a");
  storage.faults.failOperation("leases.giveBack");
  remote_.noteResults(key_, std::vector{RemoteWorkers::Reported{"a", run, true}}, false);
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
    EXPECT_FALSE(stopsOf().has_value()) << "a stop is sent once a second";
    pass(Millis(1'000));
  }
  remote_.notePing(key_, {"a"}, false);
  remote_.notePing(key_, {}, false);
  EXPECT_THAT(stopsOf().value(), ElementsAre("a"));
  remote_.notePing(key_, {}, false);
  pass(Millis(1'000));
  EXPECT_FALSE(stopsOf().has_value());
}

// Pings come from a separate process: a ping leaves out a job until the worker has read the answer with the job.
TEST_F(RemoteWorkersTest, PingsBeforeTheWorkerKnowsTheJobDoNotEndTheStop) {
  const auto connection = connectWorker();
  running.stop(deliverJob("a")->lease());
  for (int ping = 0; ping < 3; ++ping) {
    EXPECT_THAT(stopsOf().value(), ElementsAre("a")) << "the answer with the job may be on the way";
    EXPECT_FALSE(stopsOf().has_value()) << "a stop is sent once a second";
    remote_.notePing(key_, {}, false);
    pass(Millis(1'000));
  }
  const auto take = remote_.beginTake(key_, 1, true, caller_.call());
  for (int ping = 0; ping < 2; ++ping) remote_.notePing(key_, {}, false);
  EXPECT_FALSE(stopsOf().has_value()) << "a worker that calls again has read the answer";
}

TEST_F(RemoteWorkersTest, AStopOfAListedJobEndsByTwoPings) {
  const auto connection = connectWorker();
  const LeaseRef lease = deliverJob("a")->lease();
  remote_.notePing(key_, {"a"}, false);
  running.stop(lease);
  EXPECT_THAT(stopsOf().value(), ElementsAre("a"));
  for (int ping = 0; ping < 2; ++ping) remote_.notePing(key_, {}, false);
  pass(Millis(1'000));
  EXPECT_FALSE(stopsOf().has_value());
}

// A public worker of an early release never asks for stops.
TEST_F(RemoteWorkersTest, WithoutCallsForStopsPingsCountAfterTwentySeconds) {
  const auto connection = connectWorker();
  running.stop(deliverJob("a")->lease());
  testkit::release(storage.real->leases(), std::vector{LeaseRef{"a", 1}});
  for (int ping = 0; ping < 3; ++ping) remote_.notePing(key_, {}, false);
  EXPECT_EQ(deliverNextJob(), nullptr);
  pass(Millis(20'000));
  for (int ping = 0; ping < 2; ++ping) remote_.notePing(key_, {}, false);
  EXPECT_NE(deliverNextJob(), nullptr);
}

// The result of the earlier attempt would look like one of the new attempt.
TEST_F(RemoteWorkersTest, APossiblyRunningJobGoesBack) {
  const auto connection = connectWorker();
  running.stop(deliverJob("a")->lease());
  testkit::release(storage.real->leases(), std::vector{LeaseRef{"a", 1}});
  EXPECT_EQ(deliverNextJob(), nullptr);
  EXPECT_EQ(find("a").state, JobState::inQueue);
  EXPECT_EQ(find("a").losses, 0U);
  remote_.notePing(key_, {"a"}, false);
  remote_.notePing(key_, {}, false);
  remote_.notePing(key_, {}, false);
  EXPECT_NE(deliverNextJob(), nullptr);
}

TEST_F(RemoteWorkersTest, AJobClaimedAfterTheCallWaitsForTheNextCall) {
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
  EXPECT_THAT(remote_.pollTake(key_, *take, true).value(), IsEmpty()) << "the client has left";
  remote_.assign(jobs.at(0));
  pass(Millis(10'000));
  EXPECT_EQ(find("a").state, JobState::inQueue);
  EXPECT_EQ(find("a").losses, 0U);
  EXPECT_EQ(pools_.status("ep").counts.running, 0U);
}

// The claim of a place may end behind its call: the job is for the call that is parked now.
TEST_F(RemoteWorkersTest, AJobClaimedAfterTheCallTakesAPlaceOfTheNextCall) {
  storage.insert("a");
  const auto take = remote_.beginTake(key_, 1, false, caller_.call());
  const auto jobs = claimForPlaces();
  pass(Millis(25'000));
  EXPECT_THAT(remote_.pollTake(key_, *take, false).value(), IsEmpty());
  const auto next = remote_.beginTake(key_, 1, false, caller_.call());
  EXPECT_EQ(pools_.view("ep").workers.size(), 2U) << "the job and the call have a place each";
  remote_.assign(jobs.at(0));
  EXPECT_EQ(remote_.pollTake(key_, *next, false).value().at(0)->lease(), jobs[0].lease);
  EXPECT_EQ(pools_.view("ep").workers.size(), 1U);
}

TEST_F(RemoteWorkersTest, APlaceWithoutACallEndsWithTheClaim) {
  const auto take = remote_.beginTake(key_, 1, false, caller_.call());
  const auto wants = pools_.reserveWorkers({nullptr, 10, true});
  ASSERT_EQ(wants.size(), 1U);
  pass(Millis(25'000));
  EXPECT_THAT(remote_.pollTake(key_, *take, false).value(), IsEmpty());
  pools_.concludeReservations(wants, {});
  EXPECT_EQ(pools_.status("ep").counts.idle, 0U) << "the next job would have no receiver";
}

TEST_F(RemoteWorkersTest, ACutOffWorkerGetsNoPossiblyRunningJob) {
  auto connection = connectWorker();
  deliverJob("a");
  tear(connection);
  pass(Millis(10'000));
  EXPECT_EQ(find("a").losses, 1U);
  connection = connectWorker();
  EXPECT_EQ(deliverNextJob(), nullptr);
  EXPECT_EQ(find("a").losses, 1U);
  pass(Millis(30'000));
  EXPECT_NE(deliverNextJob(), nullptr) << "the first job of the queue does not wait for ever";
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

}  // namespace
}  // namespace jobq
