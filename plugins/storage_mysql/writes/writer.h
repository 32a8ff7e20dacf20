// The connections for changes of the storage, each with a thread. Writes waiting at the same time share a transaction,
// and therefore a commit. During a group the next writes gather, for a bounded time: a group with a large body, or in a
// wait for a lock, does not hold up the others. No thread waits for further writes to join.
//
// A group:  BEGIN, every write, the counters, COMMIT; the callers wake only afterwards. Two kinds of statements are
// merged over the writes of a group: the rows of jobs that operations begin with are locked together (`locked_rows.h`),
// and rows without a result are sent together (`row_batch.h`). The operations that begin with the row of a job run
// first, since the others may change any job. Failures half way:
// - The database ends the transaction because of a conflict with another transaction (a deadlock, or a lock that was
//   held too long): the whole group is repeated after a short pause, for some seconds.
// - The connection breaks before COMMIT was sent: the transaction never happens, and the group is repeated once on a
//   new connection. Afterwards every caller of the group gets StorageError.
// - The connection breaks during COMMIT: every caller gets OutcomeUnknown.
// - A write fails: the group is rolled back, and each write is repeated in a transaction of its own. Only the caller of
//   the failing write gets the exception.
// An operation may therefore run several times, and must only read the caller's data.
//
// The step of an unanswered call and its repetition. A broken connection says nothing about the transaction: the server
// may still be writing the COMMIT. Until the transaction ends, the rows of the transaction stay locked. Therefore each
// repeatable operation of the contract begins with a locking read of a row changed or locked by the step (the row of
// the job, of the delivery, of the node, the version of the records), and waits there for the end of the earlier step.
// A claim has no such row; see lives.h.
#pragma once

#include <chrono>
#include <cstddef>
#include <cstdint>
#include <exception>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <thread>
#include <type_traits>
#include <utility>
#include <vector>

#include "connection/connection.h"
#include "connection/database_clock.h"
#include "connection/statement.h"
#include "jobq/mutex.h"
#include "jobq/receiver_names.h"
#include "jobq/time.h"
#include "reads/glance.h"
#include "writes/counters.h"
#include "writes/job_numbers.h"
#include "writes/locked_rows.h"

namespace jobq::mysql {

/// Most chunks and log lines removed by a group of writes. A job may have a million chunks, and the rows of the group
/// are locked meanwhile.
inline constexpr std::int64_t kMostRowsRemoved = 20'000;

/// The context of a write: transaction, moment, the changed counters, locked rows, the numbers of new jobs, the names
/// of webhook receivers, and the room for removed rows.
struct Step {
  Connection& db;
  Instant now;
  CounterChanges& counters;
  LockedRows& locked;
  JobNumbers& numbers;
  const ReceiverNames& receivers;
  std::int64_t& rowsLeft;  // chunks and log lines still removable by the group
};

/// Size of a write and the jobs locked by the write: the writer reads both before the write runs.
struct WriteExtent {
  std::size_t bytes = 0;  ///< size of the written bodies
  /// Id of the job whose row the operation locks first; empty for any other operation. The operation changes no other
  /// job but `furtherJobs`.
  std::string_view job = {};
  std::span<const std::string_view> furtherJobs = {};  ///< valid until the write has ended
};

/// Groups writes and commits each group. Any thread may write.
class Writer {
 public:
  /// Everything here outlives the writer.
  struct Deps {
    const Connector& connector;
    DatabaseClock& clock;
    JobNumbers& numbers;
    const ReceiverNames& receivers;
    CommitCount& commits;
  };
  Writer(const Deps& deps, std::size_t threads);
  /// Finishes the queued writes, then ends the threads.
  ~Writer();
  Writer(const Writer&) = delete;
  Writer& operator=(const Writer&) = delete;

  /// Calls `operation(Step&)` in a thread of the writer, once or more often, and returns the last result when the
  /// change is committed. Data lent to `operation` stays valid, because the caller waits. Throws the exception of
  /// `operation`, StorageError or OutcomeUnknown.
  template <class Operation>
  auto write(Operation&& operation, const WriteExtent& extent = {}) {
    using Result = std::invoke_result_t<Operation&, Step&>;
    WriteOf<Operation, Result> write(operation);
    write.extent = extent;
    submit(write);
    return std::move(*write.result);
  }

 private:
  struct Write {
    virtual ~Write() = default;
    virtual void apply(Step& step) = 0;

    void awaitDone();
    void markDone();

    WriteExtent extent;
    Write* next = nullptr;
    std::exception_ptr error;             // error of the write alone
    std::optional<std::string> lostWith;  // error of the whole group
    bool isUnknown = false;               // the group was lost during its commit

   private:
    Mutex mutex_;
    Condition finished_;
    bool done_ JOBQ_GUARDED_BY(mutex_) = false;
  };
  template <class Operation, class Result>
  struct WriteOf final : Write {
    explicit WriteOf(Operation& v) : operation(v) {}
    void apply(Step& step) override { result.emplace(operation(step)); }

    Operation& operation;
    std::optional<Result> result;
  };
  /// A thread of the writer with its connection and its slot of the counters.
  struct Worker {
    std::unique_ptr<Connection> connection;
    std::chrono::steady_clock::time_point usedAt;  // the last commit
    unsigned slot = 0;
    std::thread thread;
  };
  class Repetition;

  void submit(Write& write);
  static std::size_t countOf(const Write& write);
  void run(Worker& worker);
  Write* awaitGroup();
  void commitGroup(Worker& worker, Write* group);
  void commitAlone(Worker& worker, Write& write);
  /// Runs the writes in one transaction, again after a conflict or a lost connection. Throws the last exception.
  void commit(Worker& worker, Write* group);
  void connect(Worker& worker) const;
  void applyAll(Worker& worker, Write* group);
  static std::vector<std::string_view> jobsOf(const Write* group);
  /// Closes a lost connection whose transaction began at `begunAt`.
  void drop(Worker& worker, const MysqlError& error, std::chrono::steady_clock::time_point begunAt) const;
  static void rollBack(Worker& worker);

  const Deps deps_;
  Mutex mutex_;
  Condition arrived_;
  Condition ended_;
  Write* first_ JOBQ_GUARDED_BY(mutex_) = nullptr;
  Write* last_ JOBQ_GUARDED_BY(mutex_) = nullptr;
  int underWay_ JOBQ_GUARDED_BY(mutex_) = 0;  // groups
  bool stopping_ JOBQ_GUARDED_BY(mutex_) = false;
  std::vector<Worker> workers_;
};

}  // namespace jobq::mysql
