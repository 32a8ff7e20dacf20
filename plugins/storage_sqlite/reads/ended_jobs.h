// The last ended jobs, kept for the waiting callers: such a caller reads the job once, directly after the end. A read
// of the file would cost several pages, because each commit empties the page cache of a read connection.
//
// A job is kept after the commit of its end has succeeded, never before. A later change of the job removes the job from
// here before the commit of the change: a caller that has read the new state must not find the old state here.
#pragma once

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
  /// Notes a change of a job that has ended, or its removal. A job that also ends in the same group is not kept.
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

/// At most kSlots jobs with kMostBytes; a further one takes the place of others. Any thread may call the methods.
class EndedJobs {
 public:
  /// Several times the jobs ended by one commit, so few jobs meet in a slot before their callers read them.
  static constexpr std::size_t kSlots = 1'024;
  /// Bytes of the largest output and error of a kept job.
  static constexpr std::size_t kMostOfJob = 32UL << 10;
  /// Bytes of the outputs and errors of all kept jobs.
  static constexpr std::size_t kMostBytes = 8UL << 20;

  /// Forgets the jobs that a group has changed. The caller commits the group afterwards.
  void forget(const EndedChanges& changes) {
    if (changes.forgotten_.empty()) return;
    Lock lock(mutex_);
    forgetEach(changes);
  }

  /// Applies the changes of a group whose commit has succeeded.
  void apply(EndedChanges& changes) {
    if (changes.kept_.empty()) return;
    Lock lock(mutex_);
    for (Job& job : changes.kept_) {
      Job& slot = slotOf(job.id);
      (void)empty(slot);
      for (; bytes_ + bytesOf(job) > kMostBytes; next_ = (next_ + 1) % kSlots) (void)empty(slots_[next_]);
      bytes_ += bytesOf(job);
      slot = std::move(job);
    }
    forgetEach(changes);
  }

  /// Returns the job and keeps it no longer, or returns no value for a job that is not kept or absent at `now`.
  std::optional<Job> extractJob(const JobKey& key, Instant now) {
    Lock lock(mutex_);
    Job& slot = slotOf(key.id);
    if (slot.id != key.id || slot.endpoint != key.endpoint || slot.expiresAt <= now) return std::nullopt;
    return empty(slot);
  }

 private:
  static std::size_t bytesOf(const Job& job) { return job.output.size() + job.error.size(); }
  void forgetEach(const EndedChanges& changes) JOBQ_REQUIRES(mutex_) {
    for (const JobId& id : changes.forgotten_) {
      Job& slot = slotOf(id);
      if (slot.id == id) (void)empty(slot);
    }
  }
  Job& slotOf(const JobId& id) JOBQ_REQUIRES(mutex_) { return slots_[std::hash<JobId>()(id) % kSlots]; }
  /// Empties the slot and returns its job.
  Job empty(Job& slot) JOBQ_REQUIRES(mutex_) {
    bytes_ -= bytesOf(slot);
    return std::exchange(slot, Job());
  }

  Mutex mutex_;
  std::vector<Job> slots_ JOBQ_GUARDED_BY(mutex_) = std::vector<Job>(kSlots);  // empty ones without an id
  std::size_t bytes_ JOBQ_GUARDED_BY(mutex_) = 0;                              // of all slots
  std::size_t next_ JOBQ_GUARDED_BY(mutex_) = 0;  // the slot that is emptied next when the bytes are used up
};

}  // namespace jobq::sqlite
