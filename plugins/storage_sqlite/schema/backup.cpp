#include "schema/backup.h"

#include <array>
#include <string>
#include <string_view>
#include <system_error>

#include "connection.h"
#include "schema/schema.h"

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

/// Returns the size of a copy without free pages, at most: the rows of the copy lie closer together. Each row that
/// names a body file gets the bytes of the file.
std::uint64_t sizeOfCopy(Connection& connection) {
  const std::int64_t pages = connection.number("PRAGMA page_count") - connection.number("PRAGMA freelist_count");
  return static_cast<std::uint64_t>(pages * connection.number("PRAGMA page_size") +
                                    connection.number("SELECT sum(size * owners) FROM body_file"));
}

std::string inMegabytes(std::uint64_t bytes) { return std::to_string((bytes >> 20) + 1) + " MB"; }

/// A column for bodies, and the column that names the file of a body.
struct BodyColumn {
  const char* table;
  const char* column;
  const char* find;   // the rows with a file, by number, from ?1
  const char* empty;  // makes room for ?2 bytes in the row ?1
};

constexpr std::array kBodyColumns{
    BodyColumn{"job_input", "input",
               "SELECT num, input_file, size FROM job_input LEFT JOIN body_file ON id = input_file "
               "WHERE num > ?1 AND input_file IS NOT NULL ORDER BY num LIMIT 1",
               "UPDATE job_input SET input = ?2, input_file = NULL WHERE num = ?1"},
    BodyColumn{"job_output", "output",
               "SELECT output_num, output_file, size FROM job_output LEFT JOIN body_file ON id = output_file "
               "WHERE output_num > ?1 AND output_file IS NOT NULL ORDER BY output_num LIMIT 1",
               "UPDATE job_output SET output = ?2, output_file = NULL WHERE output_num = ?1"},
    BodyColumn{"delivery_body", "input",
               "SELECT num, input_file, size FROM delivery_body LEFT JOIN body_file ON id = input_file "
               "WHERE num > ?1 AND input_file IS NOT NULL ORDER BY num LIMIT 1",
               "UPDATE delivery_body SET input = ?2, input_file = NULL WHERE num = ?1"},
    BodyColumn{"delivery_body", "output",
               "SELECT num, output_file, size FROM delivery_body LEFT JOIN body_file ON id = output_file "
               "WHERE num > ?1 AND output_file IS NOT NULL ORDER BY num LIMIT 1",
               "UPDATE delivery_body SET output = ?2, output_file = NULL WHERE num = ?1"}};

void checkStop(const std::stop_token& stop) {
  if (stop.stop_requested()) throw SqliteError(SQLITE_INTERRUPT, "the copy was stopped");
}

/// Writes a body file into the row `num`, whose BLOB has the size of the file.
void fillRow(Connection& connection, const BodyColumn& place, std::int64_t num, const BodyFiles& files,
             const BodyFile& file, const std::stop_token& stop) {
  BlobWriter blob(connection.handle(), place.table, place.column, num);
  BodyReader reader(files);
  if (!reader.open(file)) throw files.missingError(file);
  while (reader.offset() < file.size) {
    checkStop(stop);
    const std::uint64_t at = reader.offset();
    blob.write(at, reader.readPart());
  }
  blob.close();
}

/// Moves the bodies of the files into the rows of the copy. The copy has no reader, and a failure deletes the copy, so
/// the changes need no journal.
void embedBodies(const fs::path& target, const BodyFiles& files, std::stop_token stop) {
  Connection connection(target, Connection::Access::readWrite);
  if (connection.number("SELECT max(id) FROM body_file") == 0) return;
  connection.execute("PRAGMA journal_mode=OFF");
  connection.execute("PRAGMA synchronous=OFF");
  sqlite3_progress_handler(connection.handle(), kStepsBetweenQuestions, isStopped, &stop);
  connection.execute("BEGIN");
  for (const BodyColumn& place : kBodyColumns) {
    std::int64_t num = 0;
    for (;;) {
      BodyFile file;
      {
        Query query = connection.query(place.find);
        if (!query.bind(num).next()) break;
        num = query.integer(0);
        file = bodyFileAt(query, 1);
      }
      connection.query(place.empty).bind(num, Room{file.size}).run();
      fillRow(connection, place, num, files, file, stop);
    }
  }
  connection.execute("DELETE FROM body_file");
  connection.execute("COMMIT");
}

void copy(const fs::path& source, const fs::path& target, std::stop_token stop) {
  checkStop(stop);  // a small copy is done before SQLite asks
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

BackupResult writeBackup(const fs::path& source, const BodyFiles& files, const fs::path& target,
                         const std::stop_token& stop) {
  makePrivateFile(target);
  try {
    copy(source, target, stop);
    embedBodies(target, files, stop);
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
