// A switch of the database server under an open storage. The settings name a link to the socket of a server, and a
// switch turns the link: open connections stay at the old server, which goes on to answer.
#include <filesystem>
#include <memory>
#include <string>
#include <vector>

#include "jobq/holder.h"
#include "mysql_fixture.h"
#include "plugins/storage_mysql/connection/options.h"

namespace jobq::test {
namespace {

using namespace jobq::testkit;
using testing::HasSubstr;

class MysqlSwitch : public MysqlTest {
 protected:
  // The shared server is the first one, and the process has no other thread yet.
  static void SetUpTestSuite() {
    (void)MariadbServer::shared();
    other_ = std::make_unique<MariadbServer>(std::vector<std::string>{"--server-id=2"});
  }
  static void TearDownTestSuite() { other_.reset(); }

  MysqlSwitch() {
    other_->run("", {"DROP DATABASE IF EXISTS " + database_, "CREATE DATABASE " + database_});
    for (const MariadbServer* one : {&server(), other_.get()}) {
      one->run("",
               {"CREATE OR REPLACE USER 'jobs'@'localhost'", "GRANT ALL ON " + database_ + ".* TO 'jobs'@'localhost'"});
    }
    (void)openMysql(clock_, log_, settingsFor(*other_, database_));  // makes the tables
    lead(server());
  }
  ~MysqlSwitch() override {
    server().run("", {"SET GLOBAL read_only = 0", "SET GLOBAL init_connect = ''", "SET GLOBAL server_id = 1",
                      "DROP USER 'jobs'@'localhost'"});
  }

  void lead(const MariadbServer& to) {
    std::filesystem::remove(link());
    std::filesystem::create_symlink(to.socket(), link());
  }

  /// The administrator lets the server take no writes any more, and leads new connections to the other one.
  void switchOver() {
    server().run("", {"SET GLOBAL read_only = 1"});
    lead(*other_);
  }

  Settings settings() const { return {{"socket", link()}, {"user", "jobs"}, {"database", database_}, {"pool", "4"}}; }
  std::unique_ptr<Storage> openLinked() { return openMysql(clock_, log_, settings()); }
  std::string link() const { return (folder_ / "link").string(); }

  void awaitNoneAt(const MariadbServer& left) {
    waitFor("the last connection to the old server to end", [&] {
      return left.ask("", "SELECT COUNT(*) FROM information_schema.processlist WHERE user = 'jobs'").at(0) == "0";
    });
  }

  bool hasMoved() const {
    return log_.text().find("the connections to the database reach the server") != std::string::npos;
  }

  const std::string database_ = database();
  static inline std::unique_ptr<MariadbServer> other_;
};

TEST_F(MysqlSwitch, ReadsFollowTheWritesAndTheOldServerIsLeft) {
  const auto storage = openLinked();
  (void)storage->jobs().insert(spec("before"), policy_);
  ASSERT_TRUE(storage->jobs().find({"ep", "before"}));
  switchOver();
  (void)untilAnswered([&] { return storage->jobs().insert(spec("behind"), policy_); });
  EXPECT_TRUE(storage->jobs().find({"ep", "behind"})) << "the old server does not know the job";
  awaitNoneAt(server());
  EXPECT_TRUE(hasMoved()) << log_.text();
}

// The node writes nothing meanwhile; other nodes may have submitted jobs at the new server.
TEST_F(MysqlSwitch, ABeatFindsTheSwitch) {
  const auto storage = openLinked();
  const Holder holder = storage->nodes().join("node");
  EXPECT_EQ(storage->nodes().beat(holder, {}), BeatResult::extended);
  EXPECT_EQ(storage->nodes().beat(holder, {}), BeatResult::extended);
  (void)storage->jobs().insert(spec("before"), policy_);
  ASSERT_TRUE(storage->jobs().find({"ep", "before"}));
  switchOver();
  EXPECT_EQ(storage->nodes().beat(holder, {}), BeatResult::ended) << "the new server has no copy of the life";
  EXPECT_FALSE(storage->jobs().find({"ep", "before"})) << "a read reached the old server";
}

// A server without writes may be the old server, with old answers.
TEST_F(MysqlSwitch, NoReadGoesToAServerWithoutWrites) {
  const auto storage = openLinked();
  (void)storage->jobs().insert(spec("job"), policy_);
  server().run("", {"SET GLOBAL read_only = 1"});
  EXPECT_THROW(storage->check(), StorageError);
  EXPECT_THROW((void)storage->jobs().find({"ep", "job"}), StorageError);
  server().run("", {"SET GLOBAL read_only = 0"});
  EXPECT_TRUE(storage->jobs().find({"ep", "job"}));
}

// A proxy may lead the statements of an open session to a second server with a different name.
TEST_F(MysqlSwitch, ABeatNoticesAChangeOfTheServer) {
  const auto storage = openLinked();
  const Holder holder = storage->nodes().join("node");
  for (int i = 0; i < 2; ++i) EXPECT_EQ(storage->nodes().beat(holder, {}), BeatResult::extended);
  EXPECT_FALSE(hasMoved());
  server().run("", {"SET GLOBAL server_id = 77"});
  EXPECT_EQ(storage->nodes().beat(holder, {}), BeatResult::extended);
  EXPECT_TRUE(hasMoved()) << log_.text();
}

// Every new session changes the name of the server, as with a load balancer that spreads connections.
TEST_F(MysqlSwitch, ConnectionsToDifferentServersAreRefused) {
  server().run("", {"GRANT REPLICATION MASTER ADMIN ON *.* TO 'jobs'@'localhost'"});
  const MapConfig config(settings());
  const mysql::Connector connector{mysql::Options(config)};
  const auto first = connector.open(mysql::Isolation::readCommitted);
  server().run("", {"SET GLOBAL init_connect = 'SET GLOBAL server_id = @@server_id + 1'"});
  try {
    (void)connector.open(mysql::Isolation::readCommitted);
    ADD_FAILURE() << "a connection to a wrong server was opened";
  } catch (const mysql::MysqlError& error) {
    EXPECT_TRUE(error.isLost());
    EXPECT_THAT(error.what(), HasSubstr("reach different database servers"));
  }
  EXPECT_TRUE(connector.isCurrent(*first));
}

}  // namespace
}  // namespace jobq::test
