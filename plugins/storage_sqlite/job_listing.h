// The indexes for lists of jobs and for their expiry get a new job late: together with about kMostUnlisted others, in
// the order of their numbers, so the entries of many jobs share the pages of one commit. Each entry made at the insert
// would be a page of the write-ahead log for a commit of few jobs.
//
// `job.listed` is 1 if the job is in these indexes. All jobs up to a number are listed, and all later ones are not.
// Reads that need one of these indexes also look at each job behind that number.
#pragma once

#include <atomic>
#include <cstdint>
#include <optional>

#include "connection.h"
#include "jobq/time.h"

namespace jobq::sqlite {

/// The numbers that were given to jobs. The thread with the writer's turn calls the methods, unless they say otherwise.
class JobNumbers {
 public:
  /// Reads the highest number of the file, and lists all its jobs. Called once, when the storage is opened. Throws
  /// StorageError.
  void load(Connection& connection);

  /// Returns a new number, of a job or of its arrival in the queue. The number of a failed step is not used again.
  std::int64_t next() noexcept { return ++last_; }
  std::int64_t last() const noexcept { return last_; }

  /// Returns a number up to which all jobs are listed. Jobs behind it may be listed too. Any thread.
  std::int64_t listed() const noexcept { return listed_; }

 private:
  friend class ListingChange;

  std::int64_t last_ = 0;
  std::atomic<std::int64_t> listed_ = 0;
};

/// The listing of jobs by a group of steps. Not thread-safe.
class ListingChange {
 public:
  /// `numbers` outlives the object.
  explicit ListingChange(JobNumbers& numbers) noexcept : numbers_(&numbers) {}

  /// Lists all jobs, in the open transaction. Throws StorageError.
  void listAll(Connection& connection);
  /// Lists all jobs if kMostUnlisted or more numbers were given behind the last listed job.
  void listMany(Connection& connection);
  /// Lists all jobs if one that is not listed has expired at `now`.
  void listExpired(Connection& connection, Instant now);

  void clear() noexcept { upTo_.reset(); }
  /// Notes the commit.
  void apply() const noexcept {
    if (upTo_) numbers_->listed_ = *upTo_;
  }

 private:
  std::int64_t listed() const noexcept { return upTo_.value_or(numbers_->listed()); }

  JobNumbers* numbers_;
  std::optional<std::int64_t> upTo_;
};

/// With so many numbers behind the last listed job, a group of writes lists all jobs at its end.
inline constexpr std::int64_t kMostUnlisted = 256;

}  // namespace jobq::sqlite
