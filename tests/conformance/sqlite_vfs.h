// A layer of files beneath SQLite: counts calls and fails on demand. The layer wraps the system's layer and becomes the
// default. Tests and plugin share one libsqlite3, and so the plugin uses the layer without knowledge of the tests.
#pragma once

#include <sqlite3.h>

#include <atomic>
#include <functional>
#include <new>
#include <string_view>
#include <utility>

#include "jobq/mutex.h"

namespace jobq::testkit {

/// A function of a test, called by the layer. Any thread may set and call the function: the writer's thread may sync at
/// any moment.
class Hook {
 public:
  Hook& operator=(std::function<void()> function) {
    const Lock lock(mutex_);
    function_ = std::move(function);
    return *this;
  }
  void operator()() const {
    std::function<void()> present;
    {
      const Lock lock(mutex_);
      present = function_;
    }
    present();
  }

 private:
  mutable Mutex mutex_;
  std::function<void()> function_ JOBQ_GUARDED_BY(mutex_) = [] {};
};

/// The faults of the write-ahead log, the target of each commit. Any thread may use the members.
class LogFaults {
 public:
  /// The number of syncs of the log.
  std::atomic<int> syncs{0};
  std::atomic<int> writes{0};
  std::atomic<int> bytes{0};  ///< of all writes
  /// The results of the next calls; SQLITE_OK lets a call work as usual.
  std::atomic<int> syncAnswers{SQLITE_OK};
  std::atomic<int> writeAnswers{SQLITE_OK};
  /// The number (by `writes`) of the first write with the result writeAnswers; 0 means every write.
  std::atomic<int> writesFrom{0};
  /// Lets the writes behind the first failed one work as usual.
  std::atomic<bool> failsOnce{false};
  /// Called at the beginning of a sync.
  Hook onSync;
  /// Called at the beginning of a sync of the database file, the last step of a checkpoint.
  Hook onDatabaseSync;

  void reset() {
    syncs = writes = bytes = writesFrom = 0;
    syncAnswers = writeAnswers = SQLITE_OK;
    failsOnce = false;
    onSync = [] {};
    onDatabaseSync = [] {};
  }
};

/// The faults of the files of large bodies. Any thread may use the members.
class BodyFaults {
 public:
  /// The results of the next calls; SQLITE_OK lets a call work as usual.
  std::atomic<int> openAnswers{SQLITE_OK};
  std::atomic<int> openError{0};  ///< errno behind a failed opening
  std::atomic<int> writeAnswers{SQLITE_OK};
  std::atomic<int> syncAnswers{SQLITE_OK};
  std::atomic<int> readAnswers{SQLITE_OK};
  /// The number (by `writes`) of the first write with the result writeAnswers; 0 means every write.
  std::atomic<int> writesFrom{0};
  std::atomic<int> writes{0};
  /// Called at the beginning of an opening, a sync and a deletion.
  Hook onOpening;
  Hook onSync;
  Hook onDeletion;

  void reset() {
    openAnswers = writeAnswers = syncAnswers = readAnswers = SQLITE_OK;
    openError = writesFrom = writes = 0;
    onOpening = [] {};
    onSync = [] {};
    onDeletion = [] {};
  }
};

/// Returns the one instance, installed at the first use. Call before the first storage is opened.
LogFaults& logFaults();

/// Returns the one instance; logFaults() installs the layer.
BodyFaults& bodyFaults();

}  // namespace jobq::testkit
