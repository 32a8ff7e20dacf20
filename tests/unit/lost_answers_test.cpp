// Tests of JobService with a storage that loses the answers of calls (core/jobs/job_service.h).
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <variant>

#include "job_service_fixture.h"
#include "jobq/error.h"
#include "testkit/wait_for.h"
#include "tests/fault/faulty_storage.h"

namespace jobq {
namespace {

using testing::ElementsAre;
using testing::SizeIs;

class LostAnswersTest : public JobServiceTest {};

TEST_F(LostAnswersTest, ACallWithALostAnswerIsRepeated) {
  storage_.faults.failCall("jobs.insert", 1, fault::CallFault::done);
  EXPECT_TRUE(std::holds_alternative<Inserted>(jobs_.submit(job("a"), endpoint_, std::nullopt)));
  EXPECT_EQ(jobs_.counts("ep").inQueue, 1U);
  (void)reports_.finish(claim(), Failed{"no luck", ""}, false);
  storage_.faults.failCall("jobs.requeue", 1, fault::CallFault::done);
  EXPECT_TRUE(std::holds_alternative<Requeued>(jobs_.retry(key("a"), endpoint_)));
  EXPECT_EQ(jobs_.find(key("a"), nullptr).job->retries, 1U);
  storage_.faults.failCall("jobs.cancel", 1, fault::CallFault::done);
  auto waiting = await("a", Millis(5'000));
  EXPECT_TRUE(std::holds_alternative<Cancelled>(jobs_.cancel(key("a"))));
  EXPECT_EQ(testkit::resultOf("the answer to the waiter", waiting)->state, JobState::cancelled);
  EXPECT_EQ(deliveries_.count, 1);
  EXPECT_THAT(storage_.faults.failed(), ElementsAre("jobs.insert", "jobs.requeue", "jobs.cancel"));
}

TEST_F(LostAnswersTest, APossiblyStoredJobIsDispatchedWithoutAnAnswer) {
  storage_.faults.failCall("jobs.insert", 1, fault::CallFault::unanswered);
  EXPECT_THROW(submit("a"), OutcomeUnknown);
  EXPECT_THAT(storage_.faults.failed(), SizeIs(3)) << "the call, and two repetitions";
  EXPECT_TRUE(wasNotified());
  EXPECT_EQ(jobs_.counts("ep").inQueue, 1U);
  storage_.faults.heal();
  (void)reports_.finish(claim(), Failed{"no luck", ""}, false);
  storage_.faults.failCall("jobs.requeue", 1, fault::CallFault::unanswered);
  EXPECT_THROW((void)jobs_.retry(key("a"), endpoint_), OutcomeUnknown);
  EXPECT_TRUE(wasNotified());
  EXPECT_EQ(jobs_.counts("ep").inQueue, 1U);
}

// The storage cannot be reached any more after it has lost an answer.
TEST_F(LostAnswersTest, AFailureBehindALostAnswerLeavesTheOutcomeUnknown) {
  storage_.faults.failCall("jobs.insert", 1, fault::CallFault::done);
  storage_.faults.failCall(storage_.faults.calls() + 2);
  EXPECT_THROW(submit("a"), OutcomeUnknown);
  EXPECT_THAT(storage_.faults.failed(), SizeIs(2));
  EXPECT_TRUE(wasNotified());
  storage_.faults.failNext("jobs.insert");
  try {
    submit("b");
    FAIL() << "the insert did not fail";
  } catch (const OutcomeUnknown&) {
    FAIL() << "a first call that fails has no effect";
  } catch (const StorageError&) {
    EXPECT_FALSE(wasNotified());
  }
}

TEST_F(LostAnswersTest, ACancelWithoutAnAnswerWakesTheWaiters) {
  submit("a");
  auto waiting = await("a", Millis(5'000));
  storage_.faults.failCall("jobs.cancel", 1, fault::CallFault::unanswered);
  EXPECT_THROW((void)jobs_.cancel(key("a")), OutcomeUnknown);
  EXPECT_EQ(testkit::resultOf("the answer to the waiter", waiting)->state, JobState::cancelled);
  EXPECT_EQ(deliveries_.count, 1);
  storage_.faults.heal();
  EXPECT_EQ(std::get<Cancelled>(jobs_.cancel(key("a"))).lease, (LeaseRef{"a", 0})) << "the client's next request";
}

}  // namespace
}  // namespace jobq
