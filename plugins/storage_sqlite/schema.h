// What the database file has to be before the storage works on it: ours, no newer than this code, migrated step by
// step.
#pragma once

#include <cstddef>
#include <cstdint>
#include <filesystem>
#include <functional>
#include <span>

#include "connection.h"
#include "jobq/log.h"

namespace jobq::sqlite {

/// One step of the schema: the statements that lead from the version before it.
struct SchemaStep {
  const char* sql;
};

/// The steps from an empty file to the present schema; a file's version (PRAGMA user_version) is how many it has seen.
/// A step that has been released never changes: a new one is added.
std::span<const SchemaStep> schemaSteps() noexcept;

/// The answer of `PRAGMA auto_vacuum` for a file whose free pages can be cut off (shrink.h), and the statement that
/// makes it so: of an empty file, or of the copy that the connection's VACUUM INTO writes.
inline constexpr std::int64_t kIncrementalVacuum = 2;
inline constexpr char kMakeItShrink[] = "PRAGMA auto_vacuum=INCREMENTAL";

/// Makes an empty file (mode 0600). Throws StorageError, also when there is such a file.
void makePrivateFile(const std::filesystem::path& file);

/// Makes an empty file (mode 0600) when there is none. Throws StorageError, leaving the file as it is, when it is not a
/// SQLite database or its header says that its version is newer than `newest`.
void prepareFile(const std::filesystem::path& file, std::size_t newest);

/// Brings the schema up to date, each step in its own transaction, after keeping a copy of a file that has a version
/// already (`<file>.v<N>.backup`). Throws StorageError, leaving the file as it is, when the file is another program's
/// or newer than `steps`.
void migrate(Connection& connection, const std::filesystem::path& file, std::span<const SchemaStep> steps, Log& log);

}  // namespace jobq::sqlite
