// The checks of the database server before storage_mysql trusts the server with jobs: each refusal names the thing and
// the remedy, at the opening and in the answers of `jobqctl storage probe`.
#include <algorithm>
#include <cstdlib>
#include <fstream>

#include "lockless_proxy.h"
#include "mysql_fixture.h"
#include "plugins/storage_mysql/connection/probe.h"
#include "plugins/storage_mysql/storage.h"

namespace jobq::test {
namespace {

using namespace jobq::testkit;
using testing::AllOf;
using testing::HasSubstr;
using testing::IsEmpty;

/// Returns a port of 127.0.0.1 on which no program listens.
std::string freePort() { return std::to_string(testkit::Listener().port()); }

class MysqlChecks : public MysqlTest {
 protected:
  static std::vector<CheckResult> probe(const Settings& settings) {
    const SystemTime clock;
    return mysql::probe(mysql::Connector(mysql::Options(MapConfig(settings))), clock);
  }

  /// Returns the texts of all checks with the verdict.
  static std::string textsOf(const std::vector<CheckResult>& results, CheckVerdict verdict) {
    std::string texts;
    for (const CheckResult& result : results) {
      if (result.verdict == verdict) texts += result.name + ": " + result.text + "\n";
    }
    return texts;
  }

  /// Expects that the opening and the probe refuse the settings with the same sentence, and returns the sentence.
  std::string refusedTwice(const Settings& settings) {
    const std::string message = refusal(settings);
    EXPECT_THAT(textsOf(probe(settings), CheckVerdict::failed), HasSubstr(message));
    return message;
  }

