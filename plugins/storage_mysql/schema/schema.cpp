#include "schema/schema.h"

#include <cstdint>
#include <string>

namespace jobq::mysql {
namespace {

std::int64_t countTables(Connection& connection, const char* sql) {
  Query query = connection.query(sql);
  query.next();
  return query.integer(0);
}

void apply(Connection& connection, const SchemaStep& step, std::size_t version) {
  for (const char* const statement : step.statements) connection.execute(statement);
  connection.query("INSERT INTO jobq_schema (version) VALUES (?)").bind(version).run();
}

}  // namespace

MigrationLock::MigrationLock(Connection& connection, const std::string& database) : connection_(connection) {
  const std::string name = "jobq.schema." + database.substr(0, 40);  // a name has at most 64 characters
  constexpr int kQuestions = 12;  // of 5 s each: a connection waits 10 s for an answer
  for (int i = 0; i < kQuestions; ++i) {
    Query query = connection.query("SELECT GET_LOCK(?, 5)");
    if (query.bind(name).next() && query.integer(0) == 1) return;
  }
  throw StorageError("another node has been migrating the database " + database +
                     " for a minute; start this node when the other one is up");
}

MigrationLock::~MigrationLock() {
  try {
    Query query = connection_.query("SELECT RELEASE_ALL_LOCKS()");
    query.next();
  } catch (const MysqlError&) {  // NOLINT: the lock ends with the connection
  }
}

// A probe that was killed may have left its table.
std::size_t readVersion(Connection& connection, const std::string& database, std::span<const SchemaStep> steps) {
  const bool isOurs = countTables(connection,
                                  "SELECT COUNT(*) FROM information_schema.tables WHERE table_schema = DATABASE() AND "
                                  "table_name = 'jobq_schema'") > 0;
  if (!isOurs) {
    if (countTables(connection,
                    "SELECT COUNT(*) FROM information_schema.tables WHERE table_schema = DATABASE() AND "
                    "table_name <> 'jobq_probe'") == 0) {
      return 0;
    }
    throw StorageError("the database " + database +
                       " has tables of another program; set storage.mysql.database to an empty database");
  }
  Query query = connection.query("SELECT MAX(version) FROM jobq_schema");
  const std::size_t version = query.next() ? query.size(0) : 0;
  if (version <= steps.size()) return version;
  throw StorageError("the database " + database + " has schema version " + std::to_string(version) +
                     ", this server knows versions up to " + std::to_string(steps.size()) +
                     "; start the newer server, or set storage.mysql.database to another database");
}

void migrate(Connection& connection, const std::string& database, std::span<const SchemaStep> steps, Log& log) {
  const MigrationLock lock(connection, database);
  const std::size_t version = readVersion(connection, database, steps);
  if (version == steps.size()) return;
  if (version == 0) connection.execute("CREATE TABLE IF NOT EXISTS jobq_schema (version BIGINT PRIMARY KEY)");
  for (std::size_t at = version; at < steps.size(); ++at) apply(connection, steps[at], at + 1);
  if (version == 0) return;
  log.write(LogLevel::information, "storage.migrate",
            "the database " + database + " was migrated from schema version " + std::to_string(version) + " to " +
                std::to_string(steps.size()));
}

}  // namespace jobq::mysql
