// Waiting rows of a statement without a result. All rows of the statement are sent to the server together.
#pragma once

#include <mysql.h>

#include <cstddef>
#include <cstdint>
#include <deque>
#include <string>
#include <string_view>
#include <type_traits>
#include <vector>

#include "connection/statement.h"
#include "jobq/job.h"
#include "jobq/time.h"

namespace jobq::mysql {

/// Marks a text sent without a copy: the text stays valid until the write of the operation has returned.
struct Lent {
  std::string_view text;
};

/// The rows of one statement. Every row has values of the same types. Not thread-safe.
class RowBatch {
 public:
  /// Adds a row: the values of the parameters, in their order. Texts are copied, unless marked as Lent.
  template <class... Values>
  void add(const Values&... values) {
    if (columns_.empty()) columns_.resize(sizeof...(values));
    std::size_t column = 0;
    (put(columns_.at(column++), values), ...);
    ++rows_;
  }

  bool isEmpty() const noexcept { return rows_ == 0; }

  /// Forgets the rows.
  void clear() noexcept;

  /// Executes the statement for all rows, and forgets the rows. With `together` the rows are sent as one message, which
  /// MariaDB understands and MySQL does not. Throws MysqlError.
  void send(Statement& statement, bool together);

 private:
  /// A parameter in all rows: integers, or texts with their lengths.
  struct Column {
    std::vector<std::int64_t> integers;
    std::vector<char*> texts;
    std::vector<unsigned long> lengths;
  };

  template <class Value>
  requires std::is_integral_v<Value> || std::is_enum_v<Value>
  static void put(Column& column, Value value) { column.integers.push_back(static_cast<std::int64_t>(value)); }
  static void put(Column& column, Instant value) { column.integers.push_back(toEpochMillis(value)); }
  static void put(Column& column, Millis value) { column.integers.push_back(value.count()); }
  static void put(Column& column, Lent value);
  void put(Column& column, std::string_view value) { put(column, Lent{copies_.emplace_back(value)}); }
  void put(Column& column, const std::string& value) { put(column, std::string_view(value)); }
  void put(Column& column, const char* value) { put(column, std::string_view(value)); }

  /// Returns the parameters of the row; with `together` the parameters of the row and all later rows.
  std::vector<MYSQL_BIND> bindsOf(std::size_t row, bool together);

  std::vector<Column> columns_;
  std::deque<std::string> copies_;
  std::size_t rows_ = 0;
};

}  // namespace jobq::mysql
