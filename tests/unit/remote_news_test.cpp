// Tests of the news between nodes about remote workers: the text, and the use of the news of other nodes
// (core/workers/remote/remote_elsewhere.h). tests/cluster/remote_workers_test.cpp plays whole servers.
#include "core/workers/remote/remote_news.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <memory>
#include <string>
#include <vector>

#include "core/workers/remote/remote_elsewhere.h"
#include "core/workers/remote/remote_table.h"

namespace jobq {
namespace {

using testing::ElementsAre;
using testing::IsEmpty;
using testing::Pair;

const RemoteWorkerKey kKey{"ep", "w"};

TEST(RemoteNewsTest, TheTextHasAllNews) {
  NodeNews news{7, {}};
  WorkerNews& worker = news.workers[kKey];
  worker.jobs = {{"a", 1}, {"quoted \"", 4'000'000'000}};
  worker.stops = {{"b", 0}};
  worker.isLeaving = true;
  worker.isConnected = true;
  worker.isTorn = true;
  worker.ping = 1'764'000'000'000;
  worker.listed = {{"c", 2}};
  worker.omitted = {{"d", 3}};
  worker.ended = {{"e", 4}};
  worker.unknown = {"f"};
  worker.asks = 1'764'000'000'001;
  worker.shown = {{"node \"", 8}};
  news.workers[{"ep", "silent"}] = {};
  const NodeNews read = readNews(writeNews(news));
  EXPECT_EQ(read.epoch, 7U);
  EXPECT_THAT(read.workers, ElementsAre(Pair(kKey, worker))) << "a worker without news is left out";
  EXPECT_TRUE(read.hasJobs());
  EXPECT_FALSE(readNews(R"({"epoch":1,"workers":[{"endpoint":"ep","worker":"w","connected":1}]})").hasJobs());
}

TEST(RemoteNewsTest, AnUnreadableTextHasNoNews) {
  for (const char* text : {"", "[]", "{", R"({"workers":7})", R"({"workers":[7]})"}) {
    EXPECT_THAT(readNews(text).workers, IsEmpty()) << text;
  }
  EXPECT_THAT(readNews(R"({"workers":[{"endpoint":"ep","worker":"w","jobs":{"a":-1,"b":"x","c":2},"later":1}]})")
                  .workers.at(kKey)
                  .jobs,
              ElementsAre(Pair("c", 2)));
}

class RemoteElsewhereTest : public testing::Test {
 protected:
  RemoteElsewhereTest() { worker_ = table_.findOrAdd(kKey, now_); }

  void hear(const WorkerNews& news, bool isAlive = true) {
    OtherNodes nodes;
    nodes["other"] = {{1, {{kKey, news}}}, isAlive};
    elsewhere_.setNews(nodes, table_, now_, changes_);
  }
  WorkerNews answers() const {
    WorkerNews news;
    elsewhere_.addAnswers(kKey, worker_, now_, news);
    return news;
  }
  bool notePing(const std::vector<JobId>& jobs) { return elsewhere_.notePing(kKey, *worker_, jobs, now_); }
  std::vector<JobId> dueStops() {
    std::vector<JobId> stops;
    elsewhere_.collectDueStops(kKey, now_, stops);
    return stops;
  }

  Instant now_{Millis(1'000'000)};
  RemoteTable table_{true};
  RemoteElsewhere elsewhere_{true};
  RemoteChanges changes_;
  RemoteWorker* worker_ = nullptr;
};

WorkerNews withJob() {
  WorkerNews news;
  news.jobs = {{"a", 3}};
  return news;
}
WorkerNews withStop() {
  WorkerNews news;
  news.stops = {{"a", 3}};
  return news;
}

TEST_F(RemoteElsewhereTest, AWorkerDoesNotGetAJobHeldElsewhere) {
  EXPECT_FALSE(elsewhere_.mayRun(kKey, "a"));
  hear(withJob());
  EXPECT_TRUE(elsewhere_.mayRun(kKey, "a"));
  EXPECT_FALSE(elsewhere_.mayRun(kKey, "b"));
  EXPECT_FALSE(elsewhere_.mayRun({"ep", "another"}, "a"));
  EXPECT_FALSE(elsewhere_.isStopped(kKey, "a")) << "the result of the job counts";
  elsewhere_.noteResult(kKey, "a", 2);
  EXPECT_TRUE(elsewhere_.mayRun(kKey, "a")) << "the result of an earlier attempt";
  elsewhere_.noteResult(kKey, "a", 3);
  EXPECT_FALSE(elsewhere_.mayRun(kKey, "a"));
  EXPECT_THAT(answers().ended, ElementsAre(Pair("a", 3)));
  hear({}, false);
  hear(withJob(), false);
  EXPECT_TRUE(elsewhere_.mayRun(kKey, "a")) << "the worker may run the job of a dead node";
}

TEST_F(RemoteElsewhereTest, APingMayOmitAJobForTheFirst20Seconds) {
  hear(withJob());
  now_ += Millis(19'999);
  notePing({});
  EXPECT_THAT(answers().omitted, IsEmpty()) << "the ping may be older than the job";
  now_ += Millis(1);
  notePing({});
  EXPECT_THAT(answers().omitted, ElementsAre(Pair("a", 3)));
  const std::uint64_t ping = answers().ping;
  notePing({"a"});
  EXPECT_THAT(answers().omitted, IsEmpty());
  EXPECT_THAT(answers().listed, ElementsAre(Pair("a", 3)));
  EXPECT_NE(answers().ping, ping) << "each ping has a different name";
}

TEST_F(RemoteElsewhereTest, AStopIsToldEverySecondUntilTheWorkerObeys) {
  hear(withStop());
  EXPECT_TRUE(elsewhere_.isStopped(kKey, "a"));
  EXPECT_THAT(dueStops(), ElementsAre("a"));
  EXPECT_THAT(dueStops(), IsEmpty());
  now_ += Millis(1'000);
  hear(withStop());
  EXPECT_THAT(dueStops(), ElementsAre("a"));
  notePing({});
  EXPECT_THAT(answers().omitted, ElementsAre(Pair("a", 3))) << "a stop needs no 20 seconds";
  elsewhere_.noteIdle(kKey);
  now_ += Millis(1'000);
  EXPECT_THAT(dueStops(), IsEmpty());
  EXPECT_THAT(answers().ended, ElementsAre(Pair("a", 3)));
  hear({});
  EXPECT_TRUE(answers().isEmpty());
}

TEST_F(RemoteElsewhereTest, PingsAtADifferentNodeCountOnceTheWorkerKnowsTheJob) {
  WorkerNews pings;
  pings.omitted = {{"a", 3}};
  const auto hearPing = [&] {
    ++pings.ping;
    hear(pings);
    return worker_->stops.contains("a");
  };
  worker_->stops["a"] = {now_, now_, 0, 3, true, {}, now_};
  for (int ping = 0; ping < 3; ++ping) EXPECT_TRUE(hearPing()) << "the answer with the job may be on the way";
  pings.omitted.swap(pings.listed);
  EXPECT_TRUE(hearPing());
  pings.omitted.swap(pings.listed);
  EXPECT_TRUE(hearPing());
  EXPECT_FALSE(hearPing()) << "the pings omit a job of the worker";
  worker_->stops["a"] = {now_, now_, 0, 3, true, {}, now_};
  now_ += Millis(20'000);
  EXPECT_TRUE(hearPing());
  EXPECT_FALSE(hearPing()) << "the worker has received the answer by now";
}

TEST_F(RemoteElsewhereTest, APingReceivedBeforeTheNewsHasListedTheJob) {
  EXPECT_TRUE(notePing({"a"}));
  EXPECT_THAT(answers().unknown, ElementsAre("a"));
  hear(withJob());
  EXPECT_THAT(answers().listed, ElementsAre(Pair("a", 3)));
  EXPECT_THAT(answers().unknown, IsEmpty());
  EXPECT_TRUE(notePing({}));
  hear(withJob());
  EXPECT_THAT(answers().listed, IsEmpty()) << "the last ping counts";
}

TEST_F(RemoteElsewhereTest, AStopOfThisNodeEndsByNewsOfADifferentNode) {
  const auto hasStop = [this](const WorkerNews& news) {
    worker_->stops["a"] = {now_, now_, 0, 3, true};
    hear(news);
    return worker_->stops.contains("a");
  };
  WorkerNews news;
  news.ended = {{"a", 2}};
  EXPECT_TRUE(hasStop(news)) << "the end is of an earlier attempt";
  news.ended = {{"a", 3}};
  EXPECT_FALSE(hasStop(news));
  WorkerNews again = withJob();
  EXPECT_TRUE(hasStop(again)) << "the attempt to be stopped still runs";
  again.jobs = {{"a", 4}};
  EXPECT_FALSE(hasStop(again)) << "the worker has the job again";
  WorkerNews pings;
  pings.omitted = {{"a", 3}};
  pings.ping = 1;
  worker_->stops["a"] = {now_, now_, 0, 3, true};
  hear(pings);
  hear(pings);
  EXPECT_TRUE(worker_->stops.contains("a")) << "the same ping";
  pings.ping = 2;
  hear(pings);
  EXPECT_FALSE(worker_->stops.contains("a"));
}

TEST_F(RemoteElsewhereTest, AWorkerWithoutJobsHasStillJobsOfADifferentNode) {
  hear(withJob());
  elsewhere_.noteIdle(kKey);
  EXPECT_TRUE(elsewhere_.mayRun(kKey, "a")) << "the call may be older than the job";
  EXPECT_THAT(answers().ended, IsEmpty());
}

TEST_F(RemoteElsewhereTest, AnUnknownJobOfAPingIsAskedForEverySecond) {
  notePing({"a"});
  EXPECT_TRUE(elsewhere_.mayRun(kKey, "a"));
  EXPECT_THAT(answers().unknown, ElementsAre("a"));
  EXPECT_THAT(elsewhere_.collectUnknown(10, now_), ElementsAre(Pair(kKey, "a")));
  EXPECT_THAT(elsewhere_.collectUnknown(10, now_), IsEmpty());
  now_ += Millis(1'000);
  EXPECT_THAT(elsewhere_.collectUnknown(10, now_), ElementsAre(Pair(kKey, "a")));
  hear(withJob());
  now_ += Millis(1'000);
  EXPECT_THAT(elsewhere_.collectUnknown(10, now_), IsEmpty()) << "a different node has the job";
  WorkerNews news;
  news.unknown = {"b"};
  hear(news);
  EXPECT_TRUE(elsewhere_.mayRun(kKey, "b")) << "the other node does not know either";
}

TEST_F(RemoteElsewhereTest, AQuestionForTheJobsIsAnsweredBehindALaterPing) {
  WorkerNews news;
  news.asks = 5;
  hear(news);
  notePing({});
  EXPECT_THAT(answers().shown, IsEmpty()) << "the ping may be older than the question";
  now_ += kPingDelay;
  hear(news);
  std::vector<JobId> many;
  for (int i = 0; i < 101; ++i) many.push_back("job-" + std::to_string(i));
  EXPECT_FALSE(notePing(many));
  EXPECT_THAT(answers().shown, IsEmpty()) << "the node keeps only some of the jobs";
  EXPECT_TRUE(notePing({"b"}));
  EXPECT_THAT(answers().shown, ElementsAre(Pair("other", 5)));
  EXPECT_THAT(answers().unknown, ElementsAre("b"));
  news.asks = 6;
  hear(news);
  EXPECT_THAT(answers().shown, IsEmpty()) << "the question is new";
  elsewhere_.noteIdle(kKey);
  EXPECT_THAT(answers().shown, ElementsAre(Pair("other", 6))) << "the worker reports to have no job";
  hear(news, false);
  EXPECT_THAT(answers().shown, IsEmpty()) << "the asking node is gone";
}

TEST_F(RemoteElsewhereTest, OnlyAnswersAboutJobsOfOtherNodesAreNews) {
  worker_->link.noteOpened();
  notePing({});
  EXPECT_TRUE(answers().isEmpty()) << "an idle worker makes no news";
  hear(withJob());
  EXPECT_TRUE(answers().isConnected);
  worker_->link.noteEnded(ConnectionEnd::inOrder, now_);
  now_ += Millis(2'999);
  EXPECT_TRUE(answers().isConnected) << "each call may have a separate connection";
  now_ += Millis(1);
  EXPECT_FALSE(answers().isConnected);
}

TEST_F(RemoteElsewhereTest, AConnectionElsewhereCountsWhileTheNodeLives) {
  WorkerNews news;
  news.isConnected = true;
  hear(news);
  EXPECT_EQ(worker_->link.state(), RemoteLink::State::open);
  now_ += Millis(60'000);
  hear(news, false);
  EXPECT_EQ(worker_->link.state(), RemoteLink::State::ended) << "the worker may outlive the dead node";
  EXPECT_TRUE(worker_->link.hasLost(now_ - Millis(12'000), now_ + Millis(10'000)));
  EXPECT_FALSE(worker_->link.hasLost(now_ - Millis(11'999), now_ + Millis(10'000)));
}

TEST_F(RemoteElsewhereTest, AConnectionTornElsewhereIsASignOfDeath) {
  WorkerNews news;
  news.isConnected = true;
  hear(news);
  news.isConnected = false;
  news.isTorn = true;
  hear(news);
  EXPECT_EQ(worker_->link.state(), RemoteLink::State::torn);
  worker_->link.noteOpened();
  hear(news);
  now_ += Millis(9'000);
  worker_->link.noteEnded(ConnectionEnd::inOrder, now_);
  hear(news);
  EXPECT_EQ(worker_->link.state(), RemoteLink::State::ended) << "the news is older than the call";
}

TEST_F(RemoteElsewhereTest, ATornConnectionIsSaidAtOnce) {
  hear(withJob());
  worker_->link.noteOpened();
  worker_->link.noteEnded(ConnectionEnd::torn, now_);
  EXPECT_FALSE(answers().isConnected);
  EXPECT_TRUE(answers().isTorn);
}

// Two nodes with jobs of a killed worker would otherwise tell each other of its connection for ever.
TEST_F(RemoteElsewhereTest, TheEndOfAConnectionElsewhereIsNoConnectionHere) {
  worker_->link.noteOpened();
  worker_->link.noteEnded(ConnectionEnd::inOrder, now_);
  now_ += Millis(3'000);
  WorkerNews news = withJob();
  news.isConnected = true;
  hear(news);
  news.isConnected = false;
  hear(news);
  EXPECT_FALSE(answers().isConnected);
}

TEST_F(RemoteElsewhereTest, PartialNewsIsNotSilence) {
  WorkerNews news;
  news.isPartial = true;
  hear(news);
  EXPECT_EQ(worker_->link.state(), RemoteLink::State::open) << "partial news may omit a connection";
  EXPECT_TRUE(elsewhere_.mayRun(kKey, "any")) << "partial news may omit a job";
  hear(news, false);
  EXPECT_EQ(worker_->link.state(), RemoteLink::State::ended);
  EXPECT_FALSE(elsewhere_.mayRun(kKey, "any"));
}

TEST_F(RemoteElsewhereTest, EndpointsTakeTurnsInTheQuestionsAboutUnknownJobs) {
  std::vector<JobId> many;
  for (int i = 0; i < 100; ++i) many.push_back("made-up-" + std::to_string(i));
  for (const char* const id : {"w1", "w2", "w3"}) {
    const RemoteWorkerKey flooder{"a", id};
    elsewhere_.notePing(flooder, *table_.findOrAdd(flooder, now_), many, now_);
  }
  notePing({"real"});
  const auto asked = elsewhere_.collectUnknown(100, now_);
  EXPECT_EQ(asked.size(), 100U);
  EXPECT_THAT(asked, testing::Contains(Pair(kKey, "real")));
}

TEST_F(RemoteElsewhereTest, UnknownJobsOfAForgottenWorkerAreForgotten) {
  const RemoteWorkerKey unnamed{"ep", "gone"};
  elsewhere_.notePing(unnamed, *worker_, {"a"}, now_);
  hear({});
  EXPECT_FALSE(elsewhere_.mayRun(unnamed, "a")) << "the table does not know the worker";
}

TEST_F(RemoteElsewhereTest, AWorkerLeavingADifferentNodeLeavesThisNode) {
  const auto take = std::make_shared<RemoteTake>();
  table_.beginTake(kKey, *worker_, take, false, now_, changes_);
  take->places = {"w:1"};
  WorkerNews news;
  news.isLeaving = true;
  hear(news);
  EXPECT_TRUE(take->isOver);
  EXPECT_THAT(changes_.calls, testing::SizeIs(1)) << "the call of the worker is answered";
  EXPECT_THAT(changes_.idlePlaces, testing::SizeIs(1));
  const Instant until = worker_->leavesUntil;
  EXPECT_EQ(until, now_ + Millis(5'000));
  EXPECT_FALSE(worker_->mayGet(1, Instant::min(), until - Millis(1)));
  EXPECT_TRUE(worker_->mayGet(1, Instant::min(), until)) << "a new process may have the same id";
  now_ += Millis(1'000);
  hear(news);
  EXPECT_EQ(worker_->leavesUntil, until) << "the same news";
  hear({});
  hear(news);
  EXPECT_EQ(worker_->leavesUntil, now_ + Millis(5'000));
}

TEST_F(RemoteElsewhereTest, SilenceCountsOnlyWithFreshNews) {
  EXPECT_FALSE(elsewhere_.isFresh(now_));
  for (int i = 0; i < 5; ++i) {
    hear({});
    EXPECT_FALSE(elsewhere_.isFresh(now_));
    now_ += Millis(1'000);
  }
  hear({});
  EXPECT_TRUE(elsewhere_.isFresh(now_));
  now_ += Millis(5'001);
  EXPECT_FALSE(elsewhere_.isFresh(now_)) << "the storage does not answer";
  hear({});
  EXPECT_FALSE(elsewhere_.isFresh(now_)) << "the other nodes may have been cut off, too";
  EXPECT_TRUE(RemoteElsewhere(false).isFresh(now_));
}

}  // namespace
}  // namespace jobq
