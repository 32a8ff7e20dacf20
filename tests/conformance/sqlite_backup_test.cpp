// Tests of copying the database during writes (Storage::backupTo).
#include <sys/stat.h>

#include <atomic>

#include "plugins/storage_sqlite/schema/backup.h"
#include "sqlite_fixture.h"
#include "testkit/thrown_text.h"

namespace jobq::testkit {
namespace {

namespace fs = std::filesystem;

class SqliteBackup : public SqliteTest {
 protected:
  fs::path copy() const { return restored_.path() / "jobq.db"; }
  BackupResult backup(std::stop_token stop = {}) { return storage_->backupTo(copy(), std::move(stop)); }
  std::vector<std::string> filesOfTheCopy() const {
    std::vector<std::string> names;
    for (const auto& entry : fs::directory_iterator(restored_.path())) names.push_back(entry.path().filename());
    return names;
  }
  void restore() {
    storage_.reset();
    storage_ = openAt(restored_);
    holder_ = storage_->nodes().join("node");
  }

  const TemporaryFolder restored_;
};

TEST_F(SqliteBackup, TheCopyIsAStorageOfTheSameContent) {
  open();
  submit("waits");
  submit("runs");
  ASSERT_EQ(claim(1).at(0).lease.job, "waits");
  ASSERT_EQ(backup(), BackupResult::written);
  EXPECT_EQ(filesOfTheCopy(), std::vector<std::string>{"jobq.db"});
  struct stat info {};
  ASSERT_EQ(::stat(copy().c_str(), &info), 0);
  EXPECT_EQ(info.st_mode & 0777U, 0600U);
  submit("later");

  restore();
  EXPECT_FALSE(find("later"));
  EXPECT_EQ(find("runs")->state, JobState::inQueue);
  EXPECT_EQ(storage_->leases().sweep(10).stopped.at(0).job, "waits") << "the job was claimed by a different process";
  EXPECT_EQ(find("waits")->state, JobState::inQueue);
  submit("after");
  EXPECT_EQ(claim(9).size(), 3U);
}

// A copy that fills the disk would stop the acceptance of jobs.
TEST_F(SqliteBackup, ACopyTooLargeForTheDiskIsRefusedAtTheStart) {
  constexpr std::uint64_t kBytes = 500UL << 20;
  EXPECT_NO_THROW(sqlite::requireRoom(kBytes, kBytes + sqlite::kRoomForWrites));
  EXPECT_EQ(thrownText<StorageError>([&] { return sqlite::requireRoom(kBytes, kBytes + sqlite::kRoomForWrites - 1); }),
            "the backup needs 501 MB and 256 MB for the jobs of that time, and the disk of data.dir has 756 MB: "
            "free space, or stop the server and copy data.dir");
}

// The log stays beside the files of a killed server; a restore of the database alone would apply the log to a different
// file.
TEST_F(SqliteBackup, ACopyBesideTheLogOfAnotherFileIsRefused) {
  open();
  submit("a");
  ASSERT_EQ(backup(), BackupResult::written);
  const fs::path log = file().string() + "-wal";
  ASSERT_GT(fs::file_size(log), 32U);
  fs::copy_file(log, copy().string() + "-wal");
  const std::string before = contentOf(copy());
  const std::string text = thrownText<StorageError>([&] { return openAt(restored_); });
  EXPECT_NE(text.find("belongs to another database"), std::string::npos) << text;
  EXPECT_EQ(contentOf(copy()), before);
  EXPECT_EQ(contentOf(copy().string() + "-wal"), contentOf(log));
  fs::remove(copy().string() + "-wal");
  restore();
  EXPECT_TRUE(find("a"));
}

TEST_F(SqliteBackup, WritersGoOnAndTheCopyHasAllEarlierWrites) {
  open();
  std::atomic<int> stored = 0;
  std::atomic<bool> over = false;
  std::thread writer([&] {
    while (!over) {
      submit("job" + std::to_string(stored));
      ++stored;
    }
  });
  waitFor("jobs to be stored", [&] { return stored >= 100; });
  const int before = stored;
  const BackupResult result = backup();
  waitFor("jobs to be stored behind the copy", [&, behind = stored.load()] { return stored > behind; });
  over = true;
  join("the writer", writer);
  ASSERT_EQ(result, BackupResult::written);

  const int all = stored;
  restore();
  const auto there = static_cast<int>(storage_->jobs().counts("ep").inQueue);
  EXPECT_GE(there, before);
  EXPECT_LE(there, all);
  for (int i = 0; i < there; ++i) EXPECT_TRUE(find("job" + std::to_string(i))) << "no job is left out";
}

TEST_F(SqliteBackup, AStopEndsABackupAndLeavesNoFile) {
  open();
  for (int i = 0; i < 50; ++i) submit("job" + std::to_string(i));
  std::stop_source stop;
  stop.request_stop();
  EXPECT_EQ(backup(stop.get_token()), BackupResult::stopped);
  EXPECT_EQ(filesOfTheCopy(), std::vector<std::string>{});
  EXPECT_EQ(backup(), BackupResult::written);
}

TEST_F(SqliteBackup, AFailedCopyHasNoEffect) {
  open();
  submit("before");
  EXPECT_THROW((void)storage_->backupTo(restored_.path() / "none" / "jobq.db", {}), StorageError);
  std::ofstream(copy()) << "somebody else's";
  EXPECT_THROW((void)backup(), StorageError);
  EXPECT_EQ(contentOf(copy()), "somebody else's");
  fs::remove(copy());
  EXPECT_TRUE(submitted("after"));
  EXPECT_EQ(backup(), BackupResult::written);
}

}  // namespace
}  // namespace jobq::testkit
