// Tests of later inserts (JobStore::insertLater) in the SQLite storage: the groups and the thread of the inserts, and
// the end of an insert when the disk fails or the storage closes.
#include <gmock/gmock.h>

#include <atomic>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <optional>
#include <stdexcept>
#include <string>
#include <thread>
#include <utility>
#include <variant>
#include <vector>

#include "jobq/error.h"
#include "jobq/queue_policy.h"
#include "plugins/storage_sqlite/jobs.h"
#include "plugins/storage_sqlite/writes/write_turns.h"
#include "sqlite_bodies_fixture.h"
#include "sqlite_fixture.h"
#include "sqlite_vfs.h"
#include "sqlite_writer_fixture.h"
#include "testkit/later_inserts.h"
#include "testkit/wait_for.h"

namespace jobq::testkit {
namespace {

using testing::Each;
using testing::ElementsAre;
using testing::IsEmpty;
using testing::SizeIs;

/// Keeps the thread of the last rank.
class ThreadOfRank final : public QueuePolicy {
 public:
  std::string group(const JobSpec&) const override { return {}; }
  std::int64_t rank(const JobSpec&, Instant, const GroupState&) const override {
    thread_ = std::this_thread::get_id();
    return 0;
  }
  std::thread::id thread() const { return thread_; }

 private:
  mutable std::atomic<std::thread::id> thread_;
};

class PolicyWithoutRank final : public QueuePolicy {
 public:
  std::string group(const JobSpec&) const override { return {}; }
  std::int64_t rank(const JobSpec&, Instant, const GroupState&) const override { throw JobFailed("no rank today"); }
};

/// The store of jobs beside the writer of the fixture.
class LaterWrites : public WriterTest {
 protected:
  void SetUp() override {
    WriterTest::SetUp();
    OpenSqlite& parts = *sqlite_;
    jobs_ = std::make_unique<sqlite::Jobs>(
        parts.writer, parts.readers, sqlite::LargeBodies{parts.bodies, parts.inputs},
        sqlite::CommittedState{parts.counters, parts.running, parts.ended, parts.numbers}, clock_);
    // The first write to an empty log syncs the head of the log too.
    parts.writer.write([](sqlite::Step& step) { return writeBytes(step, 1), true; });
  }
  // The writer finishes the queued writes, and an insert among the writes uses the store.
  void TearDown() override {
    WriterTest::TearDown();
    jobs_.reset();
  }

  void beginInsert(JobSpec job, const QueuePolicy& policy) {
    jobs_->insertLater(std::move(job), policy, std::nullopt, inserts_.addReceiver());
  }
  void beginInsert(const JobId& id) { beginInsert(spec(id), policy_); }
  void insert(const JobId& id, const QueuePolicy& policy) {
    ASSERT_TRUE(std::holds_alternative<Inserted>(jobs_->insert(spec(id), policy, {})));
  }
  bool has(const JobId& id) { return jobs_->find({"ep", id}, kAnyBytes, JobExtent::result).has_value(); }

