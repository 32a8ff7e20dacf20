#include "connection/probe.h"

#include <mysqld_error.h>

#include <charconv>
#include <cstdint>
#include <string>
#include <string_view>
#include <utility>

#include "connection/database_clock.h"
#include "schema/schema.h"

namespace jobq::mysql {
namespace {

constexpr std::int64_t kLeastPacket = 64LL << 20;
constexpr Millis kClocksApart{2'000};

/// Returns the text between two quotes, with each quote and backslash inside twice.
std::string quoted(const std::string& text, char quote) {
  std::string whole(1, quote);
  for (const char c : text) whole.append(c == quote || (c == '\\' && quote == '\'') ? 2 : 1, c);
  return whole + quote;
}

/// Returns lines for the administrator of the database server that make the database and the user of the settings.
std::string describeSetup(const Options& options) {
  const std::string database = quoted(options.database, '`');
  const std::string user = quoted(options.user, '\'') + "@'%'";
  const std::string lines[] = {
      "-- Six lines for the administrator of the database server; its configuration keeps the last three after a "
      "restart:",
      "CREATE DATABASE IF NOT EXISTS " + database + ";",
      "CREATE USER IF NOT EXISTS " + user + " IDENTIFIED BY 'the password of storage.mysql.passwordFile';",
      "GRANT ALL ON " + database + ".* TO " + user + ";",
      "SET GLOBAL max_allowed_packet = " + std::to_string(kLeastPacket) + ";",
      "SET GLOBAL innodb_flush_log_at_trx_commit = 1;",
      "SET GLOBAL sync_binlog = 1;"};
  std::string all;
  for (const std::string& line : lines) all += "\n" + line;
  return all;
}

/// Returns the first two numbers of a version such as 10.11.6-MariaDB.
std::pair<int, int> numbersOf(const std::string& version) {
  std::pair<int, int> numbers{0, 0};
  const char* const end = version.data() + version.size();
  const auto major = std::from_chars(version.data(), end, numbers.first);
  if (major.ptr != end && *major.ptr == '.') std::from_chars(major.ptr + 1, end, numbers.second);
  return numbers;
}

CheckResult passed(const char* name, std::string text) { return {name, CheckVerdict::passed, std::move(text)}; }
CheckResult warned(const char* name, std::string text) { return {name, CheckVerdict::warned, std::move(text)}; }
CheckResult failed(const char* name, std::string text) { return {name, CheckVerdict::failed, std::move(text)}; }

CheckResult checkVersion(Connection& connection) {
  const std::string version = connection.variable("version");
  const bool isMaria = version.find("MariaDB") != std::string::npos;
  const std::pair<int, int> least = isMaria ? std::pair(10, 6) : std::pair(8, 0);
  if (numbersOf(version) >= least) return passed("version", version);
  return failed("version", "the database server has version " + version +
                               ", which lacks SKIP LOCKED; use MariaDB 10.6 or newer, or MySQL 8.0 or newer");
}

/// Returns whether a variable with the values ON and OFF, or 1 and 0, is on.
bool isOn(Connection& connection, std::string_view name) {
  const std::string value = connection.variable(name);
  return value == "ON" || value == "1";
}

CheckResult checkReadOnly(Connection& connection) {
  for (const char* const name : {"read_only", "innodb_read_only"}) {
    if (!isOn(connection, name)) continue;
    return failed("writable", "the variable " + std::string(name) +
                                  " of the database server is on: the server takes no writes, like a replica; let "
                                  "storage.mysql.host name the server that takes writes");
  }
  return passed("writable", "the server takes writes");
}

CheckResult checkPacket(Connection& connection) {
  const std::string value = connection.variable("max_allowed_packet");
  if (!value.empty() && std::stoll(value) >= kLeastPacket) return passed("packet", "max_allowed_packet is " + value);
  return failed("packet", "the variable max_allowed_packet of the database server is " + value +
                              " bytes, too small for the bodies of jobs; set max_allowed_packet=64M in the server's "
                              "configuration and restart the server");
}

std::string lossOf(const std::string& variable, const std::string& value) {
  return "the variable " + variable + " of the database server is " + value +
         ": acknowledged jobs may be lost when the server's machine loses power. Set the variable to 1 to keep every "
         "acknowledged job.";
}

CheckResult checkDurability(Connection& connection) {
  constexpr const char* kVariable = "innodb_flush_log_at_trx_commit";
  const std::string flush = connection.variable(kVariable);
  if (flush.empty() || flush == "1") return passed("durability", "each commit is synced to the disk");
  return warned("durability", lossOf(kVariable, flush));
}

// A crash recovery rolls back all transactions missing in the binary log.
CheckResult checkBinaryLog(Connection& connection) {
  if (!isOn(connection, "log_bin")) return passed("binlog", "the server writes no binary log");
  const std::string sync = connection.variable("sync_binlog");
  if (sync == "1") return passed("binlog", "each commit is synced to the binary log");
  return warned("binlog", lossOf("sync_binlog", sync));
}

// Older servers of MariaDB have the variable under a former name.
CheckResult checkIsolation(Connection& connection) {
  std::string isolation = connection.variable("transaction_isolation");
  if (isolation.empty()) isolation = connection.variable("tx_isolation");
  if (isolation != "READ-COMMITTED") {
    return failed("isolation", "the database server runs sessions under " + isolation +
                                   " that ask for READ COMMITTED; connect to the server itself, or to a proxy that "
                                   "keeps the settings of a session");
  }
  if (isOn(connection, "log_bin") && connection.variable("binlog_format") == "STATEMENT") {
    return failed("isolation",
                  "the variable binlog_format of the database server is STATEMENT, with which the server takes no "
                  "change under READ COMMITTED; set binlog_format=ROW in the server's configuration");
  }
  return passed("isolation", isolation);
}

/// Ends the transactions of the check, whatever its result.
class Rollback {
 public:
  explicit Rollback(Connection& connection) : connection_(connection) { connection_.execute("BEGIN"); }
  ~Rollback() {
    try {
      connection_.execute("ROLLBACK");
    } catch (const MysqlError&) {  // NOLINT: the transaction ends with the connection
    }
  }
  Rollback(const Rollback&) = delete;
  Rollback& operator=(const Rollback&) = delete;

 private:
  Connection& connection_;
};

/// Statements of a check on one row of a table of names and values.
struct RowStatements {
  const char* insert;
  const char* update;
  const char* remove;
  const char* lock;
  const char* skip;
};

// Each session changes a separate row. With a common row, two of three nodes starting at once would deadlock: both wait
// for the insert of the third node with a shared lock, get the lock at the rollback, and then ask for an exclusive
// lock.
#define JOBQ_OWN_ROW "CONCAT('probe ', CONNECTION_ID())"
#define JOBQ_ROW_STATEMENTS(table)                                                 \
  {                                                                                \
    "INSERT INTO " table " (name, value) VALUES (" JOBQ_OWN_ROW ", 0)",            \
        "UPDATE " table " SET value = value + 1 WHERE name = " JOBQ_OWN_ROW,       \
        "DELETE FROM " table " WHERE name = " JOBQ_OWN_ROW,                        \
        "SELECT value FROM " table " WHERE name = 'probed' FOR UPDATE",            \
        "SELECT value FROM " table " WHERE name = 'probed' FOR UPDATE SKIP LOCKED" \
  }
constexpr RowStatements kOfSchema = JOBQ_ROW_STATEMENTS("counted");
constexpr RowStatements kOfProbe = JOBQ_ROW_STATEMENTS("jobq_probe");
#undef JOBQ_ROW_STATEMENTS
#undef JOBQ_OWN_ROW

CheckResult tryChanges(Connection& connection, const RowStatements& row) {
  try {
    const Rollback open(connection);
    for (const char* const statement : {row.insert, row.update, row.remove}) connection.query(statement).run();
  } catch (const MysqlError& error) {
    return failed("changes", error.what());
  }
  return passed("changes", "rows can be inserted, changed and deleted");
}

/// Two connections of a node have to reach the same server of a Galera cluster.
CheckResult tryServers(Connection& first, Connection& second) {
  if (!first.isOnGalera()) return passed("servers", "the database is one server");
  const auto serverOf = [](Connection& connection) {
    return connection.variable("wsrep_node_name") + " (" + connection.variable("wsrep_node_address") + ")";
  };
  const std::string one = serverOf(first);
  const std::string other = serverOf(second);
  if (one == other) return passed("servers", "the connections reach one server of a Galera cluster, " + one);
  return failed("servers", "two connections of this node reached two servers of a Galera cluster, " + one + " and " +
                               other +
                               ", whose locks exclude only their own sessions; let the load balancer send all "
                               "connections to one server, and to another one when it fails");
}

CheckResult tryLocks(Connection& first, Connection& second, const RowStatements& row) {
  const Rollback open(first);
  Query locked = first.query(row.lock);
  if (!locked.next()) {
    return failed("locks", "the database has lost a row of its table `counted`; restore a backup");
  }
  const Rollback other(second);
  Query skipped = second.query(row.skip);
  if (!skipped.next()) return passed("locks", "a locked row excludes other sessions");
  return failed("locks",
                "the database gave two sessions the same locked row: its FOR UPDATE SKIP LOCKED takes no lock, and "
                "jobs would run several times. Use MariaDB 10.6 or newer, or MySQL 8.0 or newer, with InnoDB tables.");
}

/// The table for the checks of an empty database. The migration lock is held, so no other probe uses the table, and no
/// node creates the schema meanwhile.
class ProbeTable {
 public:
  explicit ProbeTable(Connection& connection) : connection_(connection) {
    connection_.execute(
        "CREATE TABLE IF NOT EXISTS jobq_probe (name VARBINARY(64) NOT NULL PRIMARY KEY, value BIGINT NOT NULL) "
        "ENGINE=InnoDB");
    connection_.execute("INSERT IGNORE INTO jobq_probe (name, value) VALUES ('probed', 0)");
  }
  ~ProbeTable() {
    try {
      connection_.execute("DROP TABLE jobq_probe");
    } catch (const MysqlError&) {  // NOLINT: the schema ignores a table of the name
    }
  }
  ProbeTable(const ProbeTable&) = delete;
  ProbeTable& operator=(const ProbeTable&) = delete;

 private:
  Connection& connection_;
};

void addChecksOfRows(std::vector<CheckResult>& results, Connection& first, Connection& second,
                     const RowStatements& row) {
  results.push_back(tryChanges(first, row));
  if (results.back().verdict != CheckVerdict::failed) results.push_back(tryLocks(first, second, row));
}

/// Checks the schema and its rows; an empty database gets a table of the check.
void addChecksOfTables(std::vector<CheckResult>& results, Connection& first, Connection& second,
                       const std::string& database) {
  const std::size_t version = readVersion(first, database, schemaSteps());
  if (version > 0) {
    results.push_back(
        passed("schema", "version " + std::to_string(version) + " of " + std::to_string(schemaSteps().size())));
    return addChecksOfRows(results, first, second, kOfSchema);
  }
  const MigrationLock lock(first, database);
  results.push_back(passed("schema", "the database is empty: the first start of a server creates the tables"));
  const ProbeTable table(first);
  addChecksOfRows(results, first, second, kOfProbe);
}

}  // namespace

std::vector<CheckResult> checkServer(Connection& connection, const Clock& host) {
  return {checkVersion(connection),
          checkReadOnly(connection),
          checkPacket(connection),
          checkDurability(connection),
          checkBinaryLog(connection),
          checkIsolation(connection),
          checkClocks(measureOffset(connection, host))};
}

CheckResult checkSameServer(Connection& first, Connection& second) { return tryServers(first, second); }

CheckResult checkChanges(Connection& connection) { return tryChanges(connection, kOfSchema); }

CheckResult checkLocks(Connection& first, Connection& second) { return tryLocks(first, second, kOfSchema); }

CheckResult checkClocks(Millis ahead) {
  const Millis apart = std::chrono::abs(ahead);
  if (apart <= kClocksApart) {
    return passed("clock", "the clocks differ by " + std::to_string(apart.count()) + " ms");
  }
  return warned("clock", "the clock of the database server is " + std::to_string(apart.count() / 1'000) + " s " +
                             (ahead > Millis(0) ? "ahead of" : "behind") +
                             " the clock of this host. Jobs follow the clock of the database; set both clocks by NTP, "
                             "because times in logs, webhooks and expiring keys do not.");
}

std::vector<CheckResult> probe(const Connector& connector, const Clock& host) {
  std::vector<CheckResult> results;
  constexpr std::string_view kConnection = "connection";
  const char* step = kConnection.data();
  try {
    const auto first = connector.open(Isolation::readCommitted);
    const auto second = Connector(connector.options()).open(Isolation::readCommitted);  // may reach another server
    results.push_back(passed(step, connector.options().address()));
    step = "server";
    for (CheckResult& result : checkServer(*first, host)) results.push_back(std::move(result));
    results.push_back(checkSameServer(*first, *second));
    step = "schema";
    addChecksOfTables(results, *first, *second, connector.options().database);
  } catch (const StorageError& error) {
    const bool isUnreached = step == kConnection;
    results.push_back(failed(step, error.what() + (isUnreached ? describeSetup(connector.options()) : "")));
  }
  return results;
}

void enforce(std::span<const CheckResult> results, Log& log) {
  for (const CheckResult& result : results) {
    if (result.verdict == CheckVerdict::failed) throw StorageError(result.text);
    if (result.verdict != CheckVerdict::warned) continue;
    const std::string event = "storage." + result.name;
    log.write(LogLevel::warning, event, result.text);
  }
}

}  // namespace jobq::mysql
