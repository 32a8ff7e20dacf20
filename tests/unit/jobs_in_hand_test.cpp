// Tests of the jobs that jobq-worker has taken and not reported yet (core/worker_program/jobs_in_hand.h).
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <future>

#include "core/worker_program/jobs_in_hand.h"
#include "testkit/wait_for.h"

namespace jobq::worker {
namespace {

using testing::ElementsAre;
using testing::IsEmpty;

class JobsInHandTest : public testing::Test {
 protected:
  static TakenJob job(const JobId& id) { return {id, "{}"}; }

  JobsInHandTest() { jobs_.addHandler(); }
  void remove(const JobPtr& job) { jobs_.remove({&job, 1}); }

  JobsInHand jobs_{2};
};

TEST_F(JobsInHandTest, TheDemandIsTheNumberOfFreeHandlers) {
  jobs_.addHandler();
  EXPECT_EQ(jobs_.awaitDemand()->free, 2U);
  EXPECT_FALSE(jobs_.awaitDemand()->holdsJobs);
  EXPECT_THAT(jobs_.add({job("a")}), IsEmpty());
  const JobPtr taken = jobs_.awaitJob();
  EXPECT_EQ(jobs_.awaitDemand()->free, 1U);
  EXPECT_TRUE(jobs_.awaitDemand()->holdsJobs);
  remove(taken);
  EXPECT_FALSE(jobs_.awaitDemand()->holdsJobs);
}

TEST_F(JobsInHandTest, AHandlerIsFreeBeforeTheResultHasArrived) {
  jobs_.addHandler();
  (void)jobs_.add({job("a"), job("b")});
  const JobPtr first = jobs_.awaitJob();
  EXPECT_EQ(jobs_.awaitJob(first)->job.id, "b");
  EXPECT_EQ(jobs_.awaitDemand()->free, 1U);
  EXPECT_THAT(jobs_.ids(), ElementsAre("a", "b")) << "the jobs stay until the results have arrived";
  remove(first);
  EXPECT_THAT(jobs_.ids(), ElementsAre("b"));
}

TEST_F(JobsInHandTest, NotMoreResultsThanHandlersAreUnsent) {
  jobs_.addHandler();
  (void)jobs_.add({job("a"), job("b")});
  const JobPtr first = jobs_.awaitJob();
  JobPtr last = jobs_.awaitJob(first);
  (void)jobs_.add({job("c"), job("d")});
  last = jobs_.awaitJob(jobs_.awaitJob(last));
  auto demand = std::async(std::launch::async, [this] { return jobs_.awaitDemand(); });
  remove(first);
  EXPECT_EQ(testkit::resultOf("the demand", demand)->free, 1U) << "a job runs, and two results are unsent";
}

TEST_F(JobsInHandTest, EachWaitingJobWakesAHandler) {
  jobs_.addHandler();
  auto one = std::async(std::launch::async, [this] { return jobs_.awaitJob(); });
  auto other = std::async(std::launch::async, [this] { return jobs_.awaitJob(); });
  (void)jobs_.add({job("a"), job("b")});
  EXPECT_NE(testkit::resultOf("a job", one), nullptr);
  EXPECT_NE(testkit::resultOf("a job", other), nullptr);
}

TEST_F(JobsInHandTest, ADemandWaitsForAllHandlers) {
  auto demand = std::async(std::launch::async, [this] { return jobs_.awaitDemand(); });
  jobs_.addHandler();
  EXPECT_EQ(testkit::resultOf("the demand", demand)->free, 2U);
}

TEST_F(JobsInHandTest, ADemandWaitsForAFreeHandler) {
  jobs_.addHandler();
  (void)jobs_.add({job("a"), job("b"), job("c")});
  auto demand = std::async(std::launch::async, [this] { return jobs_.awaitDemand(); });
  const JobPtr a = jobs_.awaitJob();
  const JobPtr b = jobs_.awaitJob();
  remove(a);
  (void)jobs_.awaitJob(a);
  auto handler = std::async(std::launch::async, [&] { return jobs_.awaitJob(b); });
  EXPECT_EQ(testkit::resultOf("the demand", demand)->free, 1U);
  jobs_.endHandlers();
  EXPECT_EQ(testkit::resultOf("the end of the handler", handler), nullptr);
}

TEST_F(JobsInHandTest, AJobInHandIsNotAddedAgain) {
  EXPECT_THAT(jobs_.add({job("a"), job("b"), job("a")}), ElementsAre("a"));
  EXPECT_EQ(jobs_.awaitJob()->job.id, "a");
  EXPECT_EQ(jobs_.awaitJob()->job.id, "b");
}

TEST_F(JobsInHandTest, AStopFiresTheTokenOfTheJob) {
  (void)jobs_.add({job("a"), job("b")});
  const JobPtr first = jobs_.awaitJob();
  const JobPtr second = jobs_.awaitJob();
  jobs_.stopJob("b");
  jobs_.stopJob("unknown");
  EXPECT_FALSE(first->stop.stop_requested());
  EXPECT_TRUE(second->stop.stop_requested());
  EXPECT_FALSE(second->isAbandoned);
  EXPECT_EQ(jobs_.abandonAll(), 2U);
  EXPECT_TRUE(first->stop.stop_requested());
  EXPECT_TRUE(first->isAbandoned);
}

TEST_F(JobsInHandTest, AtTheEndTheJobsInHandAreStillRun) {
  (void)jobs_.add({job("a")});
  jobs_.endTaking();
  EXPECT_FALSE(jobs_.awaitDemand());
  jobs_.endHandlers();
  EXPECT_NE(jobs_.awaitJob(), nullptr);
  EXPECT_EQ(jobs_.awaitJob(), nullptr);
}

}  // namespace
}  // namespace jobq::worker
