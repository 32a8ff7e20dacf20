// Tests of callers that wait for the end or the chunks of a job (core/jobs/completion_notifier.h).
#include "core/jobs/completion_notifier.h"

#include <gtest/gtest.h>

#include <atomic>
#include <chrono>
#include <cstdint>
#include <deque>
#include <map>
#include <memory>
#include <thread>
#include <vector>

#include "core/base/suspended_call.h"
#include "jobq/mutex.h"
#include "testkit/manual_clock.h"
#include "testkit/wait_for.h"
#include "tests/support/held_caller.h"

namespace jobq {
namespace {

bool hasEvent(CompletionNotifier::Waiter& waiter, Instant deadline, std::size_t bytes = 0) {
  return test::HeldCaller().awaitEvent(waiter, deadline, bytes);
}

/// Counts the resumptions of each call.
class CountingResumer final : public CallResumer {
 public:
  void resume(std::uint64_t call) noexcept override {
    Lock lock(mutex_);
    ++counts_[call];
    changed_.notifyAll();
  }
  void continueHere(std::uint64_t) noexcept override { ++continuedHere_; }
  int continuedHere() const { return continuedHere_; }
  int countOf(std::uint64_t call) {
    Lock lock(mutex_);
    return counts_[call];
  }

 private:
  Mutex mutex_;
  Condition changed_;
  std::map<std::uint64_t, int> counts_ JOBQ_GUARDED_BY(mutex_);
  std::atomic<int> continuedHere_ = 0;
};

class CompletionNotifierTest : public testing::Test {
 protected:
  using Progress = CompletionNotifier::Progress;

