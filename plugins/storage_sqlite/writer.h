// The one connection that writes, and its thread. All writes that wait at the same time share one commit, and so one
// fsync; while it runs, the next ones gather. No time is spent on waiting for company.
//
// Writes of large bodies have groups of their own, of kGroupBytes at most or one write, in turns with the small ones: a
// small write waits for one large group at most, however many large bodies wait. What counts are the bodies that a
// caller brings: the copy of an input that an owed webhook gets is a small write.
//
// A group:  BEGIN IMMEDIATE, every write, the counters, COMMIT, the in-memory counters, and only then the callers wake.
// What can happen half way:
//  - a write fails: the group starts again with each write inside a savepoint of its own, so that the failing one is
//    rolled back alone and its caller alone gets the exception. (Savepoints for all, always, would be a quarter of the
//    work, and hardly any write fails.) A verb may therefore run twice: it only reads what its caller lends to it;
//  - SQLite gives the whole transaction up (full disk, I/O error), or COMMIT fails: every caller of the group gets
//    StorageError, and nothing of the group is visible. A full disk heals when there is space again;
//  - an I/O error or a damaged file: nobody knows what the disk holds, and a second fsync may lie. Every further write
//    is refused until a restart, which reads back what did reach the disk: an outcome that was answered with an error
//    may appear then;
//  - the process dies: the write-ahead log holds whole groups only.
#pragma once

#include <atomic>
#include <cstddef>
#include <cstdint>
#include <exception>
#include <optional>
#include <string>
#include <thread>
#include <type_traits>
#include <utility>

#include "connection.h"
#include "counters.h"
#include "jobq/log.h"
#include "jobq/mutex.h"
#include "jobq/time.h"

namespace jobq::sqlite {

/// What a write has at hand: its transaction, its moment, and the counters that it changes.
struct Step {
  Connection& db;
  Instant now;
  CounterChanges& counters;
};

/// A write of more is a large one; and what the bodies of a group of large ones have together.
inline constexpr std::size_t kSmallWrite = 256UL << 10;
inline constexpr std::size_t kGroupBytes = 4UL << 20;

/// Any thread may write. The connection is the writer's alone while it lives.
class Writer {
 public:
  /// `logSize`: bytes in the write-ahead log that make a checkpoint worth its fsync.
  Writer(Connection& connection, Counters& counters, Clock& clock, Log& log, std::uint64_t logSize);
  /// Finishes what is queued.
  ~Writer();
  Writer(const Writer&) = delete;
  Writer& operator=(const Writer&) = delete;

  /// Some write found the disk full since noteRoom(). Any thread.
  bool wasFull() const { return full_; }
  void noteRoom() { full_ = false; }

  /// Moves the log into the file after this group, however small it is. Called by a write, in the writer's thread.
  void checkpointSoon() noexcept { checkpointAt_ = 0; }

  /// Calls `verb(Step&)` in the writer's thread, once or twice, and returns its result when that is on disk. Whatever
  /// the caller lends to `verb` stays valid, because the caller waits. `bytes`: of the bodies that it writes. Throws
  /// what `verb` threw, or StorageError.
  template <class Verb>
  auto write(Verb&& verb, std::size_t bytes = 0) {
    using Result = std::invoke_result_t<Verb&, Step&>;
    WriteOf<Verb, Result> write(verb);
    write.bytes = bytes;
    submit(write);
    return std::move(*write.result);
  }

 private:
  struct Write {
    virtual ~Write() = default;
    virtual void apply(Step& step) = 0;

    void awaitDone();
    void tellDone();

    std::size_t bytes = 0;
    Write* next = nullptr;
    Write* followers = nullptr;  // a list over `next`; this write's thread tells them
    std::exception_ptr error;    // its own
    std::string lostWith;        // the group's; empty when it was committed

   private:
    // Not a std::binary_semaphore: libstdc++'s spins and yields before it sleeps, a fifth of the work on two cores.
    Mutex mutex_;
    Condition finished_;
    bool done_ JOBQ_GUARDED_BY(mutex_) = false;
  };
  template <class Verb, class Result>
  struct WriteOf final : Write {
    explicit WriteOf(Verb& v) : verb(v) {}
    void apply(Step& step) override { result.emplace(verb(step)); }

    Verb& verb;
    std::optional<Result> result;
  };

  /// Writes that wait, in the order in which they came.
  class Queue {
   public:
    bool isEmpty() const { return first_ == nullptr; }
    void push(Write& write);
    /// Takes writes of up to `bytes` together, and one at least.
    Write* take(std::size_t bytes);

   private:
    Write* first_ = nullptr;
    Write* last_ = nullptr;
  };

  void submit(Write& write);
  static void tellAll(Write* group);
  void run();
  Write* awaitGroup();
  void commit(Write* group);
  void applyGroup(Write* group, CounterChanges& changes);
  /// False: one of them failed, and nobody knows what it left behind.
  bool applyTogether(Write* group, CounterChanges& changes);
  /// In a savepoint; what it throws is its own.
  void applyAlone(Write& write, CounterChanges& changes);
  /// After a failure: back to a usable connection, or read-only. Returns what to tell the callers.
  std::string giveUp(const std::exception& error);
  void refuseFromNowOn(const std::string& reason);
  void checkpointWhenDue();

  Connection& connection_;  // the writer thread's
  Counters& counters_;
  Clock& clock_;
  Log& log_;
  std::atomic<bool> full_ = false;
  int logPages_ = 0;  // the writer thread's; set by SQLite after each commit
  const int checkpointPages_;
  int checkpointAt_;  // the writer thread's
  Mutex mutex_;
  Condition arrived_;
  Queue small_ JOBQ_GUARDED_BY(mutex_);
  Queue large_ JOBQ_GUARDED_BY(mutex_);
  bool largeIsNext_ JOBQ_GUARDED_BY(mutex_) = false;
  bool stopping_ JOBQ_GUARDED_BY(mutex_) = false;
  std::string refusal_ JOBQ_GUARDED_BY(mutex_);  // not empty: read-only until restart
  std::thread thread_;
};

}  // namespace jobq::sqlite
