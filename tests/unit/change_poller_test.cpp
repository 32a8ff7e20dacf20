// Tests of the questions about changes by other nodes (core/jobs/change_poller.h).
#include "core/jobs/change_poller.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <future>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <utility>
#include <vector>

#include "core/jobs/queue_signal.h"
#include "jobq/job.h"
#include "testkit/forwarding_storage.h"
#include "testkit/returned_jobs.h"
#include "tests/fault/faulty_storage.h"
#include "tests/support/held_caller.h"
#include "tests/support/shared_memory.h"
#include "unit_storage.h"

namespace jobq {
namespace {

using testing::Contains;
using testing::HasSubstr;
using Waiter = CompletionNotifier::Waiter;

class ChangePollerTest : public testing::Test {
 protected:
  ChangePollerTest() {
    other_.join();
    signal_.clear("ep");
    (void)signal_.consume();
    (void)poller_.poll();
  }

  void submit(const JobId& id) {
    JobSpec job;
    job.id = id;
    job.endpoint = "ep";
    job.input = "{}";
    (void)storage_.jobs().insert(std::move(job), policy_);
  }
  /// Lets another node run the next job.
  LeaseRef claimElsewhere() {
    const ClaimWant want{"ep", {"w"}};
    return storage_.leases().claim({&want, 1}, other_.holder(), ++claims_).jobs.at(0).lease;
  }
  /// Returns whether the waiter has an event now.
  bool isWoken(Waiter& waiter, std::size_t bytes = 0) {
    return test::HeldCaller().awaitEvent(waiter, clock_.now(), bytes);
  }
  /// Asks the next question that is due.
  void pollNext() {
    const Instant due = poller_.poll();
    clock_.advance(std::max(due - clock_.now(), Millis(0)));
    (void)poller_.poll();
  }

  testkit::ManualClock clock_;
  testkit::RecordingLog log_;
  test::ArrivalOrder policy_;
  fault::FaultPlan faults_{clock_};
  fault::FaultyStorage storage_{test::sharedMemory(clock_, log_), faults_};
  NodeLife other_{storage_, "other"};
  QueueSignal signal_{{"ep"}};
  CompletionNotifier completions_{clock_};
  ChangePoller poller_{{storage_, completions_, signal_, clock_, log_}};
  CallId claims_ = 0;
};

TEST_F(ChangePollerTest, AnEndOfAJobAtADifferentNodeWakesTheWaiters) {
  submit("a");
  submit("b");
  const LeaseRef lease = claimElsewhere();
  Waiter one(completions_, {"ep", "a"});
  Waiter two(completions_, {"ep", "a"});
  Waiter other(completions_, {"ep", "b"});
  pollNext();
  EXPECT_FALSE(isWoken(one));
  (void)storage_.leases().finish(lease, Completed{"1"});
  pollNext();
  EXPECT_TRUE(isWoken(one));
  EXPECT_TRUE(isWoken(two));
  EXPECT_FALSE(isWoken(other));
}

/// Answers each question about jobs after a time.
class SlowStorage final : public testkit::ForwardingStorage {
 public:
  SlowStorage(Storage& inner, testkit::ManualClock& clock) : ForwardingStorage(inner), jobs_(inner.jobs(), clock) {}
  JobStore& jobs() override { return jobs_; }
  void answerAfter(Millis time) { jobs_.time = time; }
  int questions() const { return jobs_.questions; }