  testkit::ManualClock clock;
  CountingResumer resumer;  // outlives the thread of the notifier
  CompletionNotifier watch{clock};
};

TEST_F(CompletionNotifierTest, EndsTheWaitOfADepartedClient) {
  test::HeldCaller caller;
  std::thread thread([&] {
    CompletionNotifier::Waiter awaited(watch, {"e", "a"});
    EXPECT_FALSE(caller.awaitEvent(awaited, clock.now() + Millis(60'000)));
  });
  clock.awaitWaiter(Millis(60'000), Millis(60'000));
  caller.leave();
  testkit::join("the waiter", thread);
  CompletionNotifier::Waiter late(watch, {"e", "a"});
  EXPECT_FALSE(caller.awaitEvent(late, clock.now() + Millis(60'000)));
}

// A pause has a millisecond for each waiting caller, within bounds.
TEST_F(CompletionNotifierTest, ThePauseForRoomGrowsWithTheWaitingCallers) {
  std::deque<CompletionNotifier::Waiter> waiting;
  const auto pauseOf = [&](std::size_t callers) {
    while (waiting.size() < callers) waiting.emplace_back(watch, JobKey{"e", "a"});
    return watch.roomPause();
  };
  EXPECT_EQ(pauseOf(1), Millis(100));
  EXPECT_EQ(pauseOf(3'000), Millis(3'000));
  EXPECT_EQ(pauseOf(6'000), Millis(5'000));
}

TEST_F(CompletionNotifierTest, AnEventResumesAPendingCallOnce) {
  const Instant late = clock.now() + Millis(60'000);
  CompletionNotifier::Waiter one(watch, {"e", "a"});
  CompletionNotifier::Waiter two(watch, {"e", "b"});
  EXPECT_EQ(one.poll(late, {{&resumer, 1}}), Progress::pending);
  EXPECT_EQ(two.poll(late, {{&resumer, 2}}), Progress::pending);
  watch.announce("a");
  watch.announce("a");
  EXPECT_EQ(resumer.countOf(1), 1) << "the second event finds the call already resumed";
  EXPECT_EQ(resumer.countOf(2), 0);
  EXPECT_EQ(one.poll(late, {{&resumer, 1}}), Progress::event);
  EXPECT_EQ(one.poll(late, {{&resumer, 1}}), Progress::pending);
  watch.close();
  EXPECT_EQ(resumer.countOf(1), 2);
  EXPECT_EQ(resumer.countOf(2), 1);
  EXPECT_EQ(two.poll(late, {{&resumer, 2}}), Progress::over);
}

TEST_F(CompletionNotifierTest, ADeadlineResumesOnlyTheCallOfTheDeadline) {
  const Instant start = clock.now();
  std::vector<std::unique_ptr<CompletionNotifier::Waiter>> waiters;
  for (std::uint64_t i = 0; i < 3; ++i) {
    waiters.push_back(std::make_unique<CompletionNotifier::Waiter>(watch, JobKey{"e", "a"}));
    // The latest deadline comes first, so each further one is the earliest.
    EXPECT_EQ(waiters.back()->poll(start + Millis(3'000 - 1'000 * static_cast<int>(i)), {{&resumer, i}}),
              Progress::pending);
  }
  waiters.pop_back();  // an ending waiter removes the deadline
  // The thread of the deadlines may still wait for the removed deadline, and then looks for the next deadline.
  clock.awaitWaiter(Millis(1'000), Millis(2'000));
  clock.advance(Millis(1'000));
  clock.awaitWaiter(Millis(1'000), Millis(1'000));
  clock.advance(Millis(1'000));
  testkit::waitFor("the call whose deadline was reached", [&] { return resumer.countOf(1) == 1; });
  EXPECT_EQ(resumer.countOf(0), 0);
  EXPECT_EQ(resumer.countOf(2), 0);
  EXPECT_EQ(waiters[1]->poll(start + Millis(2'000), {{&resumer, 1}}), Progress::over);
}

// A worker may send the answers of its callers; a sweep or a cancel must not be held up by the answers of other
// callers.
/// Counts the sleeps of the thread of the deadlines.
class SleepCountingClock final : public Clock {
 public:
  Instant now() const override { return clock_.now(); }
  void waitUntil(Mutex& mutex, Condition& condition, Instant deadline) override JOBQ_REQUIRES(mutex) {
    ++sleeps_;
    clock_.waitUntil(mutex, condition, deadline);
  }
  void awaitSleep(int number) const {
    testkit::waitFor("a sleep of the thread", [&] { return sleeps_ >= number; });
  }
  int sleeps() const { return sleeps_; }

 private:
  testkit::ManualClock clock_;
  std::atomic<int> sleeps_ = 0;
};

TEST(CompletionNotifier, ALaterDeadlineWakesNoThread) {
  using Progress = CompletionNotifier::Progress;
  SleepCountingClock clock;
  CountingResumer resumer;  // outlives the thread of the notifier
  CompletionNotifier watch(clock);
  CompletionNotifier::Waiter first(watch, {"e", "a"});
  EXPECT_EQ(first.poll(clock.now() + Millis(60'000), {{&resumer, 1}}), Progress::pending);
  clock.awaitSleep(1);
  watch.announce("a");
  for (int i = 1; i <= 1'000; ++i) {
    CompletionNotifier::Waiter later(watch, {"e", "a"});
    EXPECT_EQ(later.poll(clock.now() + Millis(60'000 + i), {{&resumer, 1}}), Progress::pending);
  }
  CompletionNotifier::Waiter earlier(watch, {"e", "a"});
  EXPECT_EQ(earlier.poll(clock.now() + Millis(50'000), {{&resumer, 1}}), Progress::pending);
  clock.awaitSleep(2);
  watch.close();
  EXPECT_EQ(clock.sleeps(), 2);
}

TEST_F(CompletionNotifierTest, ContinuesCallsOnAPermittingThread) {
  CompletionNotifier::Waiter first(watch, {"e", "a"});
  CompletionNotifier::Waiter second(watch, {"e", "b"});
  const Instant late = clock.now() + Millis(60'000);
  ASSERT_EQ(first.poll(late, {{&resumer, 1}}), CompletionNotifier::Progress::pending);
  ASSERT_EQ(second.poll(late, {{&resumer, 2}}), CompletionNotifier::Progress::pending);
  watch.announceHere("a");
  watch.announce("b");
  watch.announceHere("b");
  EXPECT_EQ(resumer.continuedHere(), 1);
  EXPECT_EQ(resumer.countOf(1), 0);
  EXPECT_EQ(resumer.countOf(2), 1) << "each wait is continued once";
}

TEST_F(CompletionNotifierTest, ContinuesASingleCallOfAJobOnTheCurrentThread) {
  const Instant late = clock.now() + Millis(60'000);
  CompletionNotifier::Waiter stream(watch, {"e", "a"}, CompletionNotifier::Interest::chunks);
  ASSERT_EQ(stream.poll(late, {{&resumer, 0}}, 1), CompletionNotifier::Progress::pending);
  watch.announceHere("a");
  EXPECT_EQ(resumer.continuedHere(), 0) << "chunks may be many";
  EXPECT_EQ(resumer.countOf(0), 1);
  std::deque<CompletionNotifier::Waiter> waiters;
  for (std::uint64_t call = 1; call <= 3; ++call) {
    ASSERT_EQ(waiters.emplace_back(watch, JobKey{"e", "b"}).poll(late, {{&resumer, call}}),
              CompletionNotifier::Progress::pending);
  }
  watch.announceHere("b");
  EXPECT_EQ(resumer.continuedHere(), 1);
  EXPECT_EQ(resumer.countOf(1) + resumer.countOf(2) + resumer.countOf(3), 2);
}

TEST_F(CompletionNotifierTest, WakesTheWaitersOfTheJobAlone) {
  const testkit::HangGuard guard("the waits for completions to end");
  const Instant late = clock.now() + Millis(60'000);
  std::atomic<bool> other = false;
  std::thread waiter([&] {
    CompletionNotifier::Waiter awaited(watch, {"e", "other"});
    EXPECT_FALSE(test::HeldCaller().awaitEvent(awaited, late)) << "the deadline ends a wait";
    other = true;
  });
  CompletionNotifier::Waiter awaited(watch, {"e", "a"});
  watch.announce("a");
  EXPECT_TRUE(hasEvent(awaited, late));
  clock.awaitWaiter(Millis(60'000), Millis(60'000));
  EXPECT_FALSE(other);
  clock.advance(Millis(60'000));
  testkit::join("the waiter", waiter);
  CompletionNotifier::Waiter last(watch, {"e", "b"});
  watch.close();
  EXPECT_FALSE(hasEvent(last, clock.now() + Millis(1)));
}

// The server of the calls is destroyed before the notifier.
TEST_F(CompletionNotifierTest, ResumesNothingAfterClosing) {
  CompletionNotifier::Waiter awaited(watch, {"e", "a"});
  {
    CountingResumer resumer;
    ASSERT_EQ(awaited.poll(clock.now() + Millis(1), {{&resumer, 1}}), CompletionNotifier::Progress::pending);
    clock.awaitWaiter(Millis(1), Millis(1));
    watch.close();
    EXPECT_EQ(resumer.countOf(1), 1);
  }
  EXPECT_THROW(clock.awaitWaiter(Millis(1), Millis(1), 1, std::chrono::seconds(0)), testkit::WaitExpired)
      << "the thread of the deadlines still waits";
}

TEST_F(CompletionNotifierTest, ReportsChunksToStreamsAlone) {
  const Instant now = clock.now();
  CompletionNotifier::Waiter ends(watch, {"e", "a"});
  CompletionNotifier::Waiter streams(watch, {"e", "a"}, CompletionNotifier::Interest::chunks);
  watch.announceChunk("a", 1);
  EXPECT_FALSE(hasEvent(ends, now));
  EXPECT_TRUE(hasEvent(streams, now));
  EXPECT_FALSE(hasEvent(streams, now)) << "a chunk is announced once";
  watch.announce("a");
  EXPECT_TRUE(hasEvent(ends, now));
  EXPECT_TRUE(hasEvent(streams, now));
}

TEST_F(CompletionNotifierTest, CountsTheBytesOfChunks) {
  const Instant now = clock.now();
  EXPECT_EQ(watch.streams(), 0U);
  CompletionNotifier::Waiter ends(watch, {"e", "a"});
  CompletionNotifier::Waiter streams(watch, {"e", "a"}, CompletionNotifier::Interest::chunks);
  EXPECT_EQ(watch.streams(), 1U);
  watch.announceChunk("a", 60);
  EXPECT_FALSE(hasEvent(streams, now, 100));
  watch.announceChunk("a", 99);
  EXPECT_FALSE(hasEvent(streams, now, 100)) << "announced chunks do not count again";
  watch.announceChunk("a", 60);
  watch.announceChunk("a", 40);
  EXPECT_TRUE(hasEvent(streams, now, 100));
  watch.announceChunk("a", 1);
  watch.announce("a");
  EXPECT_TRUE(hasEvent(streams, now)) << "the chunk and the end";
  EXPECT_TRUE(hasEvent(streams, now, 100)) << "a stream gathers no chunks after the end";
  EXPECT_FALSE(hasEvent(streams, now)) << "the end is announced once";
}

TEST_F(CompletionNotifierTest, AChangeIsToldOnceFromTheWantedMomentOn) {
  const Instant late = clock.now() + Millis(60'000);
  const Instant wanted = clock.now() + Millis(1'000);
  CompletionNotifier::Waiter ends(watch, {"e", "a"});
  CompletionNotifier::Waiter changes(watch, {"e", "a"}, CompletionNotifier::Interest::changes);
  EXPECT_EQ(ends.poll(late, {{&resumer, 1}}), Progress::pending);
  EXPECT_EQ(changes.pollChanges(late, wanted, {{&resumer, 2}}), Progress::pending);
  watch.announceChunk("a", 1);
  watch.announceChange("b");
  EXPECT_EQ(changes.pollChanges(late, wanted, {{&resumer, 2}}), Progress::pending);
  clock.awaitWaiter(Millis(60'000), Millis(60'000));
  watch.announceChange("a");
  watch.announceChange("a");
  clock.awaitWaiter(Millis(1'000), Millis(1'000));
  EXPECT_EQ(resumer.countOf(2), 0);
  EXPECT_EQ(changes.pollChanges(late, wanted, {{&resumer, 2}}), Progress::pending) << "the wanted moment has not come";
  clock.advance(Millis(1'000));
  testkit::waitFor("the call that follows the job", [&] { return resumer.countOf(2) == 1; });
  EXPECT_EQ(changes.pollChanges(late, wanted, {{&resumer, 2}}), Progress::event);
  EXPECT_EQ(changes.pollChanges(late, wanted, {{&resumer, 2}}), Progress::pending);
  watch.announceChange("a");
  testkit::waitFor("the call whose moment has come", [&] { return resumer.countOf(2) == 2; });
  EXPECT_EQ(resumer.countOf(1), 0);
  watch.announce("a");
  EXPECT_EQ(changes.pollChanges(late, late, {{&resumer, 2}}), Progress::event) << "an end is announced at once";
}

// The storage has not told which jobs have ended, so no job counts as ended.
TEST_F(CompletionNotifierTest, AnUnknownChangeWakesAllWaitersOnce) {
  CompletionNotifier::Waiter one(watch, {"e", "a"});
  CompletionNotifier::Waiter streams(watch, {"f", "b"}, CompletionNotifier::Interest::chunks);
  watch.announceAll();
  EXPECT_TRUE(hasEvent(one, clock.now()));
  EXPECT_FALSE(hasEvent(one, clock.now()));
  EXPECT_TRUE(hasEvent(streams, clock.now(), 100));
  EXPECT_FALSE(hasEvent(streams, clock.now(), 100)) << "the job goes on, so chunks are gathered again";
}

TEST_F(CompletionNotifierTest, APurgeWakesTheWaitersOfTheEndpoint) {
  CompletionNotifier::Waiter here(watch, {"e", "a"});
  CompletionNotifier::Waiter elsewhere(watch, {"f", "b"});
  watch.announceAllOf("e");
  EXPECT_TRUE(hasEvent(here, clock.now()));
  EXPECT_FALSE(hasEvent(elsewhere, clock.now()));
}

}  // namespace
}  // namespace jobq
