// Numbers of jobs by endpoint and state, and of owed webhooks by endpoint, kept in memory, so no read counts rows. The
// numbers change after the commit of the change has succeeded, never before.
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <functional>
#include <map>
#include <string>
#include <string_view>
#include <vector>

#include "connection.h"
#include "jobq/job.h"
#include "jobq/lease_store.h"
#include "jobq/mutex.h"
#include "writes/running_rows.h"

namespace jobq::sqlite {

inline constexpr std::size_t kStates = 6;

/// Numbers of an endpoint, or changes of such numbers.
struct Tally {
  std::array<std::int64_t, kStates> jobs{};  ///< by JobState; expired jobs count until removed by a sweep
  std::int64_t queuedLow = 0;
  std::int64_t completed = 0;
  std::int64_t failed = 0;
  std::int64_t retried = 0;
  std::int64_t owed = 0;  ///< webhooks; an owed webhook outlives its job and its endpoint

  Tally& operator+=(const Tally& other) noexcept;
};

/// Changes of the counters by a step or a group of steps. Not thread-safe.
class CounterChanges {
 public:
  /// Counts a new job in the queue.
  void added(const std::string& endpoint, bool low) { place(endpoint, JobState::inQueue, low, 1); }
  /// Counts `jobs` deleted jobs whose state was `from`.
  void gone(const std::string& endpoint, JobState from, bool low, std::int64_t jobs = 1) {
    place(endpoint, from, low, -jobs);
  }
  /// Counts a change of a job's state, except its end.
  void moved(const std::string& endpoint, JobState from, JobState to, bool low);
  /// Counts the end of a job, with its outcome as completed or failed. A cancelled job counts as neither.
  void ended(const std::string& endpoint, JobState from, JobState to, bool low);
  /// Counts a retry by a caller or the loss of a worker.
  void retried(const std::string& endpoint) { ++at(endpoint).tally.retried; }
  /// Adds `webhooks` to the number of webhooks that the endpoint owes; a negative value lowers the number.
  void owes(const std::string& endpoint, std::int64_t webhooks) { at(endpoint).tally.owed += webhooks; }
  /// Returns the change of the number of queued jobs of the endpoint.
  std::int64_t queuedChange(std::string_view endpoint) const;
  /// Returns the change of the number of webhooks that the endpoint owes.
  std::int64_t owedChange(std::string_view endpoint) const;
  /// Notes that the endpoint is deleted: its totals start again from 0.
  void forget(const std::string& endpoint);

  void clear() noexcept { endpoints_.clear(); }

  /// Writes the changes of the totals, in the open transaction. The row of an endpoint counts the outcomes of jobs that
  /// are not in the file any more, or not in that state: load() adds the ended jobs of the file. So the end of a job
  /// changes no such row. Throws StorageError.
  void persist(Connection& connection) const;

 private:
  friend class Counters;
  struct Change {
    Tally tally;
    bool forgotten = false;  // the endpoint was forgotten before `tally`
  };

  Change& at(const std::string& endpoint) { return endpoints_[endpoint]; }
  void place(const std::string& endpoint, JobState state, bool low, std::int64_t jobs);

  std::map<std::string, Change, std::less<>> endpoints_;
};

/// The counters of all endpoints. Any thread may call the methods.
class Counters {
 public:
  /// Counts the content of the file, once, when the storage is opened, and loads `running`. Throws StorageError.
  void load(Connection& connection, RunningRows& running);
  /// Makes the entries that apply() needs, before the commit. A new entry counts 0 until apply().
  void prepare(const CounterChanges& changes);
  /// Applies the changes of a group whose commit has succeeded, behind prepare(). Needs no memory: a commit cannot be
  /// undone.
  void apply(const CounterChanges& changes) noexcept;
  /// Returns the numbers of the endpoint, all 0 if unknown.
  Tally of(std::string_view endpoint) const;
  /// Returns the endpoints with a number, in ascending order.
  std::vector<std::string> names() const;
  /// Returns the endpoints with queued jobs, in ascending order.
  std::vector<QueuedEndpoint> queuedEndpoints() const;
  /// Returns the endpoints that owe webhooks, in ascending order.
  std::vector<std::string> owing() const;

 private:
  mutable Mutex mutex_;
  std::map<std::string, Tally, std::less<>> endpoints_ JOBQ_GUARDED_BY(mutex_);
};

}  // namespace jobq::sqlite
