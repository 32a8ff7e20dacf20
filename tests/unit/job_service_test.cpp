// Tests of the calls on jobs and of the reports of workers: stored jobs, and woken waiters (core/jobs/job_service.h,
// core/jobs/run_reports.h).
#include "core/jobs/job_service.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cstdint>
#include <future>
#include <memory>
#include <string>
#include <vector>

#include "job_service_fixture.h"
#include "testkit/wait_for.h"

namespace jobq {
namespace {

using testing::IsEmpty;
using testing::SizeIs;

TEST_F(JobServiceTest, ASubmittedJobIsStoredAndTheDispatcherHearsOfIt) {
  EXPECT_TRUE(std::holds_alternative<Inserted>(jobs_.submit(job("a"), endpoint_, std::nullopt)));
  EXPECT_EQ(jobs_.find(key("a"))->state, JobState::inQueue);
  EXPECT_TRUE(wasNotified());
  EXPECT_FALSE(jobs_.find({"other", "a"})) << "a job of another endpoint is absent";
}

TEST_F(JobServiceTest, ARepeatedSubmissionIsTheFirstOne) {
  const Idempotency idempotency{"k", "hash"};
  EXPECT_FALSE(jobs_.findByIdempotencyKey(endpoint_, "key", idempotency));
  (void)jobs_.submit(job("a"), endpoint_, idempotency);
  (void)wasNotified();
  const InsertResult again = jobs_.submit(job("b"), endpoint_, idempotency);
  EXPECT_EQ(std::get<Duplicate>(again).id, "a");
  EXPECT_FALSE(wasNotified()) << "nothing new waits";
  EXPECT_TRUE(std::holds_alternative<KeyConflict>(jobs_.submit(job("c"), endpoint_, Idempotency{"k", "other"})));
  EXPECT_EQ(std::get<Duplicate>(jobs_.findByIdempotencyKey(endpoint_, "key", idempotency).value()).id, "a");
  EXPECT_FALSE(jobs_.find(key("b")));
}

TEST_F(JobServiceTest, AFailedSubmissionNotifiesNoThread) {
  storage_.faults.failNext("jobs.insert");
  EXPECT_THROW(submit("a"), StorageError);
  EXPECT_FALSE(wasNotified());
}

TEST_F(JobServiceTest, AWaiterGetsTheJobWhenItEnds) {
  submit("a");
  auto waiting = await("a", Millis(5'000));
  EXPECT_EQ(reports_.finish(claim(), Completed{"7"}, false), ReportResult::accepted);
  EXPECT_EQ(testkit::resultOf("the answer to the waiter", waiting)->output, "7");
  EXPECT_EQ(deliveries_.count, 0) << "the job has no webhook";
}

TEST_F(JobServiceTest, AFailureWithoutAMessageGetsOne) {
  submit("a");
  EXPECT_EQ(reports_.finish(claim(), Failed{"", "7"}, false), ReportResult::accepted);
  EXPECT_EQ(jobs_.find(key("a"))->error, "the handler failed without a message");
  EXPECT_EQ(jobs_.find(key("a"))->output, "7");
}

TEST_F(JobServiceTest, AWaiterGetsTheJobAsItIsWhenItsTimeIsOver) {
  submit("a");
  auto waiting = await("a", Millis(5'000));
  storage_.clock.advance(Millis(5'000));
  EXPECT_EQ(testkit::resultOf("the end of the wait", waiting)->state, JobState::inQueue);
}

TEST_F(JobServiceTest, AJobThatHasEndedIsNotWaitedFor) {
  submit("a");
  (void)jobs_.cancel(key("a"));
  EXPECT_EQ(jobs_.await(key("a"), Millis(5'000), stays)->state, JobState::cancelled);
  EXPECT_FALSE(jobs_.await(key("b"), Millis(5'000), stays));
}

TEST_F(JobServiceTest, ACancelAnswersTheWaitersAndLooksAfterTheWebhook) {
  submit("a");
  auto waiting = await("a", Millis(5'000));
  EXPECT_TRUE(std::holds_alternative<Cancelled>(jobs_.cancel(key("a"))));
  EXPECT_EQ(testkit::resultOf("the answer to the waiter", waiting)->state, JobState::cancelled);
  EXPECT_EQ(deliveries_.count, 1);
  EXPECT_TRUE(std::holds_alternative<NotFound>(jobs_.cancel(key("b"))));
  EXPECT_EQ(deliveries_.count, 1);
  EXPECT_TRUE(std::holds_alternative<Cancelled>(jobs_.cancel(key("a")))) << "a repeated call";
  EXPECT_EQ(deliveries_.count, 2) << "the first call may have failed before it";
}

TEST_F(JobServiceTest, AStaleResultWakesNoCallerAndOwesNothing) {
  submit("a");
  const LeaseRef lease = claim();
  (void)jobs_.cancel(key("a"));
  EXPECT_EQ(reports_.finish(lease, Completed{"7"}, true), ReportResult::staleAttempt);
  EXPECT_EQ(deliveries_.count, 1) << "the cancel's";
}

TEST_F(JobServiceTest, AResultWithAWebhookIsOwed) {
  submit("a");
  EXPECT_EQ(reports_.finish(claim(), Completed{"7"}, true), ReportResult::accepted);
  EXPECT_EQ(deliveries_.count, 1);
}

TEST_F(JobServiceTest, ARetryWaitsAgainAndNotifies) {
  submit("a");
  (void)reports_.finish(claim(), Failed{"no luck", ""}, false);
  (void)wasNotified();
  EXPECT_TRUE(std::holds_alternative<Requeued>(jobs_.retry(key("a"), endpoint_)));
  EXPECT_TRUE(wasNotified());
  EXPECT_EQ(jobs_.find(key("a"))->state, JobState::inQueue);
  EXPECT_TRUE(std::holds_alternative<WrongState>(jobs_.retry(key("a"), endpoint_)));
  EXPECT_FALSE(wasNotified());
}

TEST_F(JobServiceTest, APurgeRemovesWhatWaitsAndAnswersItsWaiters) {
  submit("running");
  (void)claim();
  submit("a");
  submit("b");
  auto waiting = await("b", Millis(5'000));
  EXPECT_EQ(jobs_.purge("ep"), 2U);
  EXPECT_FALSE(testkit::resultOf("the answer to the waiter", waiting));
  EXPECT_EQ(jobs_.counts("ep").inProgress, 1U);
}

TEST_F(JobServiceTest, APurgeThatFailsHalfWayAnswersAllItConcerned) {
  submit("a");
  auto waiting = await("a", Millis(5'000));
  (void)storage_.real->jobs().purgeQueued("ep");  // the purge is done in the storage, and then reports a failure
  storage_.faults.failNext("jobs.purgeQueued");
  EXPECT_THROW((void)jobs_.purge("ep"), StorageError);
  EXPECT_FALSE(testkit::resultOf("the answer to the waiter", waiting));
}

TEST_F(JobServiceTest, AReleasedJobWaitsAgainAndNotifies) {
  submit("a");
  const LeaseRef lease = claim();
  (void)wasNotified();
  reports_.release({lease}, "ep");
  EXPECT_TRUE(wasNotified());
  reports_.release({lease}, "ep");
  EXPECT_FALSE(wasNotified()) << "it has gone back already";
}

TEST_F(JobServiceTest, ASubmissionThatWaitsGetsTheResult) {
  std::vector<bool> durable;
  test::CallingClaimer claimer([&] {
    EXPECT_THAT(durable, SizeIs(1)) << "the caller was told before the job runs";
    (void)reports_.finish(claim(), Completed{"7"}, false);
  });
  queueSignal_.setClaimer(claimer);
  const auto waited = jobs_.submitAndAwait(
      job("a"), endpoint_, std::nullopt, Millis(5'000), [&](const InsertResult&) { durable.push_back(true); }, stays);
  EXPECT_TRUE(std::holds_alternative<Inserted>(waited.inserted));
  EXPECT_EQ(waited.job->output, "7");
  EXPECT_THAT(durable, SizeIs(1));
}

TEST_F(JobServiceTest, ARepeatedSubmissionThatWaitsGetsTheFirstJobsResult) {
  const Idempotency idempotency{"k", "hash"};
  (void)jobs_.submit(job("a"), endpoint_, idempotency);
  (void)reports_.finish(claim(), Completed{"7"}, false);
  const auto ignore = [](const InsertResult&) {};
  const auto waited = jobs_.submitAndAwait(job("b"), endpoint_, idempotency, Millis(5'000), ignore, stays);
  EXPECT_EQ(std::get<Duplicate>(waited.inserted).id, "a");
  EXPECT_EQ(waited.job->output, "7");
  const auto other = jobs_.submitAndAwait(job("c"), endpoint_, Idempotency{"k", "x"}, Millis(5'000), ignore, stays);
  EXPECT_TRUE(std::holds_alternative<KeyConflict>(other.inserted));
  EXPECT_FALSE(other.job);
}

TEST_F(JobServiceTest, ASubmissionWhoseCallerHasGoneWaitsNoLonger) {
  std::stop_source gone;
  auto waiting = std::async(std::launch::async, [&] {
    return jobs_.submitAndAwait(
        job("a"), endpoint_, std::nullopt, Millis(5'000), [](const InsertResult&) {},
        [&gone] { return gone.get_token(); });
  });
  storage_.clock.awaitWaiter(Millis(1), Millis(5'000));
  gone.request_stop();
  EXPECT_EQ(testkit::resultOf("the end of the wait", waiting).job->state, JobState::inQueue)
      << "the job itself goes on";
}

using Stream = JobService::Stream;

class StreamTest : public JobServiceTest {
 protected:
  StreamTest() {
    submit("a");
    lease_ = claim();
  }

  /// Starts a caller of /stream. The caller waits 100 ms for chunks and then for the first chunk, up to 5 s in all.
  std::future<Stream> stream(std::stop_token gone = {}) {
    return std::async(std::launch::async, [this, gone] {
      return jobs_.awaitChunks({key("a"), std::nullopt, 8UL << 20, Millis(5'000)}, [gone] { return gone; });
    });
  }
  void append(const std::string& output) {
    EXPECT_EQ(reports_.append(lease_, appended_++, {{output, "", false}}), ReportResult::accepted);
  }
  /// Waits until the stream waits for `time`, and moves the clock by `time`.
  void pass(Millis time) {
    storage_.clock.awaitWaiter(time, time);
    storage_.clock.advance(time);
  }
  std::size_t chunksOf(std::future<Stream>& stream) {
    const Stream answer = testkit::resultOf("the answer to the stream", stream);
    EXPECT_TRUE(answer.hasWaited);
    return answer.page->chunks.size();
  }

  LeaseRef lease_;
  std::uint64_t appended_ = 0;
};

TEST_F(StreamTest, TheChunksOfATenthOfASecondAreOneAnswer) {
  auto waiting = stream();
  storage_.clock.awaitWaiter(Millis(100), Millis(100));
  for (const char* output : {"1", "2", "3"}) append(output);
  EXPECT_EQ(jobs_.chunks({key("a"), 0, 1'000})->chunks.size(), 3U) << "they are stored, and wait for more";
  pass(Millis(100));
  EXPECT_EQ(chunksOf(waiting), 3U);
}

TEST_F(StreamTest, AHeldStreamGathersFromItsFirstChunkOn) {
  auto waiting = stream();
  pass(Millis(100));
  storage_.clock.awaitWaiter(Millis(4'900), Millis(4'900));
  append("1");
  storage_.clock.awaitWaiter(Millis(100), Millis(100));
  append("2");
  pass(Millis(100));
  EXPECT_EQ(chunksOf(waiting), 2U);
}

TEST_F(StreamTest, TheJobsEndAndAMegabyteEndTheGathering) {
  auto large = stream();
  storage_.clock.awaitWaiter(Millis(100), Millis(100));
  append('"' + std::string(600'000, 'x') + '"');
  append('"' + std::string(600'000, 'y') + '"');
  EXPECT_EQ(chunksOf(large), 2U);
  auto last = stream();
  storage_.clock.awaitWaiter(Millis(100), Millis(100));
  append("3");
  EXPECT_EQ(reports_.finish(lease_, Completed{"7"}, false), ReportResult::accepted);
  const Stream answer = testkit::resultOf("the answer at the job's end", last);
  EXPECT_THAT(answer.page->chunks, SizeIs(1));
  EXPECT_EQ(answer.page->state, JobState::completed);
}

TEST_F(StreamTest, AnEndedJobIsNotWaitedFor) {
  append("1");
  (void)reports_.finish(lease_, Completed{"7"}, false);
  for (const std::size_t chunks : {1U, 0U}) {
    const Stream answer = jobs_.awaitChunks({key("a"), std::nullopt, 1'000, Millis(5'000)}, stays);
    EXPECT_THAT(answer.page->chunks, SizeIs(chunks)) << "each is handed out once";
    EXPECT_EQ(answer.page->state, JobState::completed);
    EXPECT_FALSE(answer.hasWaited);
  }
  EXPECT_THAT(jobs_.awaitChunks({key("a"), 0, 1'000, Millis(5'000)}, stays).page->chunks, SizeIs(1));
  EXPECT_EQ(reports_.append(lease_, appended_, {{"3", "", false}}), ReportResult::staleAttempt);
  EXPECT_FALSE(jobs_.awaitChunks({key("b"), std::nullopt, 1'000, Millis(5'000)}, stays).page);
}

TEST_F(StreamTest, WithoutAPlaceToWaitTheAnswerIsWhatIsThere) {
  append("1");
  const Stream answer = jobs_.awaitChunks({key("a"), std::nullopt, 1'000, Millis(0)}, stays);
  EXPECT_THAT(answer.page->chunks, SizeIs(1));
  EXPECT_FALSE(answer.hasWaited);
}

TEST_F(StreamTest, AClientThatLeavesWhileChunksAreGatheredTakesNone) {
  std::stop_source gone;
  auto waiting = stream(gone.get_token());
  storage_.clock.awaitWaiter(Millis(100), Millis(100));
  append("1");
  gone.request_stop();
  EXPECT_EQ(chunksOf(waiting), 0U);
  EXPECT_THAT(jobs_.chunks({key("a"), std::nullopt, 1'000})->chunks, SizeIs(1)) << "it is for the next caller";
}

TEST_F(StreamTest, ManyStreamsGatherLonger) {
  std::vector<std::unique_ptr<CompletionNotifier::Waiter>> others;
  for (int i = 0; i < 49; ++i) {
    others.push_back(
        std::make_unique<CompletionNotifier::Waiter>(watch_, key("b"), CompletionNotifier::Interest::chunks));
  }
  auto waiting = stream();
  storage_.clock.awaitWaiter(Millis(250), Millis(250));
  append("1");
  pass(Millis(250));
  EXPECT_EQ(chunksOf(waiting), 1U);
}

TEST_F(JobServiceTest, ASweepTellsWaitersAndTheDispatcher) {
  submit("finished");
  submit("expired");
  submit("stopped");
  std::vector<std::future<std::optional<Job>>> waiting;
  for (const char* id : {"finished", "expired", "stopped"}) {
    waiting.push_back(std::async(std::launch::async, [=, this] { return jobs_.await(key(id), Millis(5'000), stays); }));
  }
  storage_.clock.awaitWaiter(Millis(1), Millis(5'000), 3);
  for (const char* id : {"finished", "expired", "stopped"}) (void)storage_.real->jobs().cancel(key(id));
  (void)wasNotified();
  SweepResult swept;
  swept.finished = {key("finished")};
  swept.expired = {key("expired")};
  swept.stopped = {{"stopped", 1}};
  reports_.announce(swept);
  for (auto& each : waiting) (void)testkit::resultOf("the answer to a waiter", each);
  EXPECT_EQ(deliveries_.count, 1);
  EXPECT_FALSE(wasNotified());
  SweepResult requeued;
  requeued.requeuedAt = {"ep"};
  reports_.announce(requeued);
  EXPECT_TRUE(wasNotified());
  EXPECT_EQ(deliveries_.count, 1);
}

TEST_F(JobServiceTest, AnErrorIsCutAndMarked) {
  submit("a");
  submit("b");
  (void)reports_.finish(claim(), Failed{std::string(9'500'000, 'e'), "{}"}, false);
  const std::string cut = jobs_.find(key("a"))->error;
  EXPECT_EQ(cut, std::string(kMaxErrorBytes, 'e') + "... (cut: the error had 9500000 bytes)");
  (void)reports_.finish(claim(), Failed{std::string(kMaxErrorBytes, 'e'), ""}, false);
  EXPECT_EQ(jobs_.find(key("b"))->error.size(), kMaxErrorBytes) << "whole as long as it fits";
}

TEST_F(JobServiceTest, APositionInTheQueueIsCounted) {
  for (const char* id : {"a", "b", "c"}) submit(id);
  EXPECT_EQ(jobs_.ahead(key("a"), 100), 0U);
  EXPECT_EQ(jobs_.ahead(key("c"), 100), 2U);
  EXPECT_EQ(jobs_.ahead(key("c"), 1), 1U);
  (void)claim();
  EXPECT_EQ(jobs_.ahead(key("a"), 100), std::nullopt) << "it does not wait";
}

}  // namespace
}  // namespace jobq
