// Tests of the file layer that gathers the writes of a transaction (plugins/storage_sqlite/disk/log_writes.h).
#include "plugins/storage_sqlite/disk/log_writes.h"

#include <gtest/gtest.h>

#include <filesystem>
#include <random>
#include <string>

#include "plain_database.h"
#include "sqlite_fixture.h"

namespace jobq::testkit {
namespace {

namespace fs = std::filesystem;

class LogWritesTest : public SqliteTest {};

TEST_F(LogWritesTest, ACommitOfSomeJobsIsOneWrite) {
  open();
  submit("first");
  logFaults().reset();
  submit("second");
  EXPECT_EQ(logFaults().writes, 1);
  EXPECT_EQ(logFaults().syncs, 1);
  JobSpec larger = spec("larger");
  larger.input = "\"" + std::string(200'000, 'x') + "\"";
  submit(larger);
  EXPECT_LE(logFaults().writes, 1 + 5) << "a write has at most 64 KB";
}

constexpr char kSum[] = "SELECT count(*) || ' ' || total(n) || ' ' || total(length(body)) FROM row";

/// Returns the sum of a copy of the files, as found by a process after the sudden end of the test's process.
std::string sumAfterAKill(const fs::path& file) {
  const testkit::TemporaryFolder copies;
  const fs::path copy = copies / "copy.db";
  for (const char* const part : {"", "-wal"}) fs::copy_file(file.string() + part, copy.string() + part);
  PlainDatabase database(copy, nullptr);
  EXPECT_EQ(database.text("PRAGMA integrity_check"), "ok");
  return database.text(kSum);
}

class RandomTransactions {
 public:
  RandomTransactions(PlainDatabase& database, unsigned seed, bool hasSavepoints)
      : database_(database), random_(seed), hasSavepoints_(hasSavepoints) {}

  void transact() {
    database_.run("BEGIN IMMEDIATE");
    for (int changes = below(60); changes >= 0; --changes) change();
    const bool isCommitted = below(4) > 0;
    database_.run(isCommitted ? "COMMIT" : "ROLLBACK");
    if (below(8) == 0) database_.run("PRAGMA wal_checkpoint(PASSIVE)");
    if (below(8) == 0) database_.run(below(2) == 0 ? "PRAGMA synchronous=FULL" : "PRAGMA synchronous=NORMAL");
  }

 private:
  int below(int bound) { return std::uniform_int_distribution<int>(0, bound - 1)(random_); }

  void change() {
    const std::string n = std::to_string(below(400));
    switch (below(4)) {
      case 0: database_.run("DELETE FROM row WHERE n = " + n); break;
      case 1:
        database_.run("UPDATE row SET body = zeroblob(" + std::to_string(below(9'000)) + ") WHERE n = " + n);
        break;
      default:
        database_.run("INSERT OR REPLACE INTO row VALUES (" + n + ", zeroblob(" + std::to_string(below(9'000)) + "))");
    }
    if (!hasSavepoints_ || below(30) > 0) return;
    database_.run("SAVEPOINT one; DELETE FROM row WHERE n % 7 = 0; ROLLBACK TO one; RELEASE one");
  }

  PlainDatabase& database_;
  std::mt19937 random_;
  const bool hasSavepoints_;
};

// Another connection, and a process after a kill, see only whole commits. Half of the runs have a page cache of ten
// pages, so SQLite writes pages before the commit, rewrites the pages, and reads the pages again. The other runs have
// savepoints instead: SQLite 3.40 does not do both together rightly (`writer.cpp`).
TEST_F(LogWritesTest, NoMemoryIsHeldAfterACommit) {
  for (unsigned seed = 1; seed <= 6; ++seed) {
    SCOPED_TRACE("seed " + std::to_string(seed));
    const bool spills = seed % 2 == 0;
    const fs::path path = dir_ / ("random" + std::to_string(seed) + ".db");
    PlainDatabase writing(path, nullptr);
    writing.run("PRAGMA journal_mode=WAL; PRAGMA wal_autocheckpoint=0");
    if (spills) writing.run("PRAGMA cache_size=10");
    writing.run("CREATE TABLE row (n INTEGER PRIMARY KEY, body BLOB)");
    PlainDatabase reading(path, nullptr);
    RandomTransactions transactions(writing, seed, !spills);
    for (int i = 0; i < 40; ++i) {
      transactions.transact();
      const std::string sum = writing.text(kSum);
      ASSERT_EQ(reading.text(kSum), sum) << i;
      ASSERT_EQ(sumAfterAKill(path), sum) << i;
    }
  }
}

// The held pages of a transaction meet the full disk at its commit, and the transaction is undone.
TEST_F(LogWritesTest, AFailedWriteIsReportedBeforeTheCommit) {
  const fs::path path = dir_ / "full.db";
  PlainDatabase writing(path, sqlite::logWritesLayer());
  writing.run("PRAGMA journal_mode=WAL; PRAGMA synchronous=NORMAL");
  writing.run("CREATE TABLE row (n INTEGER PRIMARY KEY, body BLOB); INSERT INTO row VALUES (1, 'a')");
  logFaults().writeAnswers = SQLITE_FULL;
  EXPECT_EQ(sqlite3_exec(writing.handle(), "INSERT INTO row VALUES (2, 'b')", nullptr, nullptr, nullptr), SQLITE_FULL);
  logFaults().writeAnswers = SQLITE_OK;
  EXPECT_EQ(writing.text(kSum), "1 1.0 1.0");
  writing.run("INSERT INTO row VALUES (3, 'c')");
  EXPECT_EQ(writing.text(kSum), "2 4.0 2.0");
  EXPECT_EQ(sumAfterAKill(path), "2 4.0 2.0");
}

}  // namespace
}  // namespace jobq::testkit
