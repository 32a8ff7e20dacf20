// Counts the work of the SQL statements in the test program: a test can bound the cost of a call without a clock. Tests
// and plugin share one libsqlite3.
#pragma once

#include <atomic>
#include <cstdint>

#include "sqlite_fixture.h"

namespace jobq::testkit {

/// The counters. Any thread may read the members.
struct SqliteWork {
  /// Steps of SQLite's virtual machine, in ended statements; each visited row takes several steps.
  std::atomic<std::int64_t> steps{0};
};

/// Returns the one instance. The count begins with the first storage opened after the first call.
SqliteWork& sqliteWork();

/// Calls `action` and returns the steps of its statements. No other thread may use a storage meanwhile.
template <class Action>
std::int64_t stepsOf(Action&& action) {
  const std::int64_t before = sqliteWork().steps;
  action();
  return sqliteWork().steps - before;
}

/// Opens the storage after the begin of the count.
class CountedSqliteTest : public SqliteTest {
 protected:
  void SetUp() override {
    SqliteTest::SetUp();
    (void)sqliteWork();
    open();
  }
};

}  // namespace jobq::testkit
