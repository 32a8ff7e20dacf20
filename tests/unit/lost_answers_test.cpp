// Tests of JobService with a storage that loses the answers of its calls (core/jobs/job_service.h).
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

class LostAnswersTest : public JobServiceTest {};

TEST_F(LostAnswersTest, ACallWhoseAnswerIsLostIsRepeated) {
  storage_.faults.failCall("jobs.insert", 1, fault::CallFault::done);
  EXPECT_TRUE(std::holds_alternative<Inserted>(jobs_.submit(job("a"), endpoint_, std::nullopt)));
  EXPECT_EQ(jobs_.counts("ep").inQueue, 1U);
  (void)reports_.finish(claim(), Failed{"no luck", ""}, false);
  storage_.faults.failCall("jobs.requeue", 1, fault::CallFault::done);
  EXPECT_TRUE(std::holds_alternative<Requeued>(jobs_.retry(key("a"), endpoint_)));
  EXPECT_EQ(jobs_.find(key("a"))->retries, 1U);
  storage_.faults.failCall("jobs.cancel", 1, fault::CallFault::done);
  auto waiting = await("a", Millis(5'000));
  EXPECT_TRUE(std::holds_alternative<Cancelled>(jobs_.cancel(key("a"))));
  EXPECT_EQ(testkit::resultOf("the answer to the waiter", waiting)->state, JobState::cancelled);
  EXPECT_EQ(deliveries_.count, 1);
  EXPECT_THAT(storage_.faults.failed(), ElementsAre("jobs.insert", "jobs.requeue", "jobs.cancel"));
}

TEST_F(LostAnswersTest, AJobThatMayBeStoredIsDispatchedThoughNoAnswerCame) {
  storage_.faults.failCall("jobs.insert", 1, fault::CallFault::unanswered);
  EXPECT_THROW(submit("a"), OutcomeUnknown);
  EXPECT_TRUE(wasNotified());
  EXPECT_EQ(jobs_.counts("ep").inQueue, 1U);
  storage_.faults.heal();
  (void)reports_.finish(claim(), Failed{"no luck", ""}, false);
  storage_.faults.failCall("jobs.requeue", 1, fault::CallFault::unanswered);
  EXPECT_THROW((void)jobs_.retry(key("a"), endpoint_), OutcomeUnknown);
  EXPECT_TRUE(wasNotified());
  EXPECT_EQ(jobs_.counts("ep").inQueue, 1U);
}

}  // namespace
}  // namespace jobq
