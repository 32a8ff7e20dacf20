#include "backup.h"

#include <string>
#include <system_error>

#include "connection.h"
#include "schema.h"

namespace jobq::sqlite {
namespace {

namespace fs = std::filesystem;

/// Instructions of SQLite's virtual machine between two checks of the stop token: less than a millisecond of rows.
constexpr int kStepsBetweenQuestions = 1'000;

int isStopped(void* stop) { return static_cast<const std::stop_token*>(stop)->stop_requested() ? 1 : 0; }

void removeCopy(const fs::path& target) noexcept {
  std::error_code ignored;
  fs::remove(target, ignored);
  fs::remove(target.string() + "-journal", ignored);
}

/// Returns the size of a copy without free pages, at most: the rows of the copy lie closer together.
std::uint64_t sizeOfCopy(Connection& connection) {
  const std::int64_t pages = connection.number("PRAGMA page_count") - connection.number("PRAGMA freelist_count");
  return static_cast<std::uint64_t>(pages * connection.number("PRAGMA page_size"));
}

std::string inMegabytes(std::uint64_t bytes) { return std::to_string((bytes >> 20) + 1) + " MB"; }

void copy(const fs::path& source, const fs::path& target, std::stop_token stop) {
  Connection connection(source, Connection::Access::readOnly);
  // VACUUM INTO writes to a second file, and query_only forbids such writes too. The source is opened with mode=ro.
  connection.execute("PRAGMA query_only=0");
  connection.execute("PRAGMA synchronous=OFF");
  // A read-only connection cannot change the mode of the source, but passes the mode on to the copy.
  if (connection.number("PRAGMA auto_vacuum") != kIncrementalVacuum) connection.execute(kMakeItShrink);
  std::error_code unknown;  // the space is then very large, and a full disk ends the copy
  requireRoom(sizeOfCopy(connection), fs::space(target, unknown).available);
  sqlite3_progress_handler(connection.handle(), kStepsBetweenQuestions, isStopped, &stop);
  const std::string name = target.string();
  const Statement statement(connection.handle(), "VACUUM INTO ?1");
  Query(statement.handle()).bind(name).run();
}

}  // namespace

void requireRoom(std::uint64_t bytes, std::uint64_t available) {
  if (available >= bytes + kRoomForWrites) return;
  throw StorageError("the backup needs " + inMegabytes(bytes) + " and " + inMegabytes(kRoomForWrites - 1) +
                     " for the jobs of that time, and the disk of data.dir has " + inMegabytes(available) +
                     ": free space, or stop the server and copy data.dir");
}

BackupResult writeBackup(const fs::path& source, const fs::path& target, const std::stop_token& stop) {
  makePrivateFile(target);
  try {
    copy(source, target, stop);
    return BackupResult::written;
  } catch (const SqliteError& error) {
    removeCopy(target);
    if (error.kind() == SQLITE_INTERRUPT && stop.stop_requested()) return BackupResult::stopped;
    throw;
  } catch (...) {
    removeCopy(target);
    throw;
  }
}

}  // namespace jobq::sqlite
