// Tests of the count of a queue between two signals (core/jobs/queue_signal.h).
#include "core/jobs/queue_signal.h"

#include <gtest/gtest.h>

namespace jobq {
namespace {

TEST(QueueSignalTest, JobsOfTheSameTurnWakeTheDispatcherOnce) {
  QueueSignal signal({"a", "b"});
  signal.clear("a");
  signal.clear("b");
  signal.notifySoon("a", false);
  signal.notifySoon("b", true);
  EXPECT_TRUE(signal.isSet("a"));
  EXPECT_TRUE(signal.isSet("b"));
  EXPECT_FALSE(signal.consume());
  signal.flush();
  EXPECT_TRUE(signal.consume());
  signal.notifySoon("a", false);
  signal.flush();
  EXPECT_FALSE(signal.consume()) << "the signal of the endpoint was set already";
}

TEST(QueueSignalTest, OnlyANewlySetSignalIsNews) {
  QueueSignal signal({"a", "b", "c"});
  EXPECT_EQ(signal.collectNews(), (std::vector<EndpointId>{"a", "b", "c"})) << "no queue has been read yet";
  signal.notify("b", false);
  EXPECT_TRUE(signal.collectNews().empty()) << "the jobs of a set signal are already known";
  signal.clear("b");
  signal.notify("b", false);
  signal.notify("b", true);
  signal.rearm("a");
  EXPECT_EQ(signal.collectNews(), std::vector<EndpointId>{"b"}) << "each once";
  signal.beginCount("c");
  signal.endCount("c", true, false);
  EXPECT_TRUE(signal.collectNews().empty()) << "the counting caller already knows the jobs";
  signal.beginCount("c");
  signal.clear("c");
  signal.endCount("c", true, false);
  EXPECT_EQ(signal.collectNews(), std::vector<EndpointId>{"c"}) << "a claim began before the count has ended";
  signal.notifyAll();
  EXPECT_EQ(signal.collectNews().size(), 3U);
}

class QueueCountTest : public testing::Test {
 protected:
  QueueCountTest() { signal_.clear("ep"); }

  QueueSignal signal_{{"ep"}};
};

TEST_F(QueueCountTest, AnEmptyQueueClearsTheSignal) {
  signal_.notify("ep", true);
  signal_.beginCount("ep");
  EXPECT_TRUE(signal_.isSet("ep")) << "jobs may wait until the count has ended";
  signal_.endCount("ep", false, false);
  EXPECT_FALSE(signal_.isSet("ep"));
}

TEST_F(QueueCountTest, AJobArrivingDuringTheCountKeepsTheSignal) {
  for (const bool isLow : {true, false}) {
    signal_.rearm("ep");
    signal_.beginCount("ep");
    signal_.notify("ep", isLow);
    signal_.endCount("ep", false, false);
    EXPECT_TRUE(signal_.isSet("ep")) << (isLow ? "low" : "normal");
    signal_.clear("ep");
  }
}

TEST_F(QueueCountTest, ANormalJobAfterLowPriorityJobsIsNews) {
  signal_.rearm("ep");
  signal_.beginCount("ep");
  signal_.endCount("ep", false, true);
  EXPECT_TRUE(signal_.isSet("ep"));
  EXPECT_FALSE(signal_.notify("ep", true));
  EXPECT_TRUE(signal_.notify("ep", false)) << "a normal job starts a worker";
}

TEST_F(QueueCountTest, WaitingNormalJobsSetBothClasses) {
  signal_.beginCount("ep");
  signal_.endCount("ep", true, false);
  EXPECT_FALSE(signal_.notify("ep", false));
  EXPECT_FALSE(signal_.notify("ep", true));
}

// The count may be older than the claim, and the dispatcher asks again.
TEST_F(QueueCountTest, AClaimDuringTheCountWakesTheDispatcher) {
  signal_.notify("ep", false);
  (void)signal_.consume();
  signal_.beginCount("ep");
  signal_.clear("ep");
  signal_.endCount("ep", true, false);
  EXPECT_TRUE(signal_.consume());
}

TEST_F(QueueCountTest, AnUnknownEndpointIsIgnored) {
  signal_.beginCount("unknown");
  signal_.endCount("unknown", true, true);
  EXPECT_FALSE(signal_.isSet("unknown"));
}

}  // namespace
}  // namespace jobq