  const ThreadOfRank recorded_{};  // a policy has to outlive the receivers
  const PolicyWithoutRank unranked_{};
  LaterInserts inserts_;
  std::vector<std::size_t> endedAtSyncs_;  // the number of inserts that had ended at the sync of each group
  std::unique_ptr<sqlite::Jobs> jobs_;
};

TEST_F(LaterWrites, ManyInsertsShareACommitAndWaitForNoWriter) {
  constexpr std::size_t kJobs = 200;
  occupy(1);
  for (std::size_t i = 0; i < kJobs; ++i) beginInsert("j" + std::to_string(i));
  EXPECT_THAT(inserts_.calls(), Each("")) << "the writer is occupied";
  EXPECT_EQ(sqlite_->writer.queued(), kJobs);
  const int before = logFaults().syncs;
  release();
  EXPECT_EQ(inserts_.awaitAll(), std::vector<std::string>(kJobs, "inserted"));
  EXPECT_EQ(logFaults().syncs, before + 2) << "the first write, and a group of all inserts";
  EXPECT_EQ(jobs_->counts("ep").inQueue, kJobs);
  awaitAll();
}

// All inputs of a group are in memory until its commit. A sync behind the last insert belongs to a checkpoint: the log
// is then large enough to be moved as soon as the writer has rested for 20 ms.
TEST_F(LaterWrites, AGroupOfInsertsHasAtMostFourMegabytes) {
  constexpr std::size_t kJobs = 96;
  occupy(1);
  for (std::size_t i = 0; i < kJobs; ++i) {
    JobSpec job = spec("j" + std::to_string(i));
    job.input = '"' + std::string(kLaterInput - 2, 'x') + '"';
    beginInsert(std::move(job), policy_);
  }
  logFaults().onSync = [this] {
    if (const std::size_t ended = inserts_.destroyed(); ended < kJobs) endedAtSyncs_.push_back(ended);
  };
  release();
  EXPECT_EQ(inserts_.awaitAll(), std::vector<std::string>(kJobs, "inserted"));
  EXPECT_THAT(endedAtSyncs_, ElementsAre(0U, 0U, 64U)) << "the syncs follow the first write, 64 inserts and 32 inserts";
  awaitAll();
}

// The awaited writes between the inserts are more than a woken caller wakes.
TEST_F(LaterWrites, AGroupOfBothKindsEndsEachWrite) {
  constexpr int kEach = 20;
  std::atomic<int> applied = 0;
  occupy(1);
  for (int i = 0; i < kEach; ++i) {
    beginInsert("j" + std::to_string(i));
    queue([&](sqlite::Step& step) {
      writeBytes(step, 1);
      ++applied;
    });
  }
  beginInsert("last");
  const int before = logFaults().syncs;
  release();
  awaitAll();
  EXPECT_EQ(inserts_.awaitAll(), std::vector<std::string>(kEach + 1, "inserted"));
  EXPECT_EQ(applied, kEach);
  EXPECT_EQ(logFaults().syncs, before + 2) << "the first write and the group have a sync each";
}

TEST_F(LaterWrites, AnAwaitedWriteEndsAfterAnInsert) {
  occupy(1);
  beginInsert("a");
  queue([](sqlite::Step& step) { writeBytes(step, 1); });
  release();
  awaitAll();
  EXPECT_THAT(inserts_.awaitAll(), ElementsAre("inserted"));
}

TEST_F(LaterWrites, AnAwaitedWriteEndsBeforeAnInsert) {
  occupy(1);
  queue([](sqlite::Step& step) { writeBytes(step, 1); });
  beginInsert("a");
  release();
  awaitAll();
  EXPECT_THAT(inserts_.awaitAll(), ElementsAre("inserted"));
}

TEST_F(LaterWrites, AFailedInsertHarmsNoNeighbour) {
  insert("taken", policy_);
  JobSpec other = spec("taken");
  other.input = "{}";
  occupy(1);
  beginInsert("a");
  beginInsert(other, policy_);
  queue([](sqlite::Step& step) { writeBytes(step, 1); });
  beginInsert(spec("unranked"), unranked_);
  beginInsert("b");
  release();
  awaitAll();
  EXPECT_THAT(inserts_.awaitAll(), ElementsAre("inserted", "StorageError", "another error", "inserted"));
  EXPECT_TRUE(has("a"));
  EXPECT_TRUE(has("b"));
  EXPECT_FALSE(has("unranked"));
  EXPECT_EQ(jobs_->counts("ep").inQueue, 3U);
}

TEST_F(LaterWrites, AFailedAwaitedWriteHarmsNoInsert) {
  occupy(1);
  beginInsert("a");
  queue([](sqlite::Step& step) {
    step.counters.owes("ep", 1);
    throw std::runtime_error("this write fails");
  });
  beginInsert("b");
  release();
  EXPECT_THROW(awaitAll(), std::runtime_error);
  EXPECT_THAT(inserts_.awaitAll(), ElementsAre("inserted", "inserted"));
  EXPECT_EQ(jobs_->counts("ep").inQueue, 2U) << "each insert is applied twice and counts once";
  EXPECT_EQ(sqlite_->counters.of("ep").owed, 0);
}

TEST_F(LaterWrites, AGroupOnAFullDiskAnswersEachReceiver) {
  occupy(1);
  for (int i = 0; i < 10; ++i) beginInsert("j" + std::to_string(i));
  queue([](sqlite::Step& step) { writeBytes(step, 1); });
  logFaults().syncAnswers = SQLITE_FULL;
  release();
  EXPECT_EQ(inserts_.awaitAll(), std::vector<std::string>(10, "StorageError"));
  EXPECT_THROW(awaitAll(), StorageError);
  logFaults().syncAnswers = SQLITE_OK;
  EXPECT_EQ(jobs_->counts("ep").inQueue, 0U);
  EXPECT_FALSE(has("j0"));
  beginInsert("j0");
  EXPECT_EQ(inserts_.awaitAll().back(), "inserted") << "there is space again";
  EXPECT_TRUE(has("j0"));
}

TEST_F(LaterWrites, TheWritersThreadCommitsAnInsertAlsoAfterLoneWrites) {
  for (int i = 0; i <= sqlite::WriteTurns::kLoneTurns; ++i) insert("lone" + std::to_string(i), recorded_);
  ASSERT_EQ(recorded_.thread(), std::this_thread::get_id()) << "a caller commits a lone write";
  for (int i = 0; i < 3; ++i) {
    const JobId id = std::to_string(i);
    beginInsert(spec("later" + id), recorded_);
    EXPECT_EQ(inserts_.awaitAll().back(), "inserted");
    EXPECT_NE(recorded_.thread(), std::this_thread::get_id());
    insert("own" + id, recorded_);
    EXPECT_EQ(recorded_.thread(), std::this_thread::get_id()) << "a lone later insert ends no row of lone writes";
  }
}

// The occupying write runs on a thread of the fixture.
TEST_F(LaterWrites, AnInsertBehindTheOwnCommitOfACallerIsCommittedByTheWritersThread) {
  for (int i = 0; i <= sqlite::WriteTurns::kLoneTurns; ++i) insert("lone" + std::to_string(i), recorded_);
  occupy(1);
  beginInsert(spec("later"), recorded_);
  EXPECT_EQ(inserts_.calls(), std::vector<std::string>{""});
  release();
  EXPECT_EQ(inserts_.awaitAll(), std::vector<std::string>{"inserted"});
  EXPECT_NE(recorded_.thread(), std::this_thread::get_id());
  awaitAll();
}

/// The storage of the server.
class LaterStorage : public SqliteBodiesTest {
 protected:
  void TearDown() override {
    isFree_ = true;
    SqliteBodiesTest::TearDown();
  }

