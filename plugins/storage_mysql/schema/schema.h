// Versions of the schema, and the migration when a node opens the storage.
#pragma once

#include <cstddef>
#include <span>
#include <string>

#include "connection/connection.h"
#include "jobq/log.h"

namespace jobq::mysql {

/// A step of the schema: the statements leading from the version before. The database cannot roll back a change of a
/// table, so a step that was interrupted is repeated: each statement may run again after it has succeeded.
struct SchemaStep {
  std::span<const char* const> statements;
};

/// Returns the steps from an empty database to the present schema. The version of a database is the number of applied
/// steps. A released step never changes; new steps are appended.
std::span<const SchemaStep> schemaSteps() noexcept;

/// The right to migrate the database. The server gives the lock up when the connection ends. The servers of a Galera
/// cluster do not share such locks: start the first node of a new version alone if several servers take writes.
class MigrationLock {
 public:
  /// Waits for a minute at most, then throws StorageError.
  MigrationLock(Connection& connection, const std::string& database);
  ~MigrationLock();
  MigrationLock(const MigrationLock&) = delete;
  MigrationLock& operator=(const MigrationLock&) = delete;

 private:
  Connection& connection_;
};

/// Returns the version of the database, 0 if empty. Throws StorageError if another program's tables are there, or if
/// the version is newer than `steps`.
std::size_t readVersion(Connection& connection, const std::string& database, std::span<const SchemaStep> steps);

/// Brings the schema up to date. Several nodes may call at once: the first one migrates, and the others wait for a
/// minute at most. Throws StorageError, and changes nothing, if the database belongs to another program or is newer
/// than `steps`. Throws StorageError if a statement fails.
void migrate(Connection& connection, const std::string& database, std::span<const SchemaStep> steps, Log& log);

}  // namespace jobq::mysql
