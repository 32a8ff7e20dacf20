// The opening of storage_mysql: refusals, warnings, the schema, the clock, and settings of the connection.
#include <fstream>

#include "mysql_fixture.h"
#include "plugins/storage_mysql/connection/probe.h"
#include "testkit/run_together.h"

namespace jobq::test {
namespace {

using namespace jobq::testkit;
using testing::HasSubstr;
using testing::Not;

class MysqlOpening : public MysqlTest {};

TEST_F(MysqlOpening, FourNodesAtOnceMigrateOnce) {
  const std::string fresh = "fresh_schema";
  server().run("", {"DROP DATABASE IF EXISTS " + fresh, "CREATE DATABASE " + fresh});
  runTogether(4, [&](int) { EXPECT_EQ(refusal(settingsFor(server(), fresh)), ""); });
  EXPECT_EQ(server().ask(fresh, "SELECT COUNT(*) FROM jobq_schema"), std::vector<std::string>{"2"});
  EXPECT_EQ(server().ask(fresh, "SELECT COUNT(*) FROM counted"), std::vector<std::string>{"5"});
  server().run("", {"DROP DATABASE " + fresh});
}

// The checks of an opening change rows, and once made one of several openings at a time end with a deadlock.
TEST_F(MysqlOpening, NodesStartingAtOnceDoNotRefuseEachOther) {
  constexpr int kNodes = 6;
  constexpr int kStarts = 20;
  open().reset();
  runTogether(kNodes, [&](int) {
    for (int i = 0; i < kStarts; ++i) EXPECT_EQ(refusal(settingsFor(server(), database())), "");
  });
}

TEST_F(MysqlOpening, AnInterruptedMigrationIsRepeated) {
  const std::string half = "half_schema";
  server().run("", {"DROP DATABASE IF EXISTS " + half, "CREATE DATABASE " + half});
  EXPECT_EQ(refusal(settingsFor(server(), half)), "");
  server().run(half, {"DELETE FROM jobq_schema", "DROP TABLE counted", "DROP TABLE record"});
  EXPECT_EQ(refusal(settingsFor(server(), half)), "");
  EXPECT_EQ(server().ask(half, "SELECT COUNT(*) FROM counted"), std::vector<std::string>{"5"});
  server().run("", {"DROP DATABASE " + half});
}

TEST_F(MysqlOpening, ANewerSchemaIsRefused) {
  open().reset();
  server().run(database(), {"INSERT INTO jobq_schema (version) VALUES (99)"});
  EXPECT_THAT(refusal(settingsFor(server(), database())), HasSubstr("has schema version 99"));
  server().run(database(), {"DELETE FROM jobq_schema WHERE version = 99"});
}

TEST_F(MysqlOpening, TablesOfAnotherProgramAreRefused) {
  const std::string foreign = "foreign_tables";
  server().run("", {"DROP DATABASE IF EXISTS " + foreign, "CREATE DATABASE " + foreign});
  server().run(foreign, {"CREATE TABLE job (id INT)"});
  EXPECT_THAT(refusal(settingsFor(server(), foreign)), HasSubstr("has tables of another program"));
  EXPECT_EQ(server().ask(foreign, "SHOW TABLES"), std::vector<std::string>{"job"});
  server().run("", {"DROP DATABASE " + foreign});
}

TEST_F(MysqlOpening, AServerWithSmallPacketsIsRefused) {
  MariadbServer small({"--max-allowed-packet=16M"});
  small.run("", {"CREATE DATABASE jobs"});
  const std::string message = refusal(settingsFor(small, "jobs"));
  EXPECT_THAT(message, HasSubstr("max_allowed_packet"));
  EXPECT_THAT(message, HasSubstr("set max_allowed_packet=64M"));
  EXPECT_TRUE(small.ask("jobs", "SHOW TABLES").empty());
}

// One session asks twice here: a database without locks answers two sessions in the same way.
TEST_F(MysqlOpening, ADatabaseWithoutExclusiveLocksIsRefused) {
  open().reset();
  const mysql::Connector connector{mysql::Options(MapConfig(settingsFor(server(), database())))};
  const auto first = connector.open(mysql::Isolation::readCommitted);
  const auto second = connector.open(mysql::Isolation::readCommitted);
  EXPECT_EQ(mysql::checkLocks(*first, *second).verdict, CheckVerdict::passed);
  const CheckResult refused = mysql::checkLocks(*first, *first);
  EXPECT_EQ(refused.verdict, CheckVerdict::failed);
  EXPECT_THAT(refused.text, HasSubstr("takes no lock"));
  EXPECT_THAT(refused.text, HasSubstr("MariaDB 10.6"));
}

TEST_F(MysqlOpening, AServerWithUnsafeCommitsIsNamedInTheLog) {
  server().run("", {"SET GLOBAL innodb_flush_log_at_trx_commit = 1"});
  open().reset();
  EXPECT_EQ(log_.text(), "");
  server().run("", {"SET GLOBAL innodb_flush_log_at_trx_commit = 2"});
  open().reset();
  EXPECT_THAT(log_.text(), HasSubstr("storage.durability: the variable innodb_flush_log_at_trx_commit"));
}

TEST_F(MysqlOpening, TheUserMayHaveAPasswordAndNoMessageShowsThePassword) {
  Settings settings = settingsFor(server(), database());
  server().run("", {"CREATE OR REPLACE USER 'jobs'@'localhost' IDENTIFIED BY 'open sesame'",
                    "GRANT ALL ON " + database() + ".* TO 'jobs'@'localhost'"});
  settings["user"] = "jobs";
  settings["password"] = "open sesame";
  EXPECT_EQ(refusal(settings), "");
  settings["password"] = "wrong-secret";
  EXPECT_THAT(refusal(settings), HasSubstr("cannot be reached at"));
  EXPECT_THAT(refusal(settings), Not(HasSubstr("wrong-secret")));
  settings["passwordFile"] = (folder_ / "password").string();
  EXPECT_THAT(refusal(settings), HasSubstr("are both set"));
  settings.erase("password");
  EXPECT_THAT(refusal(settings), HasSubstr("cannot be read"));
  for (const char* const text : {"open sesame\n", "\xEF\xBB\xBFopen sesame\r\n"}) {
    std::ofstream(folder_ / "password") << text;
    EXPECT_EQ(refusal(settings), "") << text;
  }
  server().run("", {"DROP USER 'jobs'@'localhost'"});
}

TEST_F(MysqlOpening, AnAbsentServerIsNamed) {
  Settings settings = settingsFor(server(), database());
  settings["socket"] = (folder_ / "none.sock").string();
  EXPECT_THAT(refusal(settings), HasSubstr("none.sock"));
}

// The plugin that the server loads, with the host's clock at the begin of 2026.
TEST_F(MysqlOpening, TimeIsTheClockOfTheDatabase) {
  const MapConfig config(settingsFor(server(), database()));
  const auto before = std::chrono::floor<Millis>(std::chrono::system_clock::now());
  const auto storage = loadPlugin<Storage>(JOBQ_PLUGIN_DIR "/libjobq_storage_mysql.so", "mysql",
                                           PluginEnv{config, clock_, log_, {}, false});
  EXPECT_GE(storage->now(), before);
  EXPECT_LE(storage->now(), std::chrono::floor<Millis>(std::chrono::system_clock::now())) << "the test's clock stands";
  EXPECT_EQ(storage->leaseLife(), Millis(15'000));
}

TEST_F(MysqlOpening, BodiesOf20MegabytesComeBackByteForByte) {
  const auto storage = open();
  std::string body(20UL << 20, '\0');
  for (std::size_t i = 0; i < body.size(); ++i) body[i] = static_cast<char>(i * 31 + i / 251);
  JobSpec job = spec("large");
  job.input = body;
  job.webhook = "http://receiver.example/";
  (void)storage->jobs().insert(std::move(job), policy_);
  const Holder holder = storage->nodes().join("node");
  const auto claimed = storage->leases().claim(std::vector{ClaimWant{"ep", {"w"}}}, holder, 1).jobs;
  ASSERT_EQ(claimed.size(), 1U);
  EXPECT_TRUE(claimed[0].input == body);
  EXPECT_EQ(storage->chunks().append(claimed[0].lease, 0, {{body, "{}", false}}), ReportResult::accepted);
  EXPECT_TRUE(storage->chunks().read({"ep", "large"}, 0, 1)->chunks.at(0).output == body);
  EXPECT_EQ(storage->leases().finish(claimed[0].lease, Completed{body}), ReportResult::accepted);
  EXPECT_TRUE(storage->jobs().find({"ep", "large"})->output == body);
  const auto due = claimAllDue(storage->outbox(), Millis(1'000));
  ASSERT_EQ(due.size(), 1U);
  EXPECT_TRUE(due[0].job.output == body && due[0].input == body);
}

}  // namespace
}  // namespace jobq::test
