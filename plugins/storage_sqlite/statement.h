// Prepared statements on SQLite's own handle. Poco::Data re-prepares a statement at every execution (3-4 times slower),
// so the hot ones are prepared once here, on the handle of a session that Poco::Data opened.
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

/// What SQLite refused, with its result code. Leaves the plugin as the StorageError that it is.
class SqliteError : public StorageError {
 public:
  SqliteError(int code, const std::string& message) : StorageError(message), code_(code) {}

  /// SQLite's extended result code.
  int code() const noexcept { return code_; }
  /// The code without its extension (SQLITE_IOERR for every kind of I/O error).
  int kind() const noexcept { return code_ & 0xff; }

 private:
  int code_;
};

/// Throws what `database` last complained about.
[[noreturn]] void fail(sqlite3* database, std::string_view doing);

/// Marks a value that is bound as BLOB: a body that is carried byte for byte. The bytes belong to the caller.
struct Bytes {
  std::string_view view;
};

/// Binds a BLOB of so many zero bytes, which writeBlob() fills afterwards.
struct Room {
  std::size_t size;
};

/// Overwrites a BLOB of this size in place. SQLite builds a row in memory before it stores it, so a large body that is
/// bound is there once more; one that is written afterwards is not.
void writeBlob(sqlite3* database, const char* table, const char* column, std::int64_t row, std::string_view bytes);

/// A compiled statement, owned. One thread at a time.
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

/// One execution of a prepared statement. Its destructor resets the statement, so that no snapshot is held. Text and
/// bytes are bound without a copy: they have to live as long as the query. Two executions of the same statement cannot
/// overlap. Failures throw SqliteError.
class Query {
 public:
  explicit Query(sqlite3_stmt* statement) noexcept : statement_(statement) {}
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
    int position = 0;
    (put(++position, values), ...);
    return *this;
  }

  /// Moves to the next row; false: there is none.
  bool next();
  /// Runs to the end, dropping rows.
  void run() {
    while (next()) continue;
  }
  /// Runs to the end; how many rows an INSERT, UPDATE or DELETE changed.
  std::size_t change() {
    run();
    return static_cast<std::size_t>(sqlite3_changes(sqlite3_db_handle(statement_)));
  }

  std::int64_t integer(int column) const noexcept { return sqlite3_column_int64(statement_, column); }
  std::uint32_t number(int column) const noexcept { return static_cast<std::uint32_t>(integer(column)); }
  std::size_t size(int column) const noexcept { return static_cast<std::size_t>(integer(column)); }
  bool flag(int column) const noexcept { return integer(column) != 0; }
  bool null(int column) const noexcept { return sqlite3_column_type(statement_, column) == SQLITE_NULL; }
  /// TEXT or BLOB with every byte, NUL included; NULL is empty.
  std::string text(int column) const;
  Instant instant(int column) const noexcept { return fromEpochMillis(integer(column)); }
  std::optional<Instant> instantOrNone(int column) const noexcept {
    return null(column) ? std::nullopt : std::optional(instant(column));
  }
  Millis millis(int column) const noexcept { return Millis(integer(column)); }
  JobState state(int column) const noexcept { return static_cast<JobState>(integer(column)); }

 private:
  template <class Value>
  requires std::is_integral_v<Value>
  void put(int position, Value value) { putInteger(position, static_cast<std::int64_t>(value)); }
  void put(int position, JobState value) { putInteger(position, static_cast<std::int64_t>(value)); }
  void put(int position, Instant value) { putInteger(position, toEpochMillis(value)); }
  void put(int position, Millis value) { putInteger(position, value.count()); }
  void put(int position, std::string_view text);
  void put(int position, Bytes bytes);
  void put(int position, Room room);
  void putInteger(int position, std::int64_t value);
  void check(int result) const;

  sqlite3_stmt* statement_;
};

}  // namespace jobq::sqlite
