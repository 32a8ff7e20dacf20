// Fixture of the tests of the SQLite storage's writer: the parts of a storage, and writes that wait behind each other.
#pragma once

#include <gtest/gtest.h>

#include <atomic>
#include <chrono>
#include <cstddef>
#include <future>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "open_sqlite.h"
#include "plugins/storage_sqlite/statement.h"
#include "plugins/storage_sqlite/writes/pending_write.h"
#include "plugins/storage_sqlite/writes/step.h"
#include "sqlite_fixture.h"
#include "testkit/wait_for.h"

namespace jobq::testkit {

class WriterTest : public SqliteTest {
 protected:
  void SetUp() override {
    SqliteTest::SetUp();
    open();
    storage_.reset();
    sqlite_ = std::make_unique<OpenSqlite>(file(), clock_, log_);
  }
  void TearDown() override {
    if (!released_) release();
    {
      const HangGuard guard("the writes of the test to end");
      for (std::future<void>& each : writes_) {
        if (each.valid()) each.wait();
      }
    }
    sqlite_.reset();
    SqliteTest::TearDown();
  }

  /// Starts a write on a separate thread. Returns when the write waits behind the current writes.
  template <class Operation>
  void queue(Operation operation, std::size_t bytes = 0) {
    untilQueued([&] { start(operation, bytes); });
  }
  /// Starts a write without a sync on a separate thread.
  template <class Operation>
  void startUnsynced(Operation operation) {
    writes_.push_back(std::async(std::launch::async, [this, operation] {
      sqlite_->writer.writeUnsynced([&](sqlite::Step& step) {
        operation(step);
        return true;
      });
    }));
  }
  /// Starts a wait for the sync of the unsynced jobs. Returns when it waits behind the present writes.
  void queueSync() {
    untilQueued([&] {
      writes_.push_back(std::async(std::launch::async, [this] {
        sqlite::SyncAlone sync;
        sqlite_->writer.submit(sync);
      }));
    });
  }

  /// Starts a write that occupies the writer until release(), and then writes `written` bytes. Returns when the write
  /// occupies the writer.
  void occupy(std::size_t written) {
    start(
        [this, written](sqlite::Step& step) {
          occupied_ = true;
          waitFor("the test to release the writer",
                  [this] { return free_.wait_for(std::chrono::seconds(0)) == std::future_status::ready; });
          writeBytes(step, written);
        },
        written);
    waitFor("the first write to begin", [&] { return occupied_.load(); });
  }
  void release() {
    released_ = true;
    freed_.set_value();
  }

  /// Returns the write that was started last.
  std::future<void> lastWrite() {
    std::future<void> last = std::move(writes_.back());
    writes_.pop_back();
    return last;
  }
  /// Waits for the end of all writes; throws the exception of the first write that failed.
  void awaitAll() {
    for (std::future<void>& each : writes_) resultOf("a write", each);
    writes_.clear();
  }

  static void writeBytes(sqlite::Step& step, std::size_t bytes) {
    const std::string body(bytes, 'x');
    step.db
        .query(
            "INSERT INTO record (kind, id, name, version, changed_at, body) VALUES ('test', hex(randomblob(8)), '', "
            "abs(random()), 0, ?1)")
        .bind(sqlite::Bytes{body})
        .run();
  }

  std::unique_ptr<OpenSqlite> sqlite_;

 private:
  template <class Start>
  void untilQueued(Start&& start) {
    const std::size_t before = sqlite_->writer.queued();
    start();
    waitFor("the write to be queued", [&] { return sqlite_->writer.queued() == before + 1; });
  }

  template <class Operation>
  void start(Operation operation, std::size_t bytes) {
    writes_.push_back(std::async(std::launch::async, [this, operation, bytes] {
      sqlite_->writer.write(
          [&](sqlite::Step& step) {
            operation(step);
            return true;
          },
          bytes);
    }));
  }

  std::atomic<bool> occupied_ = false;
  bool released_ = false;
  std::promise<void> freed_;
  std::shared_future<void> free_ = freed_.get_future().share();
  std::vector<std::future<void>> writes_;
};

}  // namespace jobq::testkit
