// The indexes for ids, for lists and for expiry get a new job late: together with about kMostUnlisted others, in the
// order of the numbers, so the entries of many jobs share the pages of one commit. Each entry made at the insert would
// be a page of the write-ahead log for a commit of few jobs.
//
// `job.listed` is 1 if the job is in the indexes. All jobs up to a number are listed, and all later jobs are not. Reads
// of a list or of the expired jobs also look at each job after the number. The ids of the unlisted jobs are in memory.
#pragma once

#include <atomic>
#include <cstddef>
#include <cstdint>
#include <functional>
#include <optional>
#include <string>
#include <string_view>
#include <unordered_map>

#include "connection.h"
#include "jobq/job.h"
#include "jobq/mutex.h"

namespace jobq::sqlite {

/// An id, and the number of its job if the job is not listed.
struct LocatedId {
  std::string_view id;
  std::optional<std::int64_t> unlisted;
};

/// The number of a job in a statement: ?1 and ?2 are the members of a LocatedId. NULL if there is no such job.
#define JOBQ_NUM_OF_ID "ifnull(?2, (SELECT num FROM job INDEXED BY job_id WHERE listed = 1 AND id = ?1))"

/// Numbers of jobs by their ids.
struct HashOfId {
  using is_transparent = void;
  std::size_t operator()(std::string_view id) const noexcept { return std::hash<std::string_view>()(id); }
};
using NumbersById = std::unordered_map<JobId, std::int64_t, HashOfId, std::equal_to<>>;

/// The numbers of jobs. The thread with the writer's turn calls the methods, unless they say otherwise.
class JobNumbers {
 public:
  /// Reads the highest number of the file, and lists all its jobs. Called once, when the storage is opened. Throws
  /// StorageError.
  void load(Connection& connection);

  /// Returns a new number, of a job or of its arrival in the queue. The number of a failed step is not used again.
  std::int64_t next() noexcept { return ++last_; }
  std::int64_t last() const noexcept { return last_; }

  /// Returns a number up to which all jobs are listed, for a snapshot that begins after the call. Jobs behind the
  /// number may be listed too. Any thread.
  std::int64_t listed() const noexcept { return listed_; }

  /// Locates the id for a statement or a snapshot that begins after the call. Any thread.
  LocatedId locate(std::string_view id) const;

 private:
  friend class ListingChange;

  std::int64_t last_ = 0;
  std::atomic<std::int64_t> listed_ = 0;
  mutable Mutex mutex_;
  NumbersById unlisted_ JOBQ_GUARDED_BY(mutex_);
};

/// New jobs and the listing of jobs by a group of steps. Not thread-safe.
class ListingChange {
 public:
  /// `numbers` outlives the object.
  explicit ListingChange(JobNumbers& numbers) noexcept : numbers_(&numbers) {}

  /// Notes a new job that is not listed.
  void add(const JobId& id, std::int64_t num) { added_[id] = num; }
  /// Locates the id for a statement of the present step.
  LocatedId locate(std::string_view id) const;

  /// Lists all jobs, in the open transaction. Throws StorageError.
  void listAll(Connection& connection);
  /// Lists all jobs if kMostUnlisted or more numbers were given behind the last listed job.
  void listMany(Connection& connection);
  /// Returns whether jobs were listed since the last clear().
  bool hasListed() const noexcept { return upTo_.has_value(); }
  /// Returns a number up to which all jobs are listed.
  std::int64_t listed() const noexcept { return upTo_.value_or(numbers_->listed()); }

  void clear() noexcept {
    upTo_.reset();
    added_.clear();
  }
  /// Lets JobNumbers::locate() find the new jobs, before the commit shows them to a reader. If the commit fails, no row
  /// has such a number.
  void publishIds();
  /// Notes the commit, behind publishIds(). Needs no memory: a commit cannot be undone.
  void apply() noexcept;

 private:
  JobNumbers* numbers_;
  std::optional<std::int64_t> upTo_;  // set: all jobs up to this number were listed
  NumbersById added_;                 // perhaps listed meanwhile
};

/// With so many numbers behind the last listed job, a group of writes lists all jobs at its end.
inline constexpr std::int64_t kMostUnlisted = 256;

}  // namespace jobq::sqlite
