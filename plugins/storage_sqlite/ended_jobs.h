// The last jobs that ended, kept for their waiting callers: such a caller reads the job once, directly after its end. A
// read of the file would cost several pages, because each commit empties the page cache of a read connection.
//
// The jobs change after the commit of the change has succeeded, never before, as running_rows.h says of running jobs.
#pragma once

#include <array>
#include <cstddef>
#include <functional>
#include <optional>
#include <utility>
#include <vector>

#include "jobq/job.h"
#include "jobq/mutex.h"
#include "jobq/time.h"

namespace jobq::sqlite {

/// Changes of the kept jobs by a step or a group of steps. Not thread-safe.
class EndedChanges {
 public:
  /// Notes the end of a job: `job` is the job as find() returns it.
  void keep(Job job) { kept_.push_back(std::move(job)); }
  /// Notes a change of a job that has ended, or its removal. No job ends behind such a change in one group, because the
  /// end needs the answer of a claim, or is that of a new job.
  void forget(const JobId& id) { forgotten_.push_back(id); }
  void clear() noexcept {
    kept_.clear();
    forgotten_.clear();
  }

 private:
  friend class EndedJobs;

  std::vector<Job> kept_;
  std::vector<JobId> forgotten_;
};

/// At most kSlots jobs; a further one takes the place of another. Any thread may call the methods.
class EndedJobs {
 public:
  static constexpr std::size_t kSlots = 256;
  /// Bytes of the largest output of a kept job.
  static constexpr std::size_t kMostOutput = 32UL << 10;

  /// Applies the changes of a group whose commit has succeeded.
  void apply(EndedChanges& changes) {
    if (changes.kept_.empty() && changes.forgotten_.empty()) return;
    Lock lock(mutex_);
    for (Job& job : changes.kept_) {
      Job& slot = slotOf(job.id);
      slot = std::move(job);
    }
    for (const JobId& id : changes.forgotten_) {
      Job& slot = slotOf(id);
      if (slot.id == id) slot = Job();
    }
  }

  /// Returns the job and keeps it no longer, or returns no value for a job that is not kept or absent at `now`.
  std::optional<Job> extractJob(const JobKey& key, Instant now) {
    Lock lock(mutex_);
    Job& slot = slotOf(key.id);
    if (slot.id != key.id || slot.endpoint != key.endpoint || slot.expiresAt <= now) return std::nullopt;
    return std::exchange(slot, Job());
  }

 private:
  Job& slotOf(const JobId& id) JOBQ_REQUIRES(mutex_) { return slots_[std::hash<JobId>()(id) % kSlots]; }

  Mutex mutex_;
  std::array<Job, kSlots> slots_ JOBQ_GUARDED_BY(mutex_);
};

}  // namespace jobq::sqlite
