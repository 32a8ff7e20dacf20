// Tests of the size of the database file. The space of removed jobs returns to the file system, and older files without
// such an ability name the way of conversion.
#include <algorithm>

#include "plugins/storage_sqlite/schema/schema.h"
#include "plugins/storage_sqlite/schema/shrink.h"
#include "sqlite_fixture.h"
#include "testkit/recording_log.h"

namespace jobq::testkit {
namespace {

namespace fs = std::filesystem;
using sqlite::Connection;

constexpr std::uintmax_t kPage = 4'096;

/// Returns the size limit of a file: a file may keep 1,000 free pages, or a tenth of its pages
/// (plugins/storage_sqlite/schema/shrink.h).
constexpr std::uintmax_t mostPages(std::uintmax_t used) { return std::max(used + 1'000, used * 10 / 9 + 1); }

class Shrink : public SqliteTest {
 protected:
  static constexpr int kJobs = 400;
  static constexpr int kEach = 20;  // one of kEach jobs stays

  static std::string bodyOf(int number) {
    return "{\"n\":" + std::to_string(number) + ",\"x\":\"" + std::string(60'000, char('a' + number % 26)) + "\"}";
  }
  static JobId idOf(int number) { return "job" + std::to_string(number); }
  static bool stays(int number) { return number % kEach == 0; }

  /// Stores 24 MB of jobs; most of the jobs expire within a minute.
  void fill() {
    for (int number = 0; number < kJobs; ++number) {
      JobSpec job = spec(idOf(number));
      job.input = bodyOf(number);
      job.policy.ttl = Millis(stays(number) ? 86'400'000 : 60'000);
      submit(std::move(job));
    }
  }
  void sweepAll() {
    while (storage_->leases().sweep(100).more) continue;
  }
  /// Moves the clock by one second and sweeps, like the server each second.
  void sweepNextSecond() {
    clock_.advance(Millis(1'000));
    sweepAll();
  }
  static std::uintmax_t number(const fs::path& file, const char* sql) {
    Connection connection(file, Connection::Access::readOnly);
    return static_cast<std::uintmax_t>(connection.number(sql));
  }
  std::uintmax_t usedPages() const {
    return number(file(), "PRAGMA page_count") - number(file(), "PRAGMA freelist_count");
  }
  void expectTheJobsThatStay() {
    EXPECT_EQ(storage_->jobs().counts("ep").inQueue, std::uint64_t{kJobs / kEach});
    const auto claimed = claim(kJobs);
    ASSERT_EQ(claimed.size(), std::size_t{kJobs / kEach});
    for (std::size_t i = 0; i < claimed.size(); ++i) {
      const int number = static_cast<int>(i) * kEach;
      EXPECT_EQ(claimed[i].lease.job, idOf(number));
      EXPECT_EQ(claimed[i].input, bodyOf(number));
    }
  }
  void expectSound() {
    Connection connection(file(), Connection::Access::readOnly);
    sqlite::Query query = connection.query("PRAGMA integrity_check");
    ASSERT_TRUE(query.next());
    EXPECT_EQ(query.text(0), "ok");
  }

  const TemporaryFolder restored_;
};

TEST_F(Shrink, AFileShrinksToItsContent) {
  open();
  fill();
  clock_.advance(Millis(60'000));
  sweepAll();
  const std::uintmax_t full = kJobs * bodyOf(1).size();
  WaitDeadline wait("the file to shrink");
  while (fs::file_size(file()) > mostPages(usedPages()) * kPage) {
    sweepNextSecond();
    wait.pause();
  }
  EXPECT_LT(fs::file_size(file()), full / 2);
  expectTheJobsThatStay();
  expectSound();
}

TEST_F(Shrink, ASweepCutsABoundedPieceOnceASecond) {
  open();
  fill();
  clock_.advance(Millis(60'000));
  sweepAll();
  sweepAll();  // cuts the first piece: the sweeps before had results that callers wait for
  const std::uintmax_t before = number(file(), "PRAGMA page_count");
  sweepAll();
  EXPECT_EQ(number(file(), "PRAGMA page_count"), before) << "no further piece is cut within the second";
  sweepNextSecond();
  const std::uintmax_t after = number(file(), "PRAGMA page_count");
  EXPECT_LT(after, before);
  EXPECT_GE(after + 520, before) << "a cut removes 512 pages and the pages of the pointer map";
}

TEST_F(Shrink, ASweepWithAnAwaitedResultCutsNoPage) {
  open();
  fill();
  clock_.advance(Millis(60'000));
  sweepAll();
  JobSpec job = spec("late");
  job.policy.executionTimeout = Millis(1'000);
  submit(std::move(job));
  const auto claimed = claim(kJobs);
  const std::uintmax_t before = number(file(), "PRAGMA page_count");
  clock_.advance(Millis(1'000));
  ASSERT_EQ(storage_->leases().sweep(100).finished.size(), 1U) << claimed.size();
  EXPECT_GE(number(file(), "PRAGMA page_count"), before);
  sweepNextSecond();
  EXPECT_LT(number(file(), "PRAGMA page_count"), before);
}

TEST_F(Shrink, APausedShrinkerCutsNoPage) {
  open();
  fill();
  clock_.advance(Millis(60'000));
  sweepAll();
  storage_.reset();
  Connection connection(file(), Connection::Access::readWrite);
  sqlite::Counters counters;
  sqlite::RunningRows running;
  sqlite::JobNumbers numbers;
  numbers.load(connection);
  counters.load(connection, running);
  RecordingLog log;
  sqlite::EndedJobs ended;
  sqlite::Writer writer(connection, {counters, running, ended, numbers}, clock_, log, 64UL << 20);
  sqlite::Readers readers(file(), 2);
  sqlite::Shrinker shrinker(writer, readers, clock_);
  const std::uintmax_t before = number(file(), "PRAGMA page_count");
  {
    const sqlite::Shrinker::Pause pause(shrinker);
    clock_.advance(Millis(1'000));
    shrinker.run();
    EXPECT_EQ(number(file(), "PRAGMA page_count"), before);
  }
  shrinker.run();
  EXPECT_LT(number(file(), "PRAGMA page_count"), before);
}

TEST_F(Shrink, AFileWithLittleFreeSpaceStaysUnchanged) {
  open();
  for (int number = 0; number < 20; ++number) {
    JobSpec job = spec(idOf(number));
    job.input = bodyOf(number);
    job.policy.ttl = Millis(60'000);
    submit(std::move(job));
  }
  clock_.advance(Millis(60'000));
  sweepAll();
  const std::uintmax_t pages = number(file(), "PRAGMA page_count");
  EXPECT_GT(number(file(), "PRAGMA freelist_count"), 200U);
  for (int second = 0; second < 5; ++second) sweepNextSecond();
  EXPECT_EQ(number(file(), "PRAGMA page_count"), pages) << "the next jobs need the space again";
}

TEST_F(Shrink, AnOlderFileKeepsTheSizeUntilTheConversion) {
  runScript(file(), "PRAGMA auto_vacuum = NONE; PRAGMA journal_mode = WAL; PRAGMA user_version = 0;");
  ASSERT_EQ(number(file(), "PRAGMA auto_vacuum"), 0U);
  open();
  ASSERT_EQ(number(file(), "PRAGMA auto_vacuum"), 0U);
  fill();
  clock_.advance(Millis(60'000));
  sweepAll();
  const std::uintmax_t pages = number(file(), "PRAGMA page_count");
  sweepNextSecond();
  EXPECT_EQ(number(file(), "PRAGMA page_count"), pages);

  ASSERT_EQ(storage_->backupTo(restored_.path() / "jobq.db", {}), BackupResult::written);
  storage_.reset();
  RecordingLog log;
  {
    Connection connection(file(), Connection::Access::readWrite);
    sqlite::adviseConversion(connection, file(), log);
  }
  EXPECT_EQ(log.lines().size(), 1U);
  const fs::path copy = restored_.path() / "jobq.db";
  EXPECT_EQ(number(copy, "PRAGMA auto_vacuum"), std::uintmax_t{sqlite::kIncrementalVacuum});
  {
    Connection connection(copy, Connection::Access::readWrite);
    sqlite::adviseConversion(connection, copy, log);
  }
  EXPECT_EQ(log.lines().size(), 1U) << "a shrinking file needs no advice";
  storage_ = openAt(restored_);
  expectTheJobsThatStay();
}

}  // namespace
}  // namespace jobq::testkit
