// Checks and migration of the database file before the storage uses the file: the file must belong to jobq and must not
// be newer than the code; older files are migrated step by step.
#pragma once

#include <cstddef>
#include <cstdint>
#include <filesystem>
#include <functional>
#include <span>

#include "connection.h"
#include "jobq/log.h"

namespace jobq::sqlite {

/// A step of the schema: the statements leading from the version before.
struct SchemaStep {
  const char* sql;
};

/// Returns the steps from an empty file to the present schema. The version of a file (PRAGMA user_version) is the
/// number of applied steps. A released step never changes; new steps are appended.
std::span<const SchemaStep> schemaSteps() noexcept;

/// The value of `PRAGMA auto_vacuum` of a file whose free pages can be cut off (`shrink.h`), and the statement setting
/// the value, either for an empty file or for a copy written by VACUUM INTO of the same connection.
inline constexpr std::int64_t kIncrementalVacuum = 2;
inline constexpr char kMakeItShrink[] = "PRAGMA auto_vacuum=INCREMENTAL";

/// Creates an empty file with mode 0600. Throws StorageError, also if the file exists.
void makePrivateFile(const std::filesystem::path& file);

/// Creates the folder with mode 0700, durably, if there is none, and takes an existing folder away from other users.
/// Throws StorageError or std::filesystem::filesystem_error.
void makePrivateFolder(const std::filesystem::path& folder);

/// Creates an empty file with mode 0600 if there is none. `newest` is the newest schema version of this code. Throws
/// StorageError and leaves the file unchanged if the file is no SQLite database or its header has a version newer than
/// `newest`.
void prepareFile(const std::filesystem::path& file, std::size_t newest);

/// Brings the schema up to date, each step in its own transaction. A file that already has a version is copied first,
/// to `<file>.v<N>.backup`, and the files of its large bodies get a second name in `<file>.v<N>.backup.bodies`. Throws
/// StorageError and leaves the file unchanged if the file belongs to another program or is newer than `steps`.
void migrate(Connection& connection, const std::filesystem::path& file, std::span<const SchemaStep> steps, Log& log);

}  // namespace jobq::sqlite
