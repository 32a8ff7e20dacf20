// Counts the work of the statements that run in this program, so that a test can say what a call may cost without a
// clock: the tests and the plugin share one libsqlite3.
#pragma once

#include <atomic>
#include <cstdint>

namespace jobq::testkit {

/// Any thread.
struct SqliteWork {
  /// Steps of SQLite's virtual machine, in statements that have ended; each row that is visited takes some.
  std::atomic<std::int64_t> steps{0};
};

/// Returns the one instance. The count begins with the first storage that is opened after the first call.
SqliteWork& sqliteWork();

/// Calls `action` and returns how many steps its statements took. No other thread may use a storage meanwhile.
template <class Action>
std::int64_t stepsOf(Action&& action) {
  const std::int64_t before = sqliteWork().steps;
  action();
  return sqliteWork().steps - before;
}

}  // namespace jobq::testkit
