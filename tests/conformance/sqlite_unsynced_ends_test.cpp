// Tests of unsynced ends (LeaseStore::finish) in the SQLite storage: an end waits for no sync, and is synced before it
// is shown.
#include <atomic>
#include <cstddef>
#include <string>
#include <thread>
#include <utility>
#include <vector>

#include "sqlite_fixture.h"
#include "testkit/outbox_access.h"

namespace jobq::testkit {
namespace {

class UnsyncedEnds : public SqliteTest {
 protected:
  void SetUp() override {
    SqliteTest::SetUp();
    open();
  }

  LeaseRef claimed(JobSpec job) {
    const ClaimWant want{job.endpoint, {"w1"}};
    submit(std::move(job));
    return storage_->leases().claim({&want, 1}, holder_, ++calls_).jobs.at(0).lease;
  }
  LeaseRef claimed(const JobId& id) { return claimed(spec(id)); }
  void end(const LeaseRef& lease) {
    const EndedAttempt ended{lease, Completed{"1"}};
    const auto done = storage_->leases().finish({&ended, 1}, Durability::unsynced, std::nullopt);
    ASSERT_EQ(done.reports.at(0), ReportResult::accepted);
  }

  CallId calls_ = 0;
};

// The failing sync shows that the call does not wait for one.
TEST_F(UnsyncedEnds, AreShownOnlyWhenDurable) {
  const LeaseRef ended = claimed("ended");
  const LeaseRef running = claimed("running");
  logFaults().syncAnswers = SQLITE_IOERR_FSYNC;
  end(ended);
  EXPECT_THROW((void)find("ended"), StorageError);
  EXPECT_THROW((void)storage_->jobs().list({"ep", {}}, {}), StorageError);
  EXPECT_THROW((void)storage_->chunks().read({"ep", "ended"}, 0, 100), StorageError);
  EXPECT_THROW((void)storage_->chunks().consume({"ep", "ended"}, 100, ++calls_), StorageError);
  EXPECT_EQ(storage_->chunks().read({"ep", "running"}, 0, 100)->state, JobState::inProgress);
  EXPECT_EQ(find("running")->attempt, running.attempt) << "other jobs are shown";
}

TEST_F(UnsyncedEnds, AreSyncedByTheWriterSoonAndOnce) {
  const LeaseRef lease = claimed("a");
  const int before = logFaults().syncs;
  end(lease);
  waitFor("the sync of the writer", [&] { return logFaults().syncs > before; });
  const int after = logFaults().syncs;
  EXPECT_EQ(find("a")->output, "1");
  EXPECT_EQ(storage_->chunks().read({"ep", "a"}, 0, 100)->state, JobState::completed);
  EXPECT_EQ(logFaults().syncs, after);
}

TEST_F(UnsyncedEnds, AreDurableBeforeTheirWebhookIsHandedOut) {
  JobSpec job = spec("a");
  job.webhook = "http://h/done";
  const LeaseRef lease = claimed(std::move(job));
  logFaults().syncAnswers = SQLITE_IOERR_FSYNC;
  end(lease);
  EXPECT_THROW((void)claimAllDue(storage_->outbox(), Millis(60'000)), StorageError);
}

// A sync needs no space.
TEST_F(UnsyncedEnds, AreShownOnAFullDisk) {
  const LeaseRef lease = claimed("a");
  end(lease);
  logFaults().writeAnswers = SQLITE_FULL;
  EXPECT_EQ(find("a")->output, "1");
  EXPECT_EQ(storage_->chunks().read({"ep", "a"}, 0, 100)->state, JobState::completed);
  EXPECT_THROW(submit("b"), StorageError);
}

// Detects a missing sync unless the writer's own sync, 5 ms after the end, has come before the insert.
TEST_F(UnsyncedEnds, AreSyncedByAFailingGroup) {
  const LeaseRef lease = claimed("a");
  end(lease);
  logFaults().writeAnswers = SQLITE_FULL;
  EXPECT_THROW(submit("b"), StorageError);
  logFaults().syncAnswers = SQLITE_IOERR_FSYNC;
  EXPECT_EQ(find("a")->output, "1");
}

// The sync of a reader shares a group with failing inserts of other callers.
TEST_F(UnsyncedEnds, AreShownBesideFailingInserts) {
  constexpr int kRounds = 20;
  constexpr int kCallers = 3;
  for (int round = 0; round < kRounds; ++round) {
    const JobId id = "a" + std::to_string(round);
    const LeaseRef lease = claimed(id);
    std::atomic<bool> isShown = false;
    std::vector<std::thread> callers;
    end(lease);
    logFaults().writeAnswers = SQLITE_FULL;
    for (int i = 0; i < kCallers; ++i) {
      callers.emplace_back([&, job = spec("b" + std::to_string(i))] {
        while (!isShown) EXPECT_THROW(submit(job), StorageError);
      });
    }
    EXPECT_NO_THROW((void)find(id)) << "round " << round;
    isShown = true;
    joinAll("the callers of a full disk", callers);
    logFaults().writeAnswers = SQLITE_OK;
  }
}

TEST_F(UnsyncedEnds, AreShownWhileAnotherProgramHoldsTheDatabase) {
  const LeaseRef lease = claimed("a");
  sqlite3* other = nullptr;
  ASSERT_EQ(sqlite3_open(file().c_str(), &other), SQLITE_OK);
  end(lease);
  ASSERT_EQ(sqlite3_exec(other, "BEGIN IMMEDIATE", nullptr, nullptr, nullptr), SQLITE_OK);
  EXPECT_EQ(find("a")->output, "1");
  sqlite3_close(other);
}

TEST_F(UnsyncedEnds, KeepALargeOutputInItsFile) {
  const LeaseRef lease = claimed("a");
  const std::string output = '"' + std::string(std::size_t{1} << 20, 'x') + '"';
  const EndedAttempt ended{lease, Completed{output}};
  (void)storage_->leases().finish({&ended, 1}, Durability::unsynced, std::nullopt);
  EXPECT_EQ(find("a")->output, output);
  storage_.reset();
  open();
  EXPECT_EQ(find("a")->output, output);
}

}  // namespace
}  // namespace jobq::testkit
