// Prepared statements of the client library, and the errors of the database. Every text is bound as bytes, and every
// text column is binary: the database neither checks nor converts a character.
#pragma once

#include <mysql.h>

#include <cstddef>
#include <cstdint>
#include <deque>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <type_traits>
#include <vector>

#include "jobq/error.h"
#include "jobq/job.h"
#include "jobq/time.h"

namespace jobq::mysql {

/// A failure of the database with the error number. Callers of the plugin see a StorageError.
class MysqlError : public StorageError {
 public:
  MysqlError(unsigned code, const std::string& message) : StorageError(message), code_(code) {}

  /// Returns the error number of the server or of the client library.
  unsigned code() const noexcept { return code_; }
  /// Returns whether the connection is dead, or leads to a server that takes no writes (any more): a sent statement may
  /// have been executed, and a new connection may reach another server.
  bool isLost() const noexcept;
  /// Returns whether no server has answered, or only a server that is not ready yet: a later attempt may succeed.
  bool isUnreachable() const noexcept;
  /// Returns whether the server takes no writes (any more), as a replica.
  bool isOfReplica() const noexcept;
  /// Returns whether the connection died of a message that is too large for the server.
  bool isOfMessage() const noexcept;
  /// Returns whether the server, or a part of the network, has ended the connection, unless the wait for an answer was
  /// too long: the client library has one number for both. Returns false for a fault of the client.
  bool isOfPeer() const noexcept;
  /// Returns whether the error is of the client library: the server has not answered.
  bool isWithoutAnswer() const noexcept;
  /// Returns whether the transaction met another transaction (a deadlock, a lock held too long, or a conflict between
  /// the servers of a cluster). The whole transaction may be repeated.
  bool isConflict() const noexcept;
  /// Returns whether a row with the same unique key exists.
  bool isDuplicate() const noexcept;

 private:
  unsigned code_;
};

/// Throws the last error of `database`; `doing` is the failed action, for the message.
[[noreturn]] void fail(MYSQL* database, std::string_view doing);

/// Marks a text that is bound as NULL if the text is empty.
struct OrNull {
  std::string_view text;
};

/// Owns a statement prepared on the server, and the places of the present row. Not thread-safe.
class Statement {
 public:
  /// Throws MysqlError.
  Statement(MYSQL* database, std::string_view sql);
  ~Statement();
  Statement(const Statement&) = delete;
  Statement& operator=(const Statement&) = delete;

  /// Returns whether an execution failed. Such a statement is not used again: the client library would wait for the
  /// rest of a result whose begin came before the error, as of a locking read that met a deadlock.
  bool isBroken() const noexcept { return isBroken_; }

  /// Executes a statement without a result for `rows` rows of parameters. With more than one row each parameter has the
  /// values of all rows in order; MariaDB alone understands such a message. Throws MysqlError.
  void run(std::vector<MYSQL_BIND>& parameters, unsigned rows);

 private:
  friend class CurrentRow;
  friend class Query;

  /// A column of the result. A text is read in a second step, when the length is known.
  struct Column {
    bool isInteger = false;
    std::int64_t integer = 0;
    unsigned long length = 0;
    my_bool null = 0;
    my_bool error = 0;
  };

  [[noreturn]] void failHere(std::string_view doing);

  MYSQL_STMT* handle_ = nullptr;
  bool isBroken_ = false;
  std::vector<MYSQL_BIND> parameters_;
  std::deque<std::int64_t> integers_;  // the bound integers, by position
  std::vector<MYSQL_BIND> results_;
  std::vector<Column> columns_;
};

/// Reads the columns of a statement's current row. The first column has the number 0.
class CurrentRow {
 public:
  explicit CurrentRow(Statement& statement) noexcept : statement_(statement) {}

  std::int64_t integer(std::size_t column) const { return statement_.columns_[column].integer; }
  std::uint64_t count(std::size_t column) const { return static_cast<std::uint64_t>(integer(column)); }
  std::uint32_t number(std::size_t column) const { return static_cast<std::uint32_t>(integer(column)); }
  std::size_t size(std::size_t column) const { return static_cast<std::size_t>(integer(column)); }
  bool flag(std::size_t column) const { return integer(column) != 0; }
  bool null(std::size_t column) const { return statement_.columns_[column].null != 0; }
  /// Returns a text with every byte, NUL included; NULL is returned as an empty string. Throws MysqlError.
  std::string text(std::size_t column) const;
  Instant instant(std::size_t column) const { return fromEpochMillis(integer(column)); }
  std::optional<Instant> instantOrNone(std::size_t column) const {
    return null(column) ? std::nullopt : std::optional(instant(column));
  }
  Millis millis(std::size_t column) const { return Millis(integer(column)); }
  JobState state(std::size_t column) const { return static_cast<JobState>(integer(column)); }

 protected:
  Statement& statement_;
};

/// An execution of a prepared statement, and its current row after next(). The rows are read from the server at once,
/// so other statements may run between two rows. Texts are bound without a copy and must outlive the query. Two
/// executions of the same statement must not overlap. Failures throw MysqlError.
class Query : public CurrentRow {
 public:
  explicit Query(Statement& statement) : CurrentRow(statement) {}
  ~Query();
  Query(const Query&) = delete;
  Query& operator=(const Query&) = delete;

  /// Binds the values to the parameters in order, after the values of earlier calls.
  template <class... Values>
  Query& bind(Values&&... values) {
    static_assert((!std::is_same_v<Values, std::string> && ...),
                  "a temporary string would be gone when the query runs");
    (put(values), ...);
    return *this;
  }

  /// Executes the statement at the first call, and moves to the next row. Returns false if there is no further row.
  bool next();
  /// Executes the statement. Returns the number of rows that a DELETE removed or an UPDATE found; an UPDATE counts rows
  /// whose values stay equal, too.
  std::size_t run();
  /// Executes an INSERT. Returns the number that the database has given to the row.
  std::int64_t runInsert();

 private:
  template <class Value>
  requires std::is_integral_v<Value>
  void put(Value value) { putInteger(static_cast<std::int64_t>(value)); }
  void put(JobState value) { putInteger(static_cast<std::int64_t>(value)); }
  void put(Instant value) { putInteger(toEpochMillis(value)); }
  void put(Millis value) { putInteger(value.count()); }
  void put(const std::string& text) { put(std::string_view(text)); }
  void put(std::string_view text);
  void put(OrNull value);
  void putInteger(std::int64_t value);
  MYSQL_BIND& nextParameter();
  void execute();

  std::size_t bound_ = 0;
  bool executed_ = false;
};

}  // namespace jobq::mysql
