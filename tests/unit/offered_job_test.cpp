// Tests of jobs that are inserted and claimed in one step for a waiting caller (core/workers/dispatcher.h).
#include <gtest/gtest.h>

#include <memory>
#include <optional>
#include <string>
#include <utility>
#include <variant>
#include <vector>

#include "core/jobs/queue_signal.h"
#include "dispatcher_fixture.h"
#include "jobq/error.h"
#include "jobq/storage.h"
#include "tests/support/passed_storage.h"

namespace jobq {
namespace {

/// Has the step, made of the two operations of the inner storage.
class OfferingStorage final : public test::PassedStorage {
 public:
  using PassedStorage::PassedStorage;

  std::optional<InsertedAndClaimed> insertAndClaim(JobSpec&& job, const QueuePolicy& policy,
                                                   const std::optional<Idempotency>& idempotency, const ClaimWant& want,
                                                   const Holder& holder, CallId id) override {
    ++calls;
    if (!hasStep) return std::nullopt;
    if (fails) throw StorageError("the disk of this test has failed");
    InsertResult inserted = inner_.jobs().insert(JobSpec(job), policy, idempotency);
    InsertedAndClaimed done{std::move(inserted), inner_.leases().claim(std::vector{want}, holder, id)};
    if (losesAnswer) throw OutcomeUnknown("the connection of this test has broken");
    workers = want.workers.size();
    return done;
  }

  bool hasStep = true;
  bool fails = false;
  bool losesAnswer = false;
  int calls = 0;
  std::size_t workers = 0;  ///< in the last call
};

/// The endpoint `ep` has one worker, which is ready at once.
class OfferedJobTest : public DispatcherTest {
 protected:
  OfferedJobTest() { turn(); }

  std::optional<InsertResult> offer(const JobId& id) {
    job_ = JobSpec();
    job_.id = id;
    job_.endpoint = "ep";
    job_.input = "{}";
    return queueSignal_.insertAndClaim(job_, ArrivalPolicy(), std::nullopt);
  }
  void turn() {
    while (dispatch_.runPassIfDue()) continue;
  }
  WorkerCounts counts() const { return dispatch_.pools.status("ep").counts; }

  OfferingStorage offering_{*storage_};
  BusyExecutor executor_{running_};
  Dispatch dispatch_{offering_, queueSignal_, executor_, running_, clock_, log_, "other", endpoints(handlers_)};
  JobSpec job_;
};

TEST_F(OfferedJobTest, AnIdleWorkerGetsTheJobAtOnce) {
  const auto inserted = offer("a");
  ASSERT_TRUE(inserted);
  EXPECT_TRUE(std::holds_alternative<Inserted>(*inserted));
  EXPECT_EQ(executor_.runs.size(), 1U);
  EXPECT_EQ(counts().running, 1U);
  EXPECT_EQ(offering_.workers, 1U);
}

TEST_F(OfferedJobTest, WithoutAnIdleWorkerTheCallerStoresItsJob) {
  ASSERT_TRUE(offer("a"));
  EXPECT_FALSE(offer("b"));
  EXPECT_EQ(job_.id, "b");
  EXPECT_EQ(offering_.calls, 1);
}

TEST_F(OfferedJobTest, APausedEndpointGivesNoWorker) {
  auto paused = std::make_shared<Endpoint>(*endpoint(handlers_, "ep", 1, 1));
  paused->spec.paused = true;
  dispatch_.pools.setEndpoint(paused);
  EXPECT_FALSE(offer("a"));
  dispatch_.pools.retire("ep");
  EXPECT_FALSE(offer("a"));
  EXPECT_EQ(offering_.calls, 0);
}

TEST_F(OfferedJobTest, AStorageWithoutTheStepIsAskedOnce) {
  offering_.hasStep = false;
  EXPECT_FALSE(offer("a"));
  EXPECT_EQ(counts().idle, 1U) << "the worker is free again";
  EXPECT_FALSE(offer("a"));
  EXPECT_EQ(offering_.calls, 1);
  EXPECT_TRUE(queueSignal_.isSet("ep")) << "a notification during the call must not be lost";
}

TEST_F(OfferedJobTest, AFailedStepFreesTheWorker) {
  offering_.fails = true;
  EXPECT_THROW((void)offer("a"), StorageError);
  EXPECT_EQ(counts().idle, 1U);
  EXPECT_TRUE(queueSignal_.isSet("ep"));
  offering_.fails = false;
  EXPECT_TRUE(offer("b"));
  EXPECT_EQ(executor_.runs.size(), 1U);
}

// The caller repeats the insert, which changes nothing, and the dispatcher asks for the jobs of the claim.
TEST_F(OfferedJobTest, TheJobOfAStepWithoutAnAnswerRunsOnce) {
  offering_.losesAnswer = true;
  EXPECT_FALSE(offer("a"));
  EXPECT_EQ(job_.input, "{}") << "the caller stores the job";
  EXPECT_TRUE(std::holds_alternative<Inserted>(storage_->jobs().insert(JobSpec(job_), ArrivalPolicy(), std::nullopt)));
  EXPECT_EQ(counts().idle, 1U) << "a reserved worker counts as idle";
  turn();
  EXPECT_EQ(executor_.runs.size(), 1U);
  EXPECT_EQ(counts().running, 1U);
  EXPECT_EQ(storage_->jobs().find({"ep", "a"})->attempt, 1U);
}

// The dispatcher thread has to look for more: the claim has found as many jobs as workers.
TEST_F(OfferedJobTest, JobsThatAreLeftAreClaimedByTheDispatcher) {
  submit("ep");
  ASSERT_TRUE(offer("a"));
  EXPECT_EQ(executor_.runs.size(), 1U);
  EXPECT_EQ(storage_->jobs().find({"ep", "a"})->state, JobState::inQueue);
  EXPECT_TRUE(queueSignal_.isSet("ep"));
  EXPECT_TRUE(dispatch_.runPassIfDue());
}

TEST_F(OfferedJobTest, AFencedOrStoppedNodeClaimsNothing) {
  dispatch_.life.setFenced(true);
  EXPECT_FALSE(offer("a"));
  dispatch_.life.setFenced(false);
  dispatch_.dispatcher.stop();
  EXPECT_FALSE(offer("a"));
  EXPECT_EQ(offering_.calls, 0);
}

}  // namespace
}  // namespace jobq
