// A connection to an SQLite database without the storage.
#pragma once

#include <gtest/gtest.h>
#include <sqlite3.h>

#include <filesystem>
#include <string>

namespace jobq::testkit {

/// A connection of another program: SQLite without the storage. `layer` is the name of a file layer, null for the
/// default one. Used by one thread.
class PlainDatabase {
 public:
  PlainDatabase(const std::filesystem::path& file, const char* layer) {
    constexpr int kFlags = SQLITE_OPEN_READWRITE | SQLITE_OPEN_CREATE;
    EXPECT_EQ(sqlite3_open_v2(file.c_str(), &handle_, kFlags, layer), SQLITE_OK);
  }
  ~PlainDatabase() { sqlite3_close(handle_); }
  PlainDatabase(const PlainDatabase&) = delete;
  PlainDatabase& operator=(const PlainDatabase&) = delete;

  /// Runs the statements; an error fails the test.
  void run(const std::string& sql) {
    EXPECT_EQ(sqlite3_exec(handle_, sql.c_str(), nullptr, nullptr, nullptr), SQLITE_OK)
        << sqlite3_errmsg(handle_) << ": " << sql;
  }
  /// Returns the first value of the result, or "no row"; an error fails the test.
  std::string text(const char* sql) {
    sqlite3_stmt* statement = nullptr;
    EXPECT_EQ(sqlite3_prepare_v2(handle_, sql, -1, &statement, nullptr), SQLITE_OK) << sqlite3_errmsg(handle_);
    std::string result = "no row";
    if (sqlite3_step(statement) == SQLITE_ROW) {
      const auto* value = reinterpret_cast<const char*>(sqlite3_column_text(statement, 0));
      result = value == nullptr ? "null" : value;
    }
    sqlite3_finalize(statement);
    return result;
  }
  sqlite3* handle() const { return handle_; }

 private:
  sqlite3* handle_ = nullptr;
};

}  // namespace jobq::testkit
