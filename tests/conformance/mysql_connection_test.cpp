// Connections of storage_mysql: the end of broken statements, commits without a transaction, and servers without
// writes.
#include <errmsg.h>
#include <mysqld_error.h>
#include <sys/socket.h>
#include <unistd.h>

#include <array>
#include <future>
#include <memory>
#include <optional>
#include <string>

#include "jobq/holder.h"
#include "mysql_fixture.h"
#include "plugins/storage_mysql/connection/open_sockets.h"
#include "plugins/storage_mysql/connection/statement.h"
#include "testkit/wait_for.h"

namespace jobq::test {
namespace {

using namespace jobq::testkit;

class MysqlConnection : public MysqlTest {
 protected:
  void SetUp() override { (void)open(); }  // makes the tables

  std::unique_ptr<mysql::Connection> connect() {
    const MapConfig config(settingsFor(server(), database()));
    return mysql::Connector{mysql::Options(config)}.open(mysql::Isolation::readCommitted);
  }
};

TEST_F(MysqlConnection, ACutEndsTheCallsUnderWay) {
  const MapConfig config(settingsFor(server(), database()));
  const mysql::Connector connector{mysql::Options(config)};
  const auto first = connector.open(mysql::Isolation::readCommitted);
  const auto closed = connector.open(mysql::Isolation::readCommitted);
  const auto watch = connect();
  auto call = std::async(std::launch::async, [&] { first->execute("DO SLEEP(600)"); });
  waitFor("the call to be under way", [&] {
    mysql::Query query =
        watch->query("SELECT COUNT(*) FROM information_schema.processlist WHERE info = 'DO SLEEP(600)'");
    return query.next() && query.integer(0) == 1;
  });
  connector.cutConnections();
  EXPECT_THROW(resultOf("the call", call), mysql::MysqlError);
  EXPECT_THROW(closed->execute("DO 1"), mysql::MysqlError);
  EXPECT_THROW(connector.open(mysql::Isolation::readCommitted), mysql::MysqlError);
  connector.allowConnections();
  connector.open(mysql::Isolation::readCommitted)->execute("DO 1");
}

// The connection was being opened when the cut came.
TEST_F(MysqlConnection, ASocketBehindACutIsShutDown) {
  std::array<int, 2> ends{};
  ASSERT_EQ(::socketpair(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0, ends.data()), 0);
  const auto sockets = std::make_shared<mysql::OpenSockets>();
  sockets->cutAll();
  {
    const mysql::OpenSocket late(sockets, ends[0]);
    char byte = 0;
    EXPECT_EQ(::recv(ends[1], &byte, 1, MSG_DONTWAIT), 0) << "the end of the stream";
  }
  for (const int end : ends) ::close(end);
}

TEST_F(MysqlConnection, AnErrorOfTheServerIsAnAnswer) {
  EXPECT_TRUE(mysql::MysqlError(CR_SERVER_LOST, "").isWithoutAnswer());
  for (const unsigned answer : {ER_OPTION_PREVENTS_STATEMENT, ER_SERVER_SHUTDOWN, ER_LOCK_DEADLOCK}) {
    EXPECT_FALSE(mysql::MysqlError(answer, "").isWithoutAnswer()) << answer;
  }
}

TEST_F(MysqlConnection, AFaultOfTheClientIsNotOfThePeer) {
  for (const unsigned own : {CR_OUT_OF_MEMORY, CR_COMMANDS_OUT_OF_SYNC, CR_NET_PACKET_TOO_LARGE, CR_UNKNOWN_ERROR}) {
    EXPECT_FALSE(mysql::MysqlError(own, "").isOfPeer()) << own;
  }
  for (const unsigned ended : {CR_SERVER_LOST, CR_SERVER_GONE_ERROR, ER_SERVER_SHUTDOWN, ER_NET_READ_ERROR}) {
    EXPECT_TRUE(mysql::MysqlError(ended, "").isOfPeer()) << ended;
  }
}

/// A storage with few connections, which an own user of the database tells apart.
class MysqlConnectionIds : public MysqlConnection {
 protected:
  void SetUp() override {
    MysqlConnection::SetUp();
    server().run("", {"CREATE OR REPLACE USER 'reader'@'localhost'",
                      "GRANT ALL ON " + database() + ".* TO 'reader'@'localhost'"});
  }
  void TearDown() override { server().run("", {"DROP USER 'reader'@'localhost'"}); }