  void beginInsert(JobSpec job, const std::optional<Idempotency>& idempotency = std::nullopt) {
    storage_->jobs().insertLater(std::move(job), policy_, idempotency, inserts_.addReceiver());
  }
  /// Inserts a job and waits for the end of the insert. Returns the text of the receiver (LaterInserts).
  std::string insertLater(JobSpec job, const std::optional<Idempotency>& idempotency = std::nullopt) {
    beginInsert(std::move(job), idempotency);
    return inserts_.awaitAll().back();
  }
  /// Begins an insert and holds the sync of the insert until isFree_ is set. Returns when the sync has begun.
  void holdTheWriter() {
    logFaults().onSync = [this] {
      if (!isHeld_.exchange(true)) waitFor("the test to free the writer", [this] { return isFree_.load(); });
    };
    beginInsert(spec("held"));
    waitFor("the sync of the first insert", [this] { return isHeld_.load(); });
  }

  LaterInserts inserts_;
  std::atomic<bool> isHeld_ = false;
  std::atomic<bool> isFree_ = false;
};

TEST_F(LaterStorage, AToldInsertWasSynced) {
  open();
  for (std::size_t i = 0; i < 5; ++i) {
    const int before = logFaults().syncs;
    beginInsert(spec("j" + std::to_string(i)));
    EXPECT_EQ(inserts_.awaitCall(i), "inserted");
    EXPECT_GT(logFaults().syncs, before);
  }
}

TEST_F(LaterStorage, NoReceiverIsToldBeforeTheSync) {
  open();
  holdTheWriter();
  beginInsert(spec("behind"));
  EXPECT_THAT(inserts_.calls(), ElementsAre("", ""));
  EXPECT_EQ(inserts_.destroyed(), 0U);
  isFree_ = true;
  EXPECT_THAT(inserts_.awaitAll(), ElementsAre("inserted", "inserted"));
}

TEST_F(LaterStorage, TheQueueHasTheOrderOfTheCallsOfAThread) {
  open();
  std::vector<JobId> expected;
  for (int i = 0; i < 60; ++i) {
    const JobId id = "j" + std::to_string(i);
    expected.push_back(id);
    if (i % 5 == 4) {
      submit(id);
    } else {
      beginInsert(spec(id));
    }
  }
  EXPECT_THAT(inserts_.awaitAll(), Each("inserted"));
  std::vector<JobId> order;
  for (const ClaimedJob& job : claim(100)) order.push_back(job.lease.job);
  EXPECT_EQ(order, expected);
}

TEST_F(LaterStorage, AClosingStorageEndsTheQueuedInserts) {
  constexpr std::size_t kJobs = 100;
  open();
  holdTheWriter();
  for (std::size_t i = 1; i < kJobs; ++i) beginInsert(spec("j" + std::to_string(i)));
  beginInsert(large("large"));
  isFree_ = true;
  storage_.reset();
  EXPECT_EQ(inserts_.calls(), std::vector<std::string>(kJobs + 1, "inserted"));
  EXPECT_EQ(inserts_.destroyed(), kJobs + 1);
  open();
  EXPECT_EQ(storage_->jobs().counts("ep").inQueue, kJobs + 1);
}

TEST_F(LaterStorage, AClosingStorageOnAFailingDiskAnswersEachReceiver) {
  constexpr std::size_t kJobs = 20;
  open();
  holdTheWriter();
  for (std::size_t i = 1; i < kJobs; ++i) beginInsert(spec("j" + std::to_string(i)));
  beginInsert(large("large"));
  logFaults().syncAnswers = SQLITE_IOERR_FSYNC;
  isFree_ = true;
  storage_.reset();
  EXPECT_EQ(inserts_.calls(), std::vector<std::string>(kJobs + 1, "StorageError"));
  EXPECT_EQ(inserts_.destroyed(), kJobs + 1);
}

TEST_F(LaterStorage, AFullDiskIsToldAndHeals) {
  open();
  submit("before");
  logFaults().writeAnswers = SQLITE_FULL;
  EXPECT_EQ(insertLater(spec("lost"), Idempotency{"k", "h1"}), "StorageError");
  EXPECT_FALSE(find("lost"));
  EXPECT_EQ(storage_->jobs().counts("ep").inQueue, 1U);
  logFaults().reset();
  EXPECT_EQ(insertLater(spec("next"), Idempotency{"k", "h2"}), "inserted") << "the lost insert left no key";
  EXPECT_FALSE(find("lost"));
  EXPECT_THAT(claim(9), SizeIs(2));
}

TEST_F(LaterStorage, AnErrorOfTheDiskEndsAllInserts) {
  open();
  submit("before");
  logFaults().syncAnswers = SQLITE_IOERR_FSYNC;
  EXPECT_EQ(insertLater(spec("lost")), "StorageError");
  EXPECT_FALSE(find("lost"));
  logFaults().reset();
  beginInsert(spec("refused"));
  EXPECT_EQ(inserts_.calls().back(), "StorageError") << "a read-only storage refuses at once";
  EXPECT_EQ(insertLater(large("refused")), "StorageError");
  EXPECT_EQ(inserts_.destroyed(), 3U);
  EXPECT_FALSE(find("refused"));
  EXPECT_THAT(files(), IsEmpty());
  EXPECT_TRUE(find("before"));
}

TEST_F(LaterStorage, ALargeInputIsInAFile) {
  open();
  EXPECT_EQ(insertLater(large("a")), "inserted");
  EXPECT_THAT(files(), SizeIs(1));
  EXPECT_EQ(insertLater(large("a")), "inserted") << "a repeated call";
  EXPECT_THAT(files(), SizeIs(1));
  storage_.reset();
  open();
  EXPECT_EQ(claim(1).at(0).input, large("a").input);
}

TEST_F(LaterStorage, AnUninsertedLargeInputLeavesNoFile) {
  open();
  ASSERT_EQ(insertLater(large("a"), Idempotency{"k", "h1"}), "inserted");
  EXPECT_EQ(insertLater(large("a", 'y')), "StorageError") << "the id is taken";
  EXPECT_THAT(files(), SizeIs(1));
  EXPECT_EQ(insertLater(large("b"), Idempotency{"k", "h1"}), "duplicate of a");
  EXPECT_THAT(files(), SizeIs(1));
  EXPECT_EQ(insertLater(large("b"), Idempotency{"k", "h2"}), "key conflict");
  EXPECT_THAT(files(), SizeIs(1));
  logFaults().writeAnswers = SQLITE_FULL;
  EXPECT_EQ(insertLater(large("b")), "StorageError") << "there is room for the file, but not for the row";
  EXPECT_THAT(files(), SizeIs(1));
}

TEST_F(LaterStorage, AnUnwritableFileIsReportedBeforeTheCallReturns) {
  open();
  bodyFaults().writeAnswers = SQLITE_FULL;
  beginInsert(large("a"));
  EXPECT_THAT(inserts_.calls(), ElementsAre("StorageError"));
  EXPECT_EQ(inserts_.destroyed(), 1U);
  EXPECT_THAT(files(), IsEmpty());
  EXPECT_FALSE(find("a"));
  EXPECT_EQ(insertLater(spec("small")), "inserted");
  bodyFaults().reset();
  EXPECT_EQ(insertLater(large("a")), "inserted");
}

}  // namespace
}  // namespace jobq::testkit
