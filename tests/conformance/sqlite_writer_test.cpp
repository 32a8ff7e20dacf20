// Tests of the writer's groups: the order of groups and checkpoints, and the counters that a write sees.
#include <gmock/gmock.h>

#include <atomic>
#include <chrono>
#include <future>
#include <stdexcept>
#include <string>
#include <thread>
#include <utility>
#include <vector>

#include "sqlite_writer_fixture.h"

namespace jobq::testkit {
namespace {

/// Body sizes: above the bound of small writes, and above the log at which a large group makes a checkpoint due.
constexpr std::size_t kLarge = 1UL << 20;
constexpr std::size_t kBeyondLog = 17UL << 20;
constexpr auto kUnsyncedLife = sqlite::WriteTurns::kUnsyncedLife;

TEST_F(WriterTest, WritesWaitingTogetherShareACommit) {
  constexpr int kCallers = 64;
  sqlite_->writer.write([](sqlite::Step& step) { return writeBytes(step, 1), true; });  // SQLite syncs a new log twice
  occupy(1);
  for (int i = 0; i < kCallers; ++i) queue([](sqlite::Step& step) { writeBytes(step, 1); });
  const int before = logFaults().syncs;
  release();
  awaitAll();
  EXPECT_EQ(logFaults().syncs - before, 2) << "the first write has a sync, and the other writes share a sync";
}

// The checkpoint of a large body takes about as long as the commit. A small write that arrives during the commit waits
// for the commit alone.
TEST_F(WriterTest, ASmallWriteWaitsForALargeGroupOrACheckpointButNotForBoth) {
  std::vector<std::string> events;  // only the thread with the writer's turn adds events
  logFaults().onDatabaseSync = [&] { events.push_back("checkpoint"); };
  occupy(kBeyondLog);
  queue([&](sqlite::Step&) { events.push_back("small"); });
  queue([&](sqlite::Step&) { events.push_back("large"); }, kLarge);
  release();
  awaitAll();
  sqlite_.reset();
  EXPECT_THAT(events, testing::ElementsAre("small", "checkpoint", "large"));
}

// Also a small write that arrives during the checkpoint.
TEST_F(WriterTest, ASmallWriteDuringACheckpointGoesBeforeTheNextLargeGroup) {
  std::vector<std::string> events;  // only the writer's thread adds events before its end
  std::atomic<bool> inCheckpoint = false;
  std::promise<void> queued;
  auto isQueued = queued.get_future().share();
  logFaults().onDatabaseSync = [&] {
    if (inCheckpoint.exchange(true)) return;
    waitFor("the small and the large write to be queued",
            [&] { return isQueued.wait_for(std::chrono::seconds(0)) == std::future_status::ready; });
    events.push_back("checkpoint");
  };
  occupy(kBeyondLog);
  queue([&](sqlite::Step&) { events.push_back("small"); });
  queue([&](sqlite::Step&) { events.push_back("large"); }, kLarge);
  release();
  waitFor("the checkpoint", [&] { return inCheckpoint.load(); });
  queue([&](sqlite::Step&) { events.push_back("during"); });
  queued.set_value();
  awaitAll();
  sqlite_.reset();
  EXPECT_THAT(events, testing::ElementsAre("small", "checkpoint", "during", "large"));
}

// A checkpoint of a log of some size takes a while, so the checkpoint comes when no caller waits.
TEST_F(WriterTest, AQuietWriterMovesItsLog) {
  std::atomic<int> checkpoints = 0;
  logFaults().onDatabaseSync = [&] { ++checkpoints; };
  for (int i = 0; i < 30; ++i)
    sqlite_->writer.write([&](sqlite::Step& step) { return writeBytes(step, 200'000), true; });
  waitFor("the checkpoint of 6 MB", [&] { return checkpoints > 0; });
  const int before = checkpoints;
  sqlite_->writer.write([&](sqlite::Step& step) { return writeBytes(step, 1), true; });
  sqlite_.reset();
  EXPECT_EQ(checkpoints, before + 1) << "a small log waits for the end";
}

/// Writes that come one by one, so each caller commits a write.
class LoneWriterTest : public WriterTest {
 protected:
  void SetUp() override {
    WriterTest::SetUp();
    for (int i = 0; i <= sqlite::WriteTurns::kLoneTurns; ++i) (void)writingThread();
  }

  /// Writes, and returns the thread of the write.
  std::thread::id writingThread() {
    return sqlite_->writer.write([&](sqlite::Step& step) {
      writeBytes(step, 1);
      return std::this_thread::get_id();
    });
  }
};

TEST_F(LoneWriterTest, ACallerCommitsItsOwnWrite) {
  const int before = logFaults().syncs;
  EXPECT_EQ(writingThread(), std::this_thread::get_id());
  EXPECT_EQ(logFaults().syncs, before + 1);
}

TEST_F(LoneWriterTest, WritesBehindACallersAreLeftToTheWritersThread) {
  std::vector<std::thread::id> threads;
  occupy(1);
  for (int i = 0; i < 3; ++i) {
    queue([&](sqlite::Step& step) {
      writeBytes(step, 1);
      threads.push_back(std::this_thread::get_id());
    });
  }
  const int before = logFaults().syncs;
  release();
  awaitAll();
  ASSERT_EQ(threads.size(), 3U);
  EXPECT_THAT(threads, testing::Each(threads.front()));
  EXPECT_EQ(logFaults().syncs, before + 2) << "the first write, and a group of three";
  EXPECT_EQ(writingThread(), threads.front()) << "the next lone write, too";
}

TEST_F(LoneWriterTest, AFailedWriteOfACallerIsUndoneAndThrows) {
  EXPECT_THROW(sqlite_->writer.write([&](sqlite::Step& step) -> bool {
    step.counters.owes("ep", 1);
    throw std::runtime_error("this write fails");
  }),
               std::runtime_error);
  EXPECT_EQ(sqlite_->counters.of("ep").owed, 0);
  EXPECT_EQ(writingThread(), std::this_thread::get_id());
}

TEST_F(LoneWriterTest, TheWritersThreadMovesTheLogOfACallersWrite) {
  std::atomic<int> checkpoints = 0;
  std::thread::id mover;
  logFaults().onDatabaseSync = [&] {
    mover = std::this_thread::get_id();
    ++checkpoints;
  };
  sqlite_->writer.write([&](sqlite::Step& step) {
    writeBytes(step, 1);
    sqlite_->writer.checkpointSoon();
    return true;
  });
  waitFor("the checkpoint", [&] { return checkpoints > 0; });
  sqlite_.reset();
  EXPECT_NE(mover, std::this_thread::get_id());
}

TEST_F(LoneWriterTest, TheWritersThreadSyncsTheUnsyncedJobOfACaller) {
  const int before = logFaults().syncs;
  sqlite_->writer.writeUnsynced([&](sqlite::Step& step) {
    writeBytes(step, 1);
    sqlite_->writer.unsynced().add("job");
    return true;
  });
  waitFor("the sync", [&] { return !sqlite_->writer.unsynced().contains("job"); });
  EXPECT_EQ(logFaults().syncs, before + 1);
}

// The checkpoint at the end syncs the log once more.
TEST_F(LoneWriterTest, AnUnsyncedJobOfACallerIsSyncedAtTheEnd) {
  int atCheckpoint = 0;
  logFaults().onDatabaseSync = [&] {
    if (atCheckpoint == 0) atCheckpoint = logFaults().syncs;
  };
  const int before = logFaults().syncs;
  sqlite_->writer.writeUnsynced([&](sqlite::Step& step) {
    writeBytes(step, 1);
    sqlite_->writer.unsynced().add("job");
    return true;
  });
  sqlite_.reset();
  EXPECT_EQ(atCheckpoint, before + 2);
}

TEST_F(LoneWriterTest, ACallersCommitOnAFullDiskIsUndone) {
  logFaults().syncAnswers = SQLITE_FULL;
  EXPECT_THROW((void)writingThread(), StorageError);
  logFaults().syncAnswers = SQLITE_OK;
  EXPECT_FALSE(sqlite_->writer.refusal());
  EXPECT_EQ(writingThread(), std::this_thread::get_id());
}

TEST_F(LoneWriterTest, ACallersCommitWithoutASyncEndsAllWrites) {
  logFaults().syncAnswers = SQLITE_IOERR_FSYNC;
  EXPECT_THROW((void)writingThread(), StorageError);
  logFaults().syncAnswers = SQLITE_OK;
  EXPECT_TRUE(sqlite_->writer.refusal());
  EXPECT_THROW((void)writingThread(), StorageError);
}

// A group with a failed write is applied a second time, each write alone. A write still sees the changes of the earlier
// writes: without them the bound on owed webhooks would abandon too many.
TEST_F(WriterTest, AWriteSeesTheCountersOfEarlierWritesInARepeatedGroup) {
  std::vector<std::int64_t> seen;
  const auto owe = [&](sqlite::Step& step) {
    step.counters.owes("ep", 1);
    seen.push_back(step.counters.of("ep").owed);
  };
  occupy(1);
  queue(owe);
  queue(owe);
  queue([&](sqlite::Step& step) {
    step.counters.owes("ep", 100);
    throw std::runtime_error("this write fails");
  });
  queue(owe);
  release();
  EXPECT_THROW(awaitAll(), std::runtime_error);
  EXPECT_EQ(seen, (std::vector<std::int64_t>{1, 2, 1, 2, 3}))
      << "two writes run until the failure, then each write runs alone";
  EXPECT_EQ(sqlite_->counters.of("ep").owed, 3);
}

// The writer's thread does not sync by itself while writes wait.
TEST_F(WriterTest, AnUnsyncedJobIsSyncedWithALaterGroupIfTheQueueIsNeverEmpty) {
  using Clock = std::chrono::steady_clock;
  std::atomic<int> begun = 0;
  std::atomic<bool> isSynced = false;
  const auto awaitNext = [&] { waitFor("a further write", [&] { return sqlite_->writer.queued() > 0; }); };
  startUnsynced([&](sqlite::Step& step) {
    const auto added = Clock::now();
    sqlite_->writer.unsynced().add("job");
    writeBytes(step, 1);
    begun = 1;
    waitFor("the end of the time without a sync", [&] { return Clock::now() > added + 2 * kUnsyncedLife; });
    awaitNext();
  });
  waitFor("the first write", [&] { return begun == 1; });
  startUnsynced([&](sqlite::Step& step) {
    writeBytes(step, 1);
    begun = 2;
    awaitNext();
  });
  waitFor("the second write", [&] { return begun == 2; });
  startUnsynced([&](sqlite::Step&) { isSynced = !sqlite_->writer.unsynced().contains("job"); });
  awaitAll();
  EXPECT_TRUE(isSynced);
}

// Two readers of an unsynced job: the second one finds the work of the first.
TEST_F(WriterTest, ASyncAloneWithoutUnsyncedJobsSyncsNothing) {
  sqlite_->writer.write([](sqlite::Step& step) { return writeBytes(step, 1), true; });
  const int before = logFaults().syncs;
  sqlite::SyncAlone sync;
  sqlite_->writer.submit(sync);
  EXPECT_EQ(logFaults().syncs, before);
}

// A sync needs no space.
TEST_F(LoneWriterTest, ASyncInAFailingGroupIsDone) {
  occupy(1);
  queue([&](sqlite::Step& step) {
    sqlite_->writer.unsynced().add("job");
    writeBytes(step, 1);
    logFaults().writeAnswers = SQLITE_FULL;
  });
  std::future<void> failing = lastWrite();
  queueSync();
  const int before = logFaults().syncs;
  release();
  awaitAll();
  EXPECT_THROW(resultOf("the write on a full disk", failing), StorageError);
  EXPECT_EQ(logFaults().syncs, before + 2) << "the first write and the job have a sync each";
  EXPECT_FALSE(sqlite_->writer.unsynced().contains("job"));
}

// SQLite 3.40 loses a transaction that rolls back to a savepoint after writing pages of the savepoint twice before the
// commit: readers see the transaction, but a start after a crash drops the transaction and all later transactions.
TEST_F(WriterTest, AGroupWritesNoPageBeforeItsCommit) {
  constexpr int kBeyondCache = 9'000;
  int before = 0;
  int after = 0;
  sqlite_->writer.write([&](sqlite::Step& step) {
    before = logFaults().writes;
    for (int i = 0; i < kBeyondCache; ++i) writeBytes(step, 3'900);
    after = logFaults().writes;
    return true;
  });
  EXPECT_EQ(after, before);
}

TEST_F(WriterTest, AFailedWriteChangesNoRunningJob) {
  const auto begin = [](std::int64_t num) {
    return [num](sqlite::Step& step) { step.running.begin(num, {"ep", step.now + Millis(num)}); };
  };
  std::vector<std::int64_t> seen;
  occupy(1);
  queue(begin(2));
  queue(begin(1));
  queue([&](sqlite::Step& step) {
    step.running.end(1);
    step.running.begin(3, {"ep", step.now});
    throw std::runtime_error("this write fails");
  });
  queue([&](sqlite::Step& step) {
    seen = step.running.overdue(step.now + Millis(10), 9);
    EXPECT_EQ(step.running.overdue(step.now + Millis(10), 1), std::vector<std::int64_t>{1});
    EXPECT_EQ(step.running.of("other").size(), 0U);
    EXPECT_EQ(step.running.all().size(), 2U);
  });
  release();
  EXPECT_THROW(awaitAll(), std::runtime_error);
  EXPECT_EQ(seen, (std::vector<std::int64_t>{1, 2})) << "the earliest deadline first";
  EXPECT_EQ(sqlite_->running.newestOf("ep"), (std::vector<std::int64_t>{2, 1}));
}

}  // namespace
}  // namespace jobq::testkit
