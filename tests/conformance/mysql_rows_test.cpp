// Rows sent together, rows locked together, and the numbers of jobs.
#include <algorithm>
#include <set>
#include <string>
#include <vector>

#include "mysql_fixture.h"
#include "plugins/storage_mysql/connection/database_clock.h"
#include "plugins/storage_mysql/writes/job_numbers.h"
#include "plugins/storage_mysql/writes/locked_rows.h"
#include "testkit/run_together.h"

namespace jobq::test {
namespace {

using namespace jobq::testkit;

class MysqlRows : public MysqlTest {
 protected:
  void SetUp() override {
    (void)open();  // makes the tables
    server().run(database(), {"CREATE TABLE IF NOT EXISTS sent (num BIGINT PRIMARY KEY, at BIGINT, body LONGBLOB)"});
  }
  void TearDown() override { server().run(database(), {"DROP TABLE sent"}); }

  std::unique_ptr<mysql::Connection> connect() {
    const MapConfig config(settingsFor(server(), database()));
    return mysql::Connector{mysql::Options(config)}.open(mysql::Isolation::readCommitted);
  }
  std::int64_t executed() {
    return std::stoll(server()
                          .ask("",
                               "SELECT SUM(variable_value) FROM information_schema.global_status WHERE "
                               "variable_name = 'Com_stmt_execute'")
                          .at(0));
  }
};

constexpr char kInsert[] = "INSERT INTO sent (num, at, body) VALUES (?, ?, ?)";

TEST_F(MysqlRows, TextsArriveByteForByte) {
  const std::string body("\0{\"\xF0\x9F\x98\x80\"}\0", 9);
  const std::string large(5UL << 20, 'x');
  const auto db = connect();
  db->later(kInsert).add(1, fromEpochMillis(7), body);
  db->later(kInsert).add(2, Millis(8), "");
  db->later(kInsert).add(3, JobState::completed, mysql::Lent{large});
  db->send();
  mysql::Query query = db->query("SELECT at, body FROM sent ORDER BY num");
  ASSERT_TRUE(query.next());
  EXPECT_EQ(query.integer(0), 7);
  EXPECT_EQ(query.text(1), body);
  ASSERT_TRUE(query.next());
  EXPECT_EQ(query.integer(0), 8);
  EXPECT_EQ(query.text(1), "");
  ASSERT_TRUE(query.next());
  EXPECT_EQ(query.integer(0), 2);
  EXPECT_EQ(query.text(1), large);
  EXPECT_FALSE(query.next());
}

TEST_F(MysqlRows, ManyRowsAreOneStatementOfMariaDb) {
  const auto db = connect();
  for (int i = 0; i < 50; ++i) db->later(kInsert).add(i, 0, std::to_string(i));
  const std::int64_t before = executed();
  db->send();
  EXPECT_EQ(executed() - before, 1);
  EXPECT_EQ(server().ask(database(), "SELECT SUM(num = body) FROM sent"), std::vector<std::string>{"50"});
}

/// MySQL executes a statement for one row at a time.
TEST_F(MysqlRows, RowsAreSentOneByOneAsWell) {
  const auto db = connect();
  mysql::Query insert = db->query(kInsert);
  mysql::RowBatch batch;
  const MapConfig config(settingsFor(server(), database()));
  MYSQL* const handle = mysql_init(nullptr);
  const unsigned protocol = MYSQL_PROTOCOL_SOCKET;
  mysql_options(handle, MYSQL_OPT_PROTOCOL, &protocol);
  ASSERT_NE(mysql_real_connect(handle, "localhost", "root", "", database().c_str(), 0, server().socket().c_str(), 0),
            nullptr);
  {
    mysql::Statement statement(handle, kInsert);
    for (int i = 0; i < 5; ++i) batch.add(i, 0, std::to_string(i));
    const std::int64_t before = executed();
    batch.send(statement, false);
    EXPECT_EQ(executed() - before, 5);
    EXPECT_TRUE(batch.isEmpty());
  }
  mysql_close(handle);
  EXPECT_EQ(server().ask(database(), "SELECT SUM(num = body) FROM sent"), std::vector<std::string>{"5"});
}

TEST_F(MysqlRows, AQuerySeesTheWaitingRows) {
  const auto db = connect();
  db->later(kInsert).add(1, 0, "one");
  mysql::Query query = db->query("SELECT COUNT(*) FROM sent");
  ASSERT_TRUE(query.next());
  EXPECT_EQ(query.integer(0), 1);
}

/// The compiler may give equal texts the same address, and therefore the same prepared statement.
TEST_F(MysqlRows, AStatementForManyRowsIsUsableForOne) {
  const auto db = connect();
  constexpr char kDelete[] = "DELETE FROM sent WHERE num = ?";
  for (int i = 0; i < 600; ++i) db->later(kInsert).add(i, 0, "");
  for (int i = 0; i < 400; ++i) db->later(kDelete).add(i);
  db->send();
  EXPECT_EQ(db->query(kDelete).bind(500).run(), 1U);
  EXPECT_EQ(server().ask(database(), "SELECT COUNT(*) FROM sent"), std::vector<std::string>{"199"});
}

TEST_F(MysqlRows, DiscardedRowsAreNotSent) {
  const auto db = connect();
  db->later(kInsert).add(1, 0, "one");
  db->discard();
  db->later(kInsert).add(2, 0, "two");
  db->send();
  EXPECT_EQ(server().ask(database(), "SELECT num FROM sent"), std::vector<std::string>{"2"});
}

TEST_F(MysqlRows, ARefusedRowIsAnErrorAndTheStatementIsUsableAgain) {
  const auto db = connect();
  db->later(kInsert).add(1, 0, "one");
  db->later(kInsert).add(1, 0, "one again");
  try {
    db->send();
    FAIL() << "two rows have the same key";
  } catch (const mysql::MysqlError& error) {
    EXPECT_TRUE(error.isDuplicate()) << error.what();
  }
  db->discard();
  db->later(kInsert).add(2, 0, "two");
  db->later(kInsert).add(3, 0, "three");
  db->send();
  EXPECT_EQ(server().ask(database(), "SELECT COUNT(*) FROM sent WHERE num > 1"), std::vector<std::string>{"2"});
}

TEST_F(MysqlRows, RowsOfManyJobsAreLockedTogether) {
  const auto storage = open();
  std::vector<std::string> ids;
  for (int i = 0; i < 40; ++i) ids.push_back("j" + std::to_string(i));
  for (const std::string& id : ids) (void)storage->jobs().insert(spec(id), policy_);
  const auto db = connect();
  db->execute("BEGIN");
  mysql::LockedRows rows;
  std::vector<std::string_view> asked(ids.begin(), ids.end());
  asked.push_back("unknown");
  asked.push_back(ids[3]);
  rows.lock(*db, asked);
  for (const std::string& id : ids) {
    const auto row = rows.extract(id);
    ASSERT_TRUE(row) << id;
    EXPECT_EQ(row->id, id);
    EXPECT_FALSE(rows.extract(id)) << "the second operation on a job reads the row again";
  }
  EXPECT_FALSE(rows.extract("unknown"));
  const auto other = connect();
  EXPECT_FALSE(other->query("SELECT 1 FROM job FORCE INDEX (job_id) WHERE id = 'j7' FOR UPDATE SKIP LOCKED").next());
  db->execute("ROLLBACK");
}

class MysqlNumbers : public MysqlRows {
 protected:
  /// Returns the source of numbers of one more node.
  std::unique_ptr<mysql::JobNumbers> source() {
    auto numbers = std::make_unique<mysql::JobNumbers>(time_);
    numbers->open(*connect());
    return numbers;
  }
  mysql::DatabaseClock time_{clock_, log_};
};

TEST_F(MysqlNumbers, GrowAndFitIntoJson) {
  const auto numbers = source();
  std::int64_t last = 0;
  for (int i = 0; i < 2'000; ++i) {
    if (i % 100 == 0) clock_.advance(Millis(1));
    const std::int64_t next = numbers->next();
    EXPECT_GT(next, last);
    last = next;
  }
  EXPECT_LT(last, std::int64_t{1} << 53);
}

TEST_F(MysqlNumbers, NodesMakeDifferentNumbersInOrderOfTime) {
  std::vector<std::unique_ptr<mysql::JobNumbers>> nodes;
  for (int i = 0; i < 64; ++i) nodes.push_back(source());
  std::set<std::int64_t> all;
  for (int i = 0; i < 3; ++i) {
    const std::int64_t before = all.empty() ? 0 : *all.rbegin();
    clock_.advance(Millis(4));
    for (const auto& node : nodes) {
      const std::int64_t next = node->next();
      EXPECT_GT(next, before) << "a job submitted 4 ms later has a greater number";
      EXPECT_TRUE(all.insert(next).second) << "two nodes made the same number";
    }
  }
}

TEST_F(MysqlNumbers, ThreadsOfANodeMakeDifferentNumbers) {
  const auto numbers = source();
  std::vector<std::vector<std::int64_t>> made(4);
  runTogether(4, [&](int thread) {
    for (int i = 0; i < 5'000; ++i) made[thread].push_back(numbers->next());
  });
  std::set<std::int64_t> all;
  for (const auto& each : made) all.insert(each.begin(), each.end());
  EXPECT_EQ(all.size(), 20'000U);
}

/// A database that was moved to a machine with a slow clock.
TEST_F(MysqlNumbers, GoOnBehindTheJobsOfTheDatabase) {
  constexpr std::int64_t kFuture = (std::int64_t{1} << 53) - 100'000'000;
  server().run(database(), {"INSERT INTO job (num, id) VALUES (" + std::to_string(kFuture) + ", 'future')"});
  EXPECT_GT(source()->next(), kFuture);
  server().run(database(), {"DELETE FROM job"});
}

/// Two of more than 64 nodes share a generator, and may make one number.
TEST_F(MysqlNumbers, AJobWithATakenNumberGetsANewNumber) {
  const auto storage = open();
  const auto twin = source();
  for (int i = 0; i < 63; ++i) (void)source();  // the next opening shares the generator of `twin`
  const auto other = open();
  server().run(database(), {"INSERT INTO job (num, id) VALUES (" + std::to_string(twin->next()) + ", 'taken')"});
  EXPECT_TRUE(std::holds_alternative<Inserted>(other->jobs().insert(spec("mine"), policy_)));
  EXPECT_EQ(server().ask(database(), "SELECT COUNT(*) FROM job"), std::vector<std::string>{"2"});
}

}  // namespace
}  // namespace jobq::test
