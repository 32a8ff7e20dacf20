// The rows of the running jobs, kept in memory: a claim and the end of a job need no entry in an index of the running
// jobs. The set changes after the commit of the change has succeeded, never before.
#pragma once

#include <cstddef>
#include <cstdint>
#include <map>
#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "connection.h"
#include "jobq/job.h"
#include "jobq/mutex.h"
#include "jobq/time.h"

namespace jobq::sqlite {

/// A job that is IN_PROGRESS.
struct RunningRow {
  EndpointId endpoint;
  Instant deadline{};  // of the execution
  WorkerId worker{};   // empty: the job was claimed before the storage was opened
  Instant queuedAt{};  // this and the next two are unknown if `worker` is empty
  Instant startedAt{};
  std::string apiKeyId{};
};

/// Running jobs by their numbers. In RunningRows each entry has a value; in RunningChanges, no value stands for a job
/// that is not running any more.
using RunningByNumber = std::map<std::int64_t, std::optional<RunningRow>>;

class RunningChanges;

/// The running jobs of the file by their numbers, as many as workers that are busy. Any thread may call the methods.
class RunningRows {
 public:
  /// Finds the running jobs of the file, once, when the storage is opened. `others` is the number of the jobs in any
  /// other state: if all jobs are others, as after a regular end of the server, no row is read. Throws StorageError.
  void load(Connection& connection, std::int64_t others);
  /// Applies the changes of a group whose commit has succeeded, and empties `changes`. Needs no memory: a commit cannot
  /// be undone.
  void apply(RunningChanges& changes) noexcept;
  /// Returns the numbers of the running jobs of the endpoint, the newest first.
  std::vector<std::int64_t> newestOf(std::string_view endpoint) const;
  /// Returns the number of running jobs of each endpoint that has one.
  std::map<EndpointId, std::int64_t> countByEndpoint() const;

 private:
  friend class RunningChanges;

  mutable Mutex mutex_;
  RunningByNumber rows_ JOBQ_GUARDED_BY(mutex_);
};

/// Changes of the set by a step or a group of steps. Not thread-safe.
class RunningChanges {
 public:
  /// `rows` outlives the object.
  explicit RunningChanges(const RunningRows& rows) : rows_(&rows) {}

  /// Notes that the job `num` is running from now on.
  void begin(std::int64_t num, RunningRow row) { changes_[num] = std::move(row); }
  /// Notes that the job `num` is not running any more.
  void end(std::int64_t num) { changes_[num].reset(); }
  /// Returns the running job, with the changes of the group; no value for a job that is not running.
  std::optional<RunningRow> find(std::int64_t num) const;

  void clear() noexcept { changes_.clear(); }

  /// Return the numbers of running jobs, with the changes of the group: all, those of an endpoint, or at most `most`
  /// whose deadline is at or before `now`, the earliest first.
  std::vector<std::int64_t> all() const;
  std::vector<std::int64_t> of(std::string_view endpoint) const;
  std::vector<std::int64_t> overdue(Instant now, std::size_t most) const;

 private:
  friend class RunningRows;

  template <class Function>
  void visitAll(Function&& visit) const;

  const RunningRows* rows_;
  RunningByNumber changes_;
};

}  // namespace jobq::sqlite