  std::unique_ptr<Storage> openWatched() {
    Settings settings = settingsFor(server(), database());
    settings["user"] = "reader";
    settings["pool"] = "2";  // a connection for changes, and a connection for reads
    return openMysql(clock_, log_, settings);
  }
  std::string newest() {
    return server().ask("", "SELECT MAX(id) FROM information_schema.processlist WHERE user = 'reader'").at(0);
  }
  bool isOpen(const std::string& id) {
    return server().ask("", "SELECT COUNT(*) FROM information_schema.processlist WHERE id = " + id).at(0) == "1";
  }
};

// A backup holds such a lock. The node fences its runs, and callers still read results.
TEST_F(MysqlConnectionIds, ABeatWaitingForALockCutsNoConnection) {
  const auto storage = openWatched();
  const Holder holder = storage->nodes().join("node");
  (void)storage->jobs().insert(spec("a"), policy_);
  EXPECT_TRUE(storage->jobs().find({"ep", "a"}));
  const std::string reader = newest();
  const auto backup = connect();
  backup->execute("LOCK TABLES node WRITE");
  EXPECT_THROW((void)storage->nodes().beat(holder, {}), StorageError);
  EXPECT_TRUE(isOpen(reader)) << "the connection for reads was cut";
  EXPECT_TRUE(storage->jobs().find({"ep", "a"}));
  EXPECT_TRUE(isOpen(reader)) << "the read opened a new connection";
  backup->execute("UNLOCK TABLES");
  EXPECT_EQ(storage->nodes().beat(holder, {}), BeatResult::extended);
}

// The other side ends a connection for changes, as a load balancer does at a switch.
TEST_F(MysqlConnectionIds, TheEndOfTheConnectionForChangesEndsAllConnections) {
  const auto storage = openWatched();
  storage->check();
  const std::string writer = newest();
  (void)storage->jobs().find({"ep", "a"});
  const std::string reader = newest();
  ASSERT_NE(reader, writer);
  server().run("", {"KILL CONNECTION " + writer});
  storage->check();
  waitFor("the end of the connection for reads", [&] { return !isOpen(reader); });
}

std::int64_t closedStatements(mysql::Connection& connection) {
  mysql::Query query = connection.query(
      "SELECT CAST(variable_value AS SIGNED) FROM information_schema.session_status "
      "WHERE variable_name = 'Com_stmt_close'");
  return query.next() ? query.integer(0) : -1;
}

TEST_F(MysqlConnection, ABrokenStatementIsClosedAfterTheTransaction) {
  const auto connection = connect();
  constexpr char kInsert[] = "INSERT INTO ended_life (epoch) VALUES (?)";
  connection->execute("BEGIN");
  connection->query(kInsert).bind(1).run();
  EXPECT_THROW(connection->query(kInsert).bind(1).run(), mysql::MysqlError);
  const std::int64_t before = closedStatements(*connection);
  connection->query(kInsert).bind(2).run();  // prepared again
  EXPECT_EQ(closedStatements(*connection), before);
  connection->execute("ROLLBACK");
  connection->execute("BEGIN");
  EXPECT_EQ(closedStatements(*connection), before + 1);
  connection->execute("ROLLBACK");
}

TEST_F(MysqlConnection, ACommitOfAnEndedTransactionIsAConflict) {
  const auto connection = connect();
  connection->execute("BEGIN");
  connection->query("INSERT INTO ended_life (epoch) VALUES (?)").bind(1).run();
  connection->execute("ROLLBACK");
  try {
    connection->commit();
    ADD_FAILURE() << "a commit without a transaction succeeded";
  } catch (const mysql::MysqlError& error) {
    EXPECT_TRUE(error.isConflict());
    EXPECT_FALSE(error.isLost());
  }
  connection->execute("BEGIN");
  connection->commit();
}

// Behind a load balancer or a moving address the next connection reaches the server that takes the writes now.
TEST_F(MysqlConnectionIds, AReadOnlyServerIsLeft) {
  const auto storage = openWatched();
  storage->check();
  const std::int64_t before = std::stoll(newest());
  server().run("", {"SET GLOBAL read_only = 1"});
  EXPECT_THROW(storage->check(), StorageError);
  server().run("", {"SET GLOBAL read_only = 0"});
  storage->check();
  EXPECT_GT(std::stoll(newest()), before);
}

}  // namespace
}  // namespace jobq::test
