// Tests of the calls on jobs and of the reports of workers: stored jobs, and woken waiters (core/jobs/job_service.h,
// core/jobs/run_reports.h).
#include "core/jobs/job_service.h"
#include "core/jobs/claimer.h"

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

using testing::SizeIs;

TEST_F(JobServiceTest, ASubmittedJobIsStoredAndTheDispatcherIsNotified) {
  EXPECT_TRUE(std::holds_alternative<Inserted>(jobs_.submit(job("a"), endpoint_, std::nullopt)));
  EXPECT_EQ(jobs_.find(key("a"), nullptr).job->state, JobState::inQueue);
  EXPECT_TRUE(wasNotified());
  EXPECT_FALSE(jobs_.find({"other", "a"}, nullptr).job) << "a job of a different endpoint is absent";
}

TEST_F(JobServiceTest, ARepeatedSubmissionIsTheFirstSubmission) {
  const Idempotency idempotency{"k", "hash"};
  EXPECT_FALSE(jobs_.findByIdempotencyKey(endpoint_, "key", idempotency));
  (void)jobs_.submit(job("a"), endpoint_, idempotency);
  (void)wasNotified();
  const InsertResult again = jobs_.submit(job("b"), endpoint_, idempotency);
  EXPECT_EQ(std::get<Duplicate>(again).id, "a");
  EXPECT_FALSE(wasNotified()) << "no new job waits";
  EXPECT_TRUE(std::holds_alternative<KeyConflict>(jobs_.submit(job("c"), endpoint_, Idempotency{"k", "other"})));
  EXPECT_EQ(std::get<Duplicate>(jobs_.findByIdempotencyKey(endpoint_, "key", idempotency).value()).id, "a");
  EXPECT_FALSE(jobs_.find(key("b"), nullptr).job);
}

TEST_F(JobServiceTest, AFailedSubmissionNotifiesNoThread) {
  storage_.faults.failNext("jobs.insert");
  EXPECT_THROW(submit("a"), StorageError);
  EXPECT_FALSE(wasNotified());
}

