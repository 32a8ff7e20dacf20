// Prepared statements on SQLite's own handle. Poco::Data prepares a statement again at every execution (3 to 4 times
// slower), so frequent statements are prepared once here, on the handle of a session opened by Poco::Data.
#pragma once

#include <sqlite3.h>

#include <cstddef>
#include <cstdint>
#include <limits>
#include <optional>
#include <string>
#include <string_view>
#include <type_traits>
#include <utility>

#include "jobq/error.h"
#include "jobq/job.h"
#include "jobq/time.h"

namespace jobq::sqlite {

/// A failure of SQLite with its result code. Callers of the plugin see a StorageError.
class SqliteError : public StorageError {
 public:
  SqliteError(int code, const std::string& message) : StorageError(message), code_(code) {}

  /// Returns SQLite's extended result code.
  int code() const noexcept { return code_; }
  /// Returns the code without its extension (SQLITE_IOERR for every kind of I/O error).
  int kind() const noexcept { return code_ & 0xff; }

 private:
  int code_;
};

/// Throws the last error of `database` as a SqliteError; `doing` is the failed action, for the message.
[[noreturn]] void fail(sqlite3* database, std::string_view doing);

/// Marks a value bound as BLOB: a body kept byte for byte. The bytes belong to the caller.
struct Bytes {
  std::string_view view;
};

/// Binds a BLOB of `size` zero bytes, filled by a BlobWriter afterwards.
struct Room {
  std::size_t size;
};

/// Overwrites a BLOB in place. SQLite builds a row in memory before storing the row, so a BLOB that is bound needs the
/// memory of all its bytes, and a BLOB that is overwritten does not. Not thread-safe. Failures throw SqliteError.
class BlobWriter {
 public:
  BlobWriter(sqlite3* database, const char* table, const char* column, std::int64_t row);
  ~BlobWriter() { sqlite3_blob_close(blob_); }
  BlobWriter(const BlobWriter&) = delete;
  BlobWriter& operator=(const BlobWriter&) = delete;

  /// Writes `bytes` at the offset `at`, within the size of the BLOB.
  void write(std::uint64_t at, std::string_view bytes);
  /// Ends the writing and reports the errors that the destructor would not.
  void close();

 private:
  sqlite3* database_;
  sqlite3_blob* blob_ = nullptr;
};

/// Owns a compiled statement. Not thread-safe.
class Statement {
 public:
  Statement(sqlite3* database, const char* sql);
  ~Statement() { sqlite3_finalize(handle_); }
  Statement(const Statement&) = delete;
  Statement& operator=(const Statement&) = delete;

  sqlite3_stmt* handle() const noexcept { return handle_; }

 private:
  sqlite3_stmt* handle_ = nullptr;
};

/// Binds values to the parameters of a prepared statement. Text and bytes are bound without a copy and must outlive the
/// execution. Failures throw SqliteError.
class ValueBinder {
 public:
  explicit ValueBinder(sqlite3_stmt* statement) noexcept : statement_(statement) {}

  /// Binds the value to the parameter ?`position`.
  template <class Value>
  requires std::is_integral_v<Value>
  void put(int position, Value value) { putInteger(position, static_cast<std::int64_t>(value)); }
  void put(int position, JobState value) { putInteger(position, static_cast<std::int64_t>(value)); }
  void put(int position, Instant value) { putInteger(position, toEpochMillis(value)); }
  void put(int position, Millis value) { putInteger(position, value.count()); }
  void put(int position, std::string_view text);
  void put(int position, Bytes bytes);
  void put(int position, Room room);
  /// Leaves the parameter NULL without a value.
  template <class Value>
  void put(int position, const std::optional<Value>& value) {
    if (value) put(position, *value);
  }

 private:
  void putInteger(int position, std::int64_t value);
  void check(int result) const;

  sqlite3_stmt* statement_;
};

/// Reads the columns of a statement's current row. The first column has the number 0.
class CurrentRow {
 public:
  explicit CurrentRow(sqlite3_stmt* statement) noexcept : statement_(statement) {}

  std::int64_t integer(int column) const noexcept { return sqlite3_column_int64(statement_, column); }
  std::uint64_t count(int column) const noexcept { return static_cast<std::uint64_t>(integer(column)); }
  std::uint32_t number(int column) const noexcept { return static_cast<std::uint32_t>(integer(column)); }
  std::size_t size(int column) const noexcept { return static_cast<std::size_t>(integer(column)); }
  bool flag(int column) const noexcept { return integer(column) != 0; }
  bool null(int column) const noexcept { return sqlite3_column_type(statement_, column) == SQLITE_NULL; }
  /// Returns a TEXT or BLOB with every byte, NUL included; NULL is returned as an empty string.
  std::string text(int column) const;
  Instant instant(int column) const noexcept { return fromEpochMillis(integer(column)); }
  std::optional<Instant> instantOrNone(int column) const noexcept {
    return null(column) ? std::nullopt : std::optional(instant(column));
  }
  Millis millis(int column) const noexcept { return Millis(integer(column)); }
  JobState state(int column) const noexcept { return static_cast<JobState>(integer(column)); }

 private:
  sqlite3_stmt* statement_;
};

/// An execution of a prepared statement, and its current row after next(). The destructor resets the statement, so no
/// snapshot is held. Text and bytes are bound without a copy and must outlive the query. Two executions of the same
/// statement must not overlap. Failures throw SqliteError.
class Query : public CurrentRow {
 public:
  explicit Query(sqlite3_stmt* statement) noexcept : CurrentRow(statement), statement_(statement) {}
  ~Query() {
    sqlite3_reset(statement_);
    sqlite3_clear_bindings(statement_);
  }
  Query(const Query&) = delete;
  Query& operator=(const Query&) = delete;

  /// Binds the values to ?1, ?2, ... in order.
  template <class... Values>
  Query& bind(Values&&... values) {
    static_assert((!std::is_same_v<Values, std::string> && ...),
                  "a temporary string would be gone when the query runs");
    ValueBinder binder(statement_);
    int position = 0;
    (binder.put(++position, values), ...);
    return *this;
  }

  /// Moves to the next row. Returns false if there is no further row.
  bool next();
  /// Runs the statement to its end, and drops the rows. Returns the number of rows changed by an INSERT, UPDATE or
  /// DELETE.
  std::size_t run() {
    while (next()) continue;
    return static_cast<std::size_t>(sqlite3_changes(sqlite3_db_handle(statement_)));
  }

 private:
  sqlite3_stmt* statement_;
};

}  // namespace jobq::sqlite
