// A file layer beneath SQLite that counts and fails on demand. It wraps the system's own and becomes the default, so
// the plugin uses it unknowingly: the tests and the plugin share one libsqlite3.
#pragma once

#include <sqlite3.h>

#include <atomic>
#include <functional>
#include <new>
#include <string_view>

namespace jobq::testkit {

/// Concerns the write-ahead log only, which is where a commit goes. Any thread.
class LogFaults {
 public:
  /// How often the log was made durable.
  std::atomic<int> syncs{0};
  std::atomic<int> writes{0};
  /// What the next calls answer; SQLITE_OK is to do what was asked.
  std::atomic<int> syncAnswers{SQLITE_OK};
  std::atomic<int> writeAnswers{SQLITE_OK};
  /// The write with this number (by `writes`), and each after it, gets writeAnswers; 0 is every one.
  std::atomic<int> writesFrom{0};
  /// Called at the beginning of a sync.
  std::function<void()> onSync = [] {};

  void reset() {
    syncs = writes = writesFrom = 0;
    syncAnswers = writeAnswers = SQLITE_OK;
    onSync = [] {};
  }
};

/// The one instance; installed at its first use, before the first storage is opened.
LogFaults& logFaults();

}  // namespace jobq::testkit