TEST_F(JobServiceTest, AWaiterGetsTheEndedJob) {
  submit("a");
  auto waiting = await("a", Millis(5'000));
  EXPECT_EQ(reports_.finish(claim(), Completed{"7"}, false), ReportResult::accepted);
  EXPECT_EQ(testkit::resultOf("the answer to the waiter", waiting)->output, "7");
  EXPECT_EQ(deliveries_.count, 0) << "the job has no webhook";
}

TEST_F(JobServiceTest, AFailureWithoutAMessageGetsAMessage) {
  submit("a");
  EXPECT_EQ(reports_.finish(claim(), Failed{"", "7"}, false), ReportResult::accepted);
  EXPECT_EQ(jobs_.find(key("a"), nullptr).job->error, "the handler failed without a message");
  EXPECT_EQ(jobs_.find(key("a"), nullptr).job->output, "7");
}

TEST_F(JobServiceTest, AWaiterGetsTheCurrentJobAtTheEndOfTheWait) {
  submit("a");
  auto waiting = await("a", Millis(5'000));
  storage_.clock.advance(Millis(5'000));
  EXPECT_EQ(testkit::resultOf("the end of the wait", waiting)->state, JobState::inQueue);
}

TEST_F(JobServiceTest, AnEndedJobIsNotWaitedFor) {
  submit("a");
  (void)jobs_.cancel(key("a"));
  EXPECT_EQ(awaitNow("a", Millis(5'000))->state, JobState::cancelled);
  EXPECT_FALSE(awaitNow("b", Millis(5'000)));
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
  EXPECT_EQ(deliveries_.count, 2) << "the first call may have failed before the delivery";
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
  EXPECT_EQ(jobs_.find(key("a"), nullptr).job->state, JobState::inQueue);
  EXPECT_TRUE(std::holds_alternative<WrongState>(jobs_.retry(key("a"), endpoint_)));
  EXPECT_FALSE(wasNotified());
}

TEST_F(JobServiceTest, APurgeRemovesQueuedJobsAndAnswersTheWaiters) {
  submit("running");
  (void)claim();
  submit("a");
  submit("b");
  auto waiting = await("b", Millis(5'000));
  EXPECT_EQ(jobs_.purge("ep"), 2U);
  EXPECT_FALSE(testkit::resultOf("the answer to the waiter", waiting));
  EXPECT_EQ(jobs_.counts("ep").inProgress, 1U);
}

TEST_F(JobServiceTest, AnInterruptedPurgeAnswersAllConcernedCallers) {
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
  reports_.giveBack({&lease, 1}, false);
  EXPECT_TRUE(wasNotified());
  reports_.giveBack({&lease, 1}, false);
  EXPECT_FALSE(wasNotified()) << "the job has already gone back";
}

TEST_F(JobServiceTest, AWaitingSubmissionGetsTheResult) {
  bool isStored = false;
  test::CallingClaimer claimer([&] {
    EXPECT_TRUE(isStored) << "a job runs only after the submission";
    (void)reports_.finish(claim(), Completed{"7"}, false);
  });
  claimer_.bind(claimer);
  auto submission = jobs_.submitAwaited(job("a"), endpoint_, std::nullopt, Millis(5'000));
  isStored = true;
  EXPECT_TRUE(std::holds_alternative<Inserted>(submission.inserted));
  test::HeldCaller caller;
  EXPECT_EQ(caller.complete(*submission.wait).job->output, "7");
}

/// Stores the job and gives the job to a worker of the test.
class OfferingClaimer final : public Claimer {
 public:
  explicit OfferingClaimer(std::function<InsertResult(JobSpec&)> insert) : insert_(std::move(insert)) {}
  void claimForCaller(const EndpointId&) override { ADD_FAILURE() << "the job was offered already"; }
  std::optional<InsertResult> insertForCaller(JobSpec& job, const QueuePolicy&,
                                              const std::optional<Idempotency>&) override {
    return insert_(job);
  }
  std::shared_ptr<DeferredInsert> runForCaller(const JobSpec&, const QueuePolicy&) override { return nullptr; }
  std::optional<FinishedRun> finishAndClaim(const ClaimedJob&, const EndedAttempt&, bool) override {
    return std::nullopt;
  }

 private:
  const std::function<InsertResult(JobSpec&)> insert_;
};

TEST_F(JobServiceTest, AJobOfferedToAWorkerMayEndBeforeTheSubmissionReturns) {
  OfferingClaimer claimer([&](JobSpec& job) -> InsertResult {
    storage_.insert(job.id);
    (void)reports_.finish(claim(), Completed{"7"}, false);
    return Inserted{};
  });
  claimer_.bind(claimer);
  auto submission = jobs_.submitAwaited(job("a"), endpoint_, std::nullopt, Millis(5'000));
  EXPECT_FALSE(submission.isDurable);
  test::HeldCaller caller;
  EXPECT_EQ(caller.complete(*submission.wait).job->output, "7");
  EXPECT_FALSE(wasNotified());
}

TEST_F(JobServiceTest, ARepeatedSubmissionOfferedToAWorkerWaitsForTheFirstJob) {
  storage_.insert("first");
  OfferingClaimer claimer([](JobSpec&) -> InsertResult { return Duplicate{"first"}; });
  claimer_.bind(claimer);
  auto submission = jobs_.submitAwaited(job("a"), endpoint_, Idempotency{"k", "hash"}, Millis(5'000));
  (void)reports_.finish(claim(), Completed{"7"}, false);
  test::HeldCaller caller;
  EXPECT_EQ(caller.complete(*submission.wait).job->id, "first");
}

// The dispatcher must hear of a job whose caller is lost between the submission and the first poll.
TEST_F(JobServiceTest, ASubmissionWithoutAPollNotifiesTheDispatcher) {
  auto submission = jobs_.submitAwaited(job("a"), endpoint_, std::nullopt, Millis(5'000));
  EXPECT_FALSE(wasNotified());
  submission.wait.reset();
  EXPECT_TRUE(wasNotified());
}

TEST_F(JobServiceTest, AWaitingRepeatedSubmissionGetsTheFirstJobsResult) {
  const Idempotency idempotency{"k", "hash"};
  test::HeldCaller caller;
  (void)jobs_.submit(job("a"), endpoint_, idempotency);
  (void)reports_.finish(claim(), Completed{"7"}, false);
  const Waited waited = submitAndAwait("b", idempotency, caller);
  EXPECT_EQ(std::get<Duplicate>(waited.inserted).id, "a");
  EXPECT_EQ(waited.job->output, "7");
  const Waited other = submitAndAwait("c", Idempotency{"k", "x"}, caller);
  EXPECT_TRUE(std::holds_alternative<KeyConflict>(other.inserted));
  EXPECT_FALSE(other.job);
}

TEST_F(JobServiceTest, ASubmissionOfADepartedCallerWaitsNoLonger) {
  test::HeldCaller caller;
  auto waiting = std::async(std::launch::async, [&] { return submitAndAwait("a", std::nullopt, caller); });
  storage_.clock.awaitWaiter(Millis(1), Millis(5'000));
  caller.leave();
  EXPECT_EQ(testkit::resultOf("the end of the wait", waiting).job->state, JobState::inQueue)
      << "the job goes on without the caller";
}

using Stream = ChunkWait::Result;

class StreamTest : public JobServiceTest {
 protected:
  StreamTest() {
    submit("a");
    lease_ = claim();
  }

  /// Starts a caller of /stream. The caller waits 100 ms for chunks and then for the first chunk, up to 5 s in all.
  std::future<Stream> stream() {
    return std::async(std::launch::async, [this] {
      return streamNow({key("a"), std::nullopt, 8UL << 20, Millis(5'000)});
    });
  }
  /// Waits on the calling thread.
  Stream streamNow(const ChunkAsk& ask) { return caller_.complete(*jobs_.awaitChunks(ask)); }
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

  test::HeldCaller caller_;
  LeaseRef lease_;
  std::uint64_t appended_ = 0;
};

TEST_F(StreamTest, TheChunksOfATenthOfASecondShareAnAnswer) {
  auto waiting = stream();
  storage_.clock.awaitWaiter(Millis(100), Millis(100));
  for (const char* output : {"1", "2", "3"}) append(output);
  EXPECT_EQ(jobs_.chunks({key("a"), 0, 1'000})->chunks.size(), 3U)
      << "the chunks are stored, and the call waits for more";
  pass(Millis(100));
  EXPECT_EQ(chunksOf(waiting), 3U);
}

TEST_F(StreamTest, AHeldStreamGathersFromTheFirstChunkOn) {
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
    const Stream answer = streamNow({key("a"), std::nullopt, 1'000, Millis(5'000)});
    EXPECT_THAT(answer.page->chunks, SizeIs(chunks)) << "each is handed out once";
    EXPECT_EQ(answer.page->state, JobState::completed);
    EXPECT_FALSE(answer.hasWaited);
  }
  EXPECT_THAT(streamNow({key("a"), 0, 1'000, Millis(5'000)}).page->chunks, SizeIs(1));
  EXPECT_EQ(reports_.append(lease_, appended_, {{"3", "", false}}), ReportResult::staleAttempt);
  EXPECT_FALSE(streamNow({key("b"), std::nullopt, 1'000, Millis(5'000)}).page);
}

TEST_F(StreamTest, WithoutAPlaceToWaitTheAnswerHasTheAvailableChunks) {
  append("1");
  const Stream answer = streamNow({key("a"), std::nullopt, 1'000, Millis(0)});
  EXPECT_THAT(answer.page->chunks, SizeIs(1));
  EXPECT_FALSE(answer.hasWaited);
}

TEST_F(StreamTest, AClientLeavingDuringTheGatheringTakesNoChunks) {
  auto waiting = stream();
  storage_.clock.awaitWaiter(Millis(100), Millis(100));
  append("1");
  caller_.leave();
  EXPECT_EQ(chunksOf(waiting), 0U);
  EXPECT_THAT(jobs_.chunks({key("a"), std::nullopt, 1'000})->chunks, SizeIs(1)) << "the chunk is for the next caller";
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
    waiting.push_back(std::async(std::launch::async, [=, this] { return awaitNow(id, Millis(5'000)); }));
  }
  testkit::waitFor("three waiting callers", [&] { return watch_.awaited("", 10).size() == 3; });
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
  const std::string cut = jobs_.find(key("a"), nullptr).job->error;
  EXPECT_EQ(cut, std::string(kMaxErrorBytes, 'e') + "... (cut: the error had 9500000 bytes)");
  (void)reports_.finish(claim(), Failed{std::string(kMaxErrorBytes, 'e'), ""}, false);
  EXPECT_EQ(jobs_.find(key("b"), nullptr).job->error.size(), kMaxErrorBytes) << "an error within the bound stays whole";
  submit("c");
  const ClaimedJob c = storage_.claim();
  const EndedAttempt end = RunReports::endOf(c.lease, Failed{std::string(9'500'000, 'e'), "{}"});
  (void)reports_.finishAndClaim(c, end, nullptr);
  EXPECT_EQ(jobs_.find(key("c"), nullptr).job->error, cut) << "the report of a worker";
}

TEST_F(JobServiceTest, APositionInTheQueueIsCounted) {
  for (const char* id : {"a", "b", "c"}) submit(id);
  EXPECT_EQ(jobs_.ahead(key("a"), 100), 0U);
  EXPECT_EQ(jobs_.ahead(key("c"), 100), 2U);
  EXPECT_EQ(jobs_.ahead(key("c"), 1), 1U);
  (void)claim();
  EXPECT_EQ(jobs_.ahead(key("a"), 100), std::nullopt) << "a claimed job does not wait";
}

}  // namespace
}  // namespace jobq