 private:
  struct Jobs final : testkit::ForwardingJobs {
    Jobs(JobStore& inner, testkit::ManualClock& of) : ForwardingJobs(inner), clock(of) {}
    std::vector<std::optional<JobSummary>> summaries(std::span<const JobKey> keys) override {
      ++questions;
      clock.advance(time);
      return ForwardingJobs::summaries(keys);
    }
    testkit::ManualClock& clock;
    Millis time{0};
    int questions = 0;
  };
  Jobs jobs_;
};

TEST_F(ChangePollerTest, ThePauseAfterAQuestionGrowsWithTheTimeUpToASecond) {
  SlowStorage slow(storage_, clock_);
  ChangePoller poller({slow, completions_, signal_, clock_, log_});
  submit("a");
  const Waiter waiter(completions_, {"ep", "a"});
  for (const auto& [time, pause] : {std::pair(0, 20), std::pair(10, 40), std::pair(30'000, 1'000)}) {
    clock_.advance(Millis(60'000));
    slow.answerAfter(Millis(time));
    (void)poller.poll();
    const int before = slow.questions();
    clock_.advance(Millis(pause - 1));
    (void)poller.poll();
    EXPECT_EQ(slow.questions(), before) << "a poll came early after a question of " << time << " ms";
    clock_.advance(Millis(1));
    (void)poller.poll();
    EXPECT_EQ(slow.questions(), before + 1) << "no poll came after a question of " << time << " ms";
  }
}

TEST_F(ChangePollerTest, ARemovedJobWakesTheWaiters) {
  submit("a");
  Waiter waiter(completions_, {"ep", "a"});
  (void)storage_.jobs().purgeQueued("ep");
  pollNext();
  EXPECT_TRUE(isWoken(waiter));
}

TEST_F(ChangePollerTest, JobsOfAnyNumberAreAskedForInBoundedQuestions) {
  std::vector<std::unique_ptr<Waiter>> waiters;
  for (int i = 0; i < 1'201; ++i) {
    const JobId id = "j" + std::to_string(i);
    submit(id);
    waiters.push_back(std::make_unique<Waiter>(completions_, JobKey{"ep", id}));
  }
  for (int i = 0; i < 1'201; ++i) (void)storage_.leases().finish(claimElsewhere(), Completed{"1"});
  const std::uint64_t before = faults_.calls();
  pollNext();
  for (const auto& waiter : waiters) EXPECT_TRUE(isWoken(*waiter));
  EXPECT_LE(faults_.calls() - before, 2U * 4U) << "the jobs need three questions, and the queues need a fourth";
}

TEST_F(ChangePollerTest, ANewChunkWakesTheStreamsOfTheJobOnce) {
  submit("a");
  const LeaseRef lease = claimElsewhere();
  Waiter stream(completions_, {"ep", "a"}, CompletionNotifier::Interest::chunks);
  Waiter end(completions_, {"ep", "a"});
  pollNext();
  EXPECT_FALSE(isWoken(stream)) << "no chunk yet";
  (void)storage_.chunks().append(lease, 0, {Chunk{"1", "", false}});
  pollNext();
  EXPECT_TRUE(isWoken(stream));
  EXPECT_FALSE(isWoken(end));
  pollNext();
  EXPECT_FALSE(isWoken(stream));
  (void)storage_.chunks().append(lease, 1, {Chunk{"2", "", false}});
  pollNext();
  EXPECT_FALSE(isWoken(stream, 100)) << "a gathering waiter goes on";
  EXPECT_FALSE(isWoken(stream)) << "the wait before has read the chunk";
  (void)testkit::release(storage_.leases(), std::vector{lease});
  const LeaseRef again = claimElsewhere();
  (void)storage_.chunks().append(again, 0, {Chunk{"1", "", false}});
  pollNext();
  EXPECT_TRUE(isWoken(stream)) << "the chunk is the first of a new attempt";
}

TEST_F(ChangePollerTest, ANewAttemptIsAChange) {
  submit("a");
  Waiter changes(completions_, {"ep", "a"}, CompletionNotifier::Interest::changes);
  pollNext();
  EXPECT_FALSE(isWoken(changes));
  const LeaseRef lease = claimElsewhere();
  (void)storage_.chunks().append(lease, 0, {Chunk{"1", "", false}});
  pollNext();
  EXPECT_TRUE(isWoken(changes));
  pollNext();
  EXPECT_FALSE(isWoken(changes)) << "a change is announced once";
  (void)testkit::release(storage_.leases(), std::vector{lease});
  pollNext();
  EXPECT_TRUE(isWoken(changes));
}

// The waiter is registered before its job is read: a chunk from before the first question may be new to the waiter.
TEST_F(ChangePollerTest, AChunkFromBeforeTheFirstQuestionIsTold) {
  submit("a");
  (void)storage_.chunks().append(claimElsewhere(), 0, {Chunk{"1", "", false}});
  Waiter stream(completions_, {"ep", "a"}, CompletionNotifier::Interest::chunks);
  pollNext();
  EXPECT_TRUE(isWoken(stream));
}

TEST_F(ChangePollerTest, JobsQueuedElsewhereWakeTheDispatcherAndAreThenAskedForMoreOften) {
  EXPECT_EQ(poller_.poll() - clock_.now(), Millis(500));
  submit("a");
  clock_.advance(Millis(500));
  EXPECT_EQ(poller_.poll() - clock_.now(), Millis(20));
  EXPECT_TRUE(signal_.isSet("ep"));
  EXPECT_TRUE(signal_.consume());
  for (int i = 0; i < 100; ++i) pollNext();
  EXPECT_FALSE(signal_.consume()) << "the signal is set already";
  EXPECT_EQ(poller_.poll() - clock_.now(), Millis(500)) << "no new job came for 2 s";
}

TEST_F(ChangePollerTest, ALowPriorityJobIsToldAsSuch) {
  JobSpec job;
  job.id = "low";
  job.endpoint = "ep";
  job.input = "{}";
  job.policy.lowPriority = true;
  (void)storage_.jobs().insert(std::move(job), policy_);
  signal_.clear("ep");
  clock_.advance(Millis(500));
  EXPECT_EQ(poller_.poll() - clock_.now(), Millis(20));
  EXPECT_FALSE(signal_.notify("ep", true)) << "the signal of the class is set";
  EXPECT_TRUE(signal_.notify("ep", false));
}

TEST_F(ChangePollerTest, WithoutWaitersNoJobIsAskedFor) {
  const std::uint64_t before = faults_.calls();
  for (int i = 0; i < 10; ++i) pollNext();
  EXPECT_LE(faults_.calls() - before, 20U) << "questions about the queues only";
  Waiter waiter(completions_, {"ep", "none"});
  EXPECT_LE(poller_.poll() - clock_.now(), Millis(20));
}

TEST_F(ChangePollerTest, AFailingStorageIsAskedAgainASecondLater) {
  submit("a");
  Waiter waiter(completions_, {"ep", "a"});
  (void)storage_.leases().finish(claimElsewhere(), Completed{"1"});
  faults_.failOperation("jobs.summaries");
  pollNext();
  EXPECT_THAT(log_.lines(), Contains(HasSubstr("changes.storage")));
  EXPECT_FALSE(isWoken(waiter));
  faults_.heal();
  const Instant failedAt = clock_.now();
  (void)poller_.poll();
  EXPECT_FALSE(isWoken(waiter)) << "the storage is left alone for a second";
  while (clock_.now() < failedAt + Millis(1'000)) pollNext();
  EXPECT_TRUE(isWoken(waiter));
}

TEST_F(ChangePollerTest, TheThreadAsksAsSoonAsACallerWaits) {
  submit("a");
  const LeaseRef lease = claimElsewhere();
  poller_.start();
  auto waits = std::async(std::launch::async, [&] {
    Waiter waiter(completions_, {"ep", "a"});
    return test::HeldCaller().awaitEvent(waiter, clock_.now() + Millis(600'000));
  });
  (void)storage_.leases().finish(lease, Completed{"1"});
  ASSERT_TRUE(test::holdsSoon([&] {
    clock_.advance(Millis(20));
    return waits.wait_for(std::chrono::seconds(0)) == std::future_status::ready;
  })) << "the caller was not woken";
  EXPECT_TRUE(waits.get());
  poller_.stop();
}

TEST_F(ChangePollerTest, AStorageForASingleProcessIsNotAsked) {
  test::UnitStorage single;
  CompletionNotifier completions(single.clock);
  ChangePoller poller({*single, completions, signal_, single.clock, single.log});
  poller.start();
  Waiter waiter(completions, {"ep", "a"});
  poller.stop();
  EXPECT_EQ(single.faults.calls(), 0U);
}

}  // namespace
}  // namespace jobq
