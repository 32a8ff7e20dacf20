// Tests of the SQLite storage on a full or broken disk.
#include "sqlite_fixture.h"
#include "testkit/thrown_text.h"

namespace jobq::testkit {
namespace {

class Disk : public SqliteTest {
 protected:
  std::string checkFailure() {
    return thrownText<StorageError>([&] { return storage_->check(); });
  }
};

TEST_F(Disk, AFullDiskRecoversWhenThereIsSpaceAgain) {
  open();
  submit("before");
  logFaults().writeAnswers = SQLITE_FULL;
  EXPECT_FALSE(submitted("lost"));
  EXPECT_NE(checkFailure().find("full"), std::string::npos) << checkFailure();
  EXPECT_TRUE(find("before")) << "a full disk stops no reads";
  EXPECT_FALSE(find("lost"));
  EXPECT_EQ(storage_->jobs().counts("ep").inQueue, 1U);
  EXPECT_THROW((void)claim(1), StorageError);

  logFaults().reset();
  EXPECT_EQ(checkFailure(), "");
  EXPECT_FALSE(find("lost")) << "the refused insert left no row";
  EXPECT_TRUE(submitted("lost"));
  EXPECT_EQ(claim(9).size(), 2U);
}

TEST_F(Disk, AFailedSyncMakesTheStorageReadOnlyUntilTheNextOpening) {
  open();
  submit("before");
  logFaults().syncAnswers = SQLITE_IOERR_FSYNC;
  EXPECT_FALSE(submitted("lost"));
  logFaults().reset();
  EXPECT_FALSE(submitted("later")) << "a second fsync may report success although data is lost";
  EXPECT_NE(checkFailure().find("read-only until the server is restarted"), std::string::npos) << checkFailure();
  EXPECT_TRUE(find("before"));
  EXPECT_FALSE(find("lost"));
  EXPECT_EQ(storage_->jobs().counts("ep").inQueue, 1U);
  storage_.reset();
  open();
  EXPECT_EQ(checkFailure(), "");
  EXPECT_TRUE(submitted("later"));
  EXPECT_TRUE(find("before"));
}

TEST_F(Disk, AWriteErrorMakesTheStorageReadOnlyToo) {
  open();
  submit("before");
  logFaults().writeAnswers = SQLITE_IOERR_WRITE;
  EXPECT_FALSE(submitted("lost"));
  logFaults().reset();
  EXPECT_FALSE(submitted("later"));
  EXPECT_TRUE(find("before"));
}

// Fails the n-th write to the log and all later writes, for every n, in the middle of a job's life. Acknowledged steps
// are kept, all other steps have left no trace, and the counters agree with the file.
TEST_F(Disk, AFailureAtAnyWriteLeavesWholeSteps) {
  for (int n = 1;; ++n) {
    storage_.reset();
    logFaults().reset();
    dir_.clear();
    open();
    submit("witness");
    logFaults().writesFrom = logFaults().writes + n;
    logFaults().writeAnswers = SQLITE_FULL;

    bool inserted = false;
    bool claimed = false;
    bool finished = false;
    try {
      JobSpec job = spec("a");
      job.webhook = "http://example.com/";
      job.policy.lowPriority = true;
      submit(std::move(job));
      inserted = true;
      const auto jobs = claim(2);
      claimed = true;
      EXPECT_EQ(storage_->leases().finish(jobs.at(1).lease, Completed{"1"}), ReportResult::accepted);
      finished = true;
    } catch (const StorageError&) {
    }
    logFaults().reset();

    ASSERT_EQ(find("a").has_value(), inserted) << n;
    if (inserted) {
      const JobState expected = finished ? JobState::completed : claimed ? JobState::inProgress : JobState::inQueue;
      ASSERT_EQ(find("a")->state, expected) << n;
    }
    ASSERT_EQ(storage_->outbox().list("ep", "a", 9).size(), finished ? 1U : 0U) << n;
    const EndpointCounts before = storage_->jobs().counts("ep");
    storage_.reset();
    open();
    const EndpointCounts after = storage_->jobs().counts("ep");
    ASSERT_EQ(before.inQueue + before.inProgress * 10 + before.completed * 100,
              after.inQueue + after.inProgress * 10 + after.completed * 100)
        << n;
    if (finished) break;
    ASSERT_LT(n, 1'000);
  }
}

}  // namespace
}  // namespace jobq::testkit