  /// The clock of this host.
  class SystemTime final : public Clock {
   public:
    Instant now() const override { return std::chrono::time_point_cast<Millis>(std::chrono::system_clock::now()); }
    void waitUntil(Mutex&, Condition&, Instant) override {}
  };
};

TEST_F(MysqlChecks, AGoodDatabasePassesEachCheckAndKeepsNoTrace) {
  server().run("", {"SET GLOBAL innodb_flush_log_at_trx_commit = 1"});
  const std::string empty = "probed_only";
  server().run("", {"DROP DATABASE IF EXISTS " + empty, "CREATE DATABASE " + empty});
  const auto fresh = probe(settingsFor(server(), empty));
  EXPECT_EQ(fresh.size(), 12U);
  EXPECT_EQ(textsOf(fresh, CheckVerdict::failed) + textsOf(fresh, CheckVerdict::warned), "");
  EXPECT_THAT(server().ask(empty, "SHOW TABLES"), IsEmpty());
  server().run(empty, {"CREATE TABLE jobq_probe (name VARBINARY(64) NOT NULL PRIMARY KEY, value BIGINT NOT NULL)"});
  EXPECT_EQ(refusal(settingsFor(server(), empty)), "") << "a killed probe may have left the table";
  const auto used = probe(settingsFor(server(), empty));
  EXPECT_EQ(used.size(), 12U);
  EXPECT_EQ(textsOf(used, CheckVerdict::failed) + textsOf(used, CheckVerdict::warned), "");
  EXPECT_EQ(server().ask(empty, "SELECT name FROM counted WHERE name = 'probe'").size(), 0U);
  server().run("", {"DROP DATABASE " + empty});
}

TEST_F(MysqlChecks, TheProbeOfThePluginIsReached) {
  server().run("", {"SET GLOBAL innodb_flush_log_at_trx_commit = 1"});
  const MapConfig config(settingsFor(server(), database()));
  EXPECT_EQ(mysql::MysqlStorage::probe(PluginEnv{config, clock_, log_, {}, false}).size(), 12U);
}

// The proxy strips the locking words of each statement; a proxy that strips no words lets the storage open.
TEST_F(MysqlChecks, ADatabaseWithoutRowLocksIsRefusedEachTime) {
  LocklessProxy proxy(server().socket());
  Settings settings = settingsFor(server(), database());
  settings.erase("socket");
  settings["port"] = std::to_string(proxy.port());
  proxy.strip(false);
  EXPECT_EQ(refusal(settings), "");
  proxy.strip(true);
  constexpr int kTimes = 100;
  int refused = 0;
  for (int i = 0; i < kTimes; ++i) {
    refused += refusal(settings).starts_with("the database gave two sessions the same locked row") ? 1 : 0;
  }
  EXPECT_EQ(refused, kTimes);
  EXPECT_GE(proxy.stripped(), 2 * kTimes);
  EXPECT_THAT(refusedTwice(settings), HasSubstr("MariaDB 10.6"));
  proxy.strip(false);
  EXPECT_EQ(refusal(settings), "");
}

TEST_F(MysqlChecks, ABinaryLogOfStatementsIsRefusedAndAnUnsyncedLogIsNamed) {
  MariadbServer logging(
      {"--log-bin=binlog", "--binlog-format=STATEMENT", "--sync-binlog=0", "--innodb-flush-log-at-trx-commit=1"});
  logging.run("", {"CREATE DATABASE jobs"});
  EXPECT_THAT(refusedTwice(settingsFor(logging, "jobs")),
              AllOf(HasSubstr("binlog_format of the database server is STATEMENT"), HasSubstr("binlog_format=ROW")));
  logging.run("", {"SET GLOBAL binlog_format = ROW"});
  EXPECT_EQ(refusal(settingsFor(logging, "jobs")), "");
  EXPECT_THAT(log_.text(), HasSubstr("storage.binlog: the variable sync_binlog of the database server is 0"));
  logging.run("", {"SET GLOBAL sync_binlog = 1"});
  EXPECT_EQ(textsOf(probe(settingsFor(logging, "jobs")), CheckVerdict::warned), "");
  // A session past the check of the variables gets the reason from the error.
  const mysql::Connector connector{mysql::Options(MapConfig(settingsFor(logging, "jobs")))};
  const auto session = connector.open(mysql::Isolation::readCommitted);
  session->execute("SET SESSION binlog_format = STATEMENT");
  EXPECT_THAT(mysql::checkChanges(*session).text, HasSubstr("set binlog_format=ROW"));
}

TEST_F(MysqlChecks, AReadOnlyServerIsRefused) {
  open().reset();
  server().run("", {"SET GLOBAL read_only = 1"});
  const std::string message = refusedTwice(settingsFor(server(), database()));
  server().run("", {"SET GLOBAL read_only = 0"});
  EXPECT_THAT(message,
              AllOf(HasSubstr("the variable read_only of the database server is on"), HasSubstr("storage.mysql.host")));
}

TEST_F(MysqlChecks, AServerWithoutInnodbIsRefused) {
  MariadbServer bare({"--innodb=OFF", "--default-storage-engine=Aria"});
  bare.run("", {"CREATE DATABASE jobs"});
  EXPECT_THAT(refusedTwice(settingsFor(bare, "jobs")),
              AllOf(HasSubstr("without the engine InnoDB"), HasSubstr("start the server with InnoDB")));
}

TEST_F(MysqlChecks, AUserWithoutRightsIsTold) {
  open().reset();
  const std::string fresh = "no_rights";
  server().run("", {"DROP DATABASE IF EXISTS " + fresh, "CREATE DATABASE " + fresh,
                    "CREATE OR REPLACE USER 'reader'@'localhost'",
                    "GRANT SELECT ON " + database() + ".* TO 'reader'@'localhost'",
                    "GRANT SELECT ON " + fresh + ".* TO 'reader'@'localhost'"});
  const auto asReader = [this](const std::string& name) {
    Settings settings = settingsFor(server(), name);
    settings["user"] = "reader";
    return settings;
  };
  const auto names = AllOf(HasSubstr("command denied to user 'reader'"),
                           HasSubstr("grant the user of storage.mysql.user all rights on the database"));
  EXPECT_THAT(refusedTwice(asReader(database())), names) << "rows cannot be changed";
  EXPECT_THAT(refusal(asReader(fresh)), names) << "tables cannot be made";
  EXPECT_THAT(textsOf(probe(asReader(fresh)), CheckVerdict::failed), names);
  EXPECT_THAT(refusedTwice(asReader("mysql")), AllOf(HasSubstr("Access denied"), HasSubstr("all rights")));
  server().run("", {"GRANT SELECT, INSERT, UPDATE, DELETE ON " + database() + ".* TO 'reader'@'localhost'"});
  EXPECT_EQ(refusal(asReader(database())), "") << "enough until the next migration";
  server().run("", {"DROP USER 'reader'@'localhost'", "DROP DATABASE " + fresh});
}

TEST_F(MysqlChecks, ClocksApartAreNamed) {
  EXPECT_EQ(mysql::checkClocks(Millis(-2'000)).verdict, CheckVerdict::passed);
  const CheckResult ahead = mysql::checkClocks(Millis(3'600'000));
  EXPECT_EQ(ahead.verdict, CheckVerdict::warned);
  EXPECT_THAT(ahead.text, HasSubstr("3600 s ahead of the clock of this host"));
  EXPECT_THAT(mysql::checkClocks(Millis(-61'500)).text, HasSubstr("61 s behind the clock of this host"));
  // The plugin of the server measures: the clock of the test and the clock of the database differ.
  const MapConfig config(settingsFor(server(), database()));
  (void)loadPlugin<Storage>(JOBQ_PLUGIN_DIR "/libjobq_storage_mysql.so", "mysql",
                            PluginEnv{config, clock_, log_, {}, false});
  EXPECT_THAT(log_.text(), HasSubstr("storage.clock: the clock of the database server is"));
}

TEST_F(MysqlChecks, EachFailureOfTheConnectionNamesItsRemedy) {
  Settings settings = settingsFor(server(), database());
  settings["database"] = "no_such_database";
  EXPECT_THAT(refusedTwice(settings), AllOf(HasSubstr("Unknown database"), HasSubstr("create the database")));
  settings = settingsFor(server(), database());
  settings["user"] = "stranger";
  EXPECT_THAT(refusedTwice(settings), AllOf(HasSubstr("Access denied"), HasSubstr("correct storage.mysql.user")));
  settings = settingsFor(server(), database());
  settings["socket"] = (folder_ / "none.sock").string();
  EXPECT_THAT(refusedTwice(settings), AllOf(HasSubstr("none.sock"), HasSubstr("start the database server")));
  settings.erase("socket");
  settings["port"] = freePort();
  EXPECT_THAT(refusedTwice(settings), AllOf(HasSubstr("127.0.0.1:" + settings["port"]), HasSubstr("start the")));
}

/// A server with a certificate of a made authority.
class MysqlTls : public MysqlChecks {
 protected:
  MysqlTls() {
    makeAuthority("authority");
    makeAuthority("stranger");
    const std::string folder = folder_.path().string();
    run("openssl req -newkey ec -pkeyopt ec_paramgen_curve:prime256v1 -nodes -keyout " + folder + "/key.pem -out " +
        folder + "/request.pem -subj /CN=localhost");
    std::ofstream(folder_ / "names") << "subjectAltName=DNS:localhost,IP:127.0.0.1\n";
    run("openssl x509 -req -in " + folder + "/request.pem -CA " + folder + "/authority.pem -CAkey " + folder +
        "/authority.key -CAcreateserial -days 2 -extfile " + folder + "/names -out " + folder + "/cert.pem");
  }

  void makeAuthority(const std::string& name) {
    const std::string path = (folder_ / name).string();
    run("openssl req -x509 -newkey ec -pkeyopt ec_paramgen_curve:prime256v1 -nodes -days 2 -keyout " + path +
        ".key -out " + path + ".pem -subj /CN=" + name);
  }
  static void run(const std::string& command) {
    ASSERT_EQ(std::system((command + " >/dev/null 2>&1").c_str()), 0) << command;
  }
  std::string file(const char* name) const { return (folder_ / name).string(); }

  Settings over(const std::string& port, const std::string& tls) {
    return {{"host", "localhost"}, {"port", port}, {"user", "root"}, {"database", "jobs"}, {"tls", tls}};
  }
};

TEST_F(MysqlTls, OnlyACertificateOfTheAuthorityIsTrusted) {
  const std::string port = freePort();
  MariadbServer secure({"--skip-networking=0", "--bind-address=127.0.0.1", "--port=" + port,
                        "--ssl-cert=" + file("cert.pem"), "--ssl-key=" + file("key.pem"),
                        "--ssl-ca=" + file("authority.pem"), "--innodb-flush-log-at-trx-commit=1"});
  secure.run("", {"CREATE DATABASE jobs"});
  EXPECT_EQ(refusal(over(port, "off")), "");
  EXPECT_EQ(refusal(over(port, file("authority.pem"))), "");
  const mysql::Connector connector{mysql::Options(MapConfig(over(port, file("authority.pem"))))};
  const auto session = connector.open(mysql::Isolation::readCommitted);
  mysql::Query cipher = session->query(
      "SELECT variable_value <> '' FROM information_schema.session_status WHERE variable_name = 'Ssl_cipher'");
  ASSERT_TRUE(cipher.next());
  EXPECT_EQ(cipher.integer(0), 1) << "the session is not encrypted";
  for (const std::string& wrong : {file("stranger.pem"), std::string("on")}) {
    EXPECT_THAT(refusal(over(port, wrong)),
                AllOf(HasSubstr("cannot be reached at localhost:" + port), HasSubstr("TLS/SSL error"),
                      HasSubstr("compare storage.mysql.tls with the certificate of the database server")));
  }
  EXPECT_THAT(refusal(over(port, file("none.pem"))), HasSubstr("none.pem, which cannot be read"));
  Settings byAddress = over(port, file("authority.pem"));
  byAddress["host"] = "127.0.0.1";
  EXPECT_EQ(refusal(byAddress), "");
  std::ofstream(folder_ / "marked.pem") << "\xEF\xBB\xBF" << std::ifstream(folder_ / "authority.pem").rdbuf();
  EXPECT_EQ(refusal(over(port, file("marked.pem"))), "") << "a byte order mark is not a part of the text";
  secure.run("", {"SET GLOBAL require_secure_transport = 1"});
  EXPECT_THAT(refusedTwice(over(port, "off")), HasSubstr("set storage.mysql.tls if the server demands TLS"));
  EXPECT_EQ(refusal(over(port, file("authority.pem"))), "");
}

TEST_F(MysqlTls, AServerWithoutTlsIsRefused) {
  const std::string port = freePort();
  MariadbServer plain({"--skip-networking=0", "--bind-address=127.0.0.1", "--port=" + port, "--skip-ssl"});
  plain.run("", {"CREATE DATABASE jobs"});
  EXPECT_EQ(refusal(over(port, "off")), "");
  EXPECT_THAT(refusedTwice(over(port, file("authority.pem"))),
              AllOf(HasSubstr("TLS"), HasSubstr("compare storage.mysql.tls")));
}

}  // namespace
}  // namespace jobq::test
