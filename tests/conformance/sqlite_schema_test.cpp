// Tests of the database file: the owner, the accepted versions, and the content after a refusal or a migration.
#include "plugins/storage_sqlite/schema/schema.h"

#include <sys/stat.h>

#include "sqlite_fixture.h"
#include "testkit/returned_jobs.h"

namespace jobq::testkit {
namespace {

namespace fs = std::filesystem;
using sqlite::Connection;
using sqlite::migrate;
using sqlite::SchemaStep;

constexpr SchemaStep kThen[] = {{"CREATE TABLE a (x INTEGER); INSERT INTO a VALUES (7);"}};
constexpr SchemaStep kNow[] = {kThen[0], {"ALTER TABLE a ADD COLUMN y INTEGER NOT NULL DEFAULT 8;"}};
constexpr SchemaStep kBroken[] = {kThen[0], {"ALTER TABLE a ADD COLUMN y INTEGER; ALTER TABLE b ADD COLUMN z;"}};

class SchemaTest : public SqliteTest {
 protected:
  /// Makes a database like another program.
  void script(const char* sql) { runScript(file(), sql); }
  void bringTo(std::span<const SchemaStep> steps) {
    sqlite::prepareFile(file(), steps.size());
    Connection connection(file(), Connection::Access::readWrite);
    migrate(connection, file(), steps, log_);
  }
  static unsigned modeOf(const fs::path& file) {
    struct stat info {};
    EXPECT_EQ(::stat(file.c_str(), &info), 0);
    return info.st_mode & 0777U;
  }
};

TEST_F(SchemaTest, TheFilesAreTheOwnersAlone) {
  open();
  submit("a");
  for (const char* name : {"jobq.db", "jobq.db-wal", "jobq.db-shm"}) EXPECT_EQ(modeOf(dir_ / name), 0600U) << name;
}

TEST_F(SchemaTest, AFileWithoutADatabaseIsRefusedAndLeftAlone) {
  const std::string shopping = "bread, milk, " + std::string(5'000, 'x');
  std::ofstream(file()) << shopping;
  fs::permissions(file(), fs::perms(0644));
  EXPECT_NE(refusal().find("not a SQLite database"), std::string::npos) << refusal();
  EXPECT_EQ(contentOf(file()), shopping);
  EXPECT_EQ(modeOf(file()), 0644U);
}

TEST_F(SchemaTest, ATruncatedDatabaseIsRefused) {
  open();
  storage_.reset();
  fs::resize_file(file(), 60);
  EXPECT_NE(refusal(), "");
}

TEST_F(SchemaTest, AnotherProgramsDatabaseIsRefusedAndLeftAlone) {
  script("CREATE TABLE birds (name TEXT); PRAGMA user_version = 1;");
  const std::string before = contentOf(file());
  EXPECT_NE(refusal().find("another program's"), std::string::npos) << refusal();
  EXPECT_EQ(contentOf(file()), before);
}

TEST_F(SchemaTest, AForeignVersionIsNotANewerServers) {
  script("CREATE TABLE birds (name TEXT); PRAGMA user_version = 99;");
  const std::string before = contentOf(file());
  EXPECT_NE(refusal().find("another program's"), std::string::npos) << refusal();
  EXPECT_EQ(contentOf(file()), before);
}

TEST_F(SchemaTest, ANewerDatabaseIsRefusedAndLeftAlone) {
  open();
  storage_.reset();
  script("PRAGMA user_version = 99;");
  const std::string before = contentOf(file());
  EXPECT_NE(refusal().find("version 99"), std::string::npos) << refusal();
  EXPECT_EQ(contentOf(file()), before);
}

TEST_F(SchemaTest, ANewerDatabaseWithTheVersionOnlyInTheLogIsRefusedToo) {
  open();
  storage_.reset();
  const fs::path crashed = dir_ / "crashed";
  fs::create_directory(crashed);
  sqlite3* newer = nullptr;
  ASSERT_EQ(sqlite3_open(file().c_str(), &newer), SQLITE_OK);
  EXPECT_EQ(sqlite3_exec(newer, "PRAGMA user_version = 99;", nullptr, nullptr, nullptr), SQLITE_OK);
  for (const char* name : {"jobq.db", "jobq.db-wal"}) fs::copy_file(dir_ / name, crashed / name);
  sqlite3_close(newer);
  const std::string before = contentOf(crashed / "jobq.db");
  const std::string log = contentOf(crashed / "jobq.db-wal");
  EXPECT_THROW((void)openAt(crashed), StorageError);
  EXPECT_EQ(contentOf(crashed / "jobq.db"), before);
  EXPECT_EQ(contentOf(crashed / "jobq.db-wal"), log);
}

TEST_F(SchemaTest, AMissingDirectoryIsRefused) { EXPECT_THROW((void)openAt(dir_ / "none"), StorageError); }

TEST_F(SchemaTest, AMigrationKeepsACopy) {
  bringTo(kThen);
  EXPECT_FALSE(fs::exists(file().string() + ".v0.backup")) << "an empty file needs no backup";
  bringTo(kNow);
  EXPECT_EQ(ask(file(), "PRAGMA user_version"), 2);
  EXPECT_EQ(ask(file(), "SELECT x + y FROM a"), 15);
  const fs::path copy = file().string() + ".v1.backup";
  ASSERT_TRUE(fs::exists(copy));
  EXPECT_EQ(modeOf(copy), 0600U);
  EXPECT_EQ(ask(copy, "PRAGMA user_version"), 1);
  EXPECT_EQ(ask(copy, "SELECT x FROM a"), 7);
  bringTo(kNow);
  EXPECT_FALSE(fs::exists(file().string() + ".v2.backup"));
}

TEST_F(SchemaTest, AServersFirstDatabaseGoesOn) {
  open();
  submit("waits");
  submit("held");
  submit("behind");
  EXPECT_EQ(claim(1).at(0).lease.job, "waits");
  const auto lost = claim(1);
  EXPECT_EQ(testkit::release(storage_->leases(), std::vector{LeaseRef{"waits", 1}}), 1U);
  JobSpec hooked = spec("hooked");
  hooked.webhook = "https://u:p@Hooks.example.com:8443/x";
  submit(std::move(hooked));
  (void)storage_->jobs().cancel({"ep", "hooked"});
  EXPECT_TRUE(testkit::recordNext(storage_->outbox(), testkit::lastClaim(storage_->outbox(), "hooked.0"),
                                  {{}, 500, Millis(1), "no", ""}));
  clock_.advance(Millis(70));
  storage_.reset();
  script(kBackToTheFirstVersion);
  const std::string before = contentOf(file());

  open();
  EXPECT_EQ(ask(file(), "PRAGMA user_version"), 13);
  EXPECT_EQ(ask(file().string() + ".v1.backup", "SELECT count(*) FROM job"), 4);
  EXPECT_EQ(storage_->outbox().owed("ep").count, 1U);
  EXPECT_EQ(storage_->outbox().owed("ep").oldestAge, Millis(70)) << "the age counts from the job's end";
  const auto owed = testkit::claimAllDue(storage_->outbox(), Millis(1'000));
  ASSERT_EQ(owed.size(), 1U);
  EXPECT_EQ(owed[0].host, "hooks.example.com:8443");
  EXPECT_EQ(owed[0].tries, 1U);
  EXPECT_EQ(owed[0].claims, 1U);
  EXPECT_EQ(find("waits")->state, JobState::inQueue);
  const SweepResult swept = storage_->leases().sweep(100);
  EXPECT_EQ(swept.stopped, std::vector{lost.at(0).lease}) << "the process of the claim is gone";
  EXPECT_EQ(claim(9).size(), 3U);
}

TEST_F(SchemaTest, AFailedStepLeavesTheEarlierVersion) {
  bringTo(kThen);
  EXPECT_THROW(bringTo(kBroken), StorageError);
  EXPECT_EQ(ask(file(), "PRAGMA user_version"), 1);
  EXPECT_EQ(ask(file(), "SELECT count(*) FROM pragma_table_info('a')"), 1);
  bringTo(kNow);
  EXPECT_EQ(ask(file(), "SELECT x + y FROM a"), 15);
}

}  // namespace
}  // namespace jobq::testkit
