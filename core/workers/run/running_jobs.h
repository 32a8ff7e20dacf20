// The running jobs of this node with their stop tokens. A stop on the same node takes effect at once.
#pragma once

#include <cstddef>
#include <cstdint>
#include <map>
#include <memory>
#include <set>
#include <stop_token>
#include <utility>
#include <vector>

#include "core/workers/run/input_memory.h"
#include "jobq/job.h"
#include "jobq/mutex.h"

namespace jobq {

class DeferredInsert;

/// Any thread. Outlives every Claiming and every Entry.
class RunningJobs {
 public:
  /// Returns the memory for the inputs of the jobs.
  InputMemory& inputs() noexcept { return inputs_; }

  /// Held by a claiming thread from before the claim until the claimed attempts are registered. Stops of unknown
  /// attempts are kept meanwhile, because a job can be cancelled as soon as it is claimed.
  class Claiming {
   public:
    explicit Claiming(RunningJobs& jobs);
    ~Claiming();
    Claiming(const Claiming&) = delete;
    Claiming& operator=(const Claiming&) = delete;

   private:
    RunningJobs& jobs_;
    std::uint64_t number_ = 0;
  };

  /// Registers a run for the entry's life.
  class Entry {
   public:
    /// `insert` is null if the storage has the job.
    Entry(RunningJobs& jobs, const LeaseRef& lease, std::shared_ptr<DeferredInsert> insert = nullptr);
    ~Entry();
    Entry(const Entry&) = delete;
    Entry& operator=(const Entry&) = delete;
    /// Returns the stop token of the run. A token that has fired already means a stop before the start: the handler
    /// must not begin.
    std::stop_token token() const { return source_.get_token(); }
    /// Called when the handler has returned. Returns false if the run was fenced before: the handler was stopped and
    /// has not failed, and its outcome must not be reported. After true no fence() concerns the run.
    bool beginReport() const;

   private:
    RunningJobs& jobs_;
    const LeaseRef lease_;
    std::stop_source source_;
  };

  /// Fires the token of the attempt if the attempt runs here, or keeps the stop while a thread is claiming.
  void stop(const LeaseRef& lease);

  /// Marks all present runs as fenced, except runs whose handler has returned, and stops all runs that begin until
  /// unfence(). Returns the attempts marked by this call; the caller stops them. Without memory the call throws
  /// std::bad_alloc and changes nothing.
  std::vector<LeaseRef> fence();

  /// Ends the fence for runs that begin from now on. Fenced runs stay fenced.
  void unfence();

  /// Returns the fenced attempts whose handlers have ended, oldest first: their jobs can go back to the queue.
  std::vector<LeaseRef> endedFenced() const;

  /// Drops the first `count` attempts of endedFenced().
  void forgetFenced(std::size_t count);

  /// Returns the attempts that run here and whose jobs the storage has.
  std::vector<LeaseRef> leases() const;

  /// Returns when the storage has the jobs that run here before their insert, or has refused them.
  void store(const std::vector<LeaseRef>& leases) const;

 private:
  using Attempt = std::pair<JobId, std::uint32_t>;
  struct Run {
    std::stop_source source;
    bool isFenced = false;
    bool reports = false;  // the handler has returned
    std::shared_ptr<DeferredInsert> insert{};
  };

  InputMemory inputs_;
  mutable Mutex mutex_;
  // The claims under way, numbered in the order of their begin.
  std::set<std::uint64_t> claiming_ JOBQ_GUARDED_BY(mutex_);
  std::uint64_t lastClaiming_ JOBQ_GUARDED_BY(mutex_) = 0;
  bool fenced_ JOBQ_GUARDED_BY(mutex_) = false;
  // Stops of unknown attempts, each with the number of the last claim that had begun: a later claim cannot return the
  // attempt, because the attempt had ended in the storage.
  std::map<Attempt, std::uint64_t> stoppedEarly_ JOBQ_GUARDED_BY(mutex_);
  std::map<Attempt, Run> running_ JOBQ_GUARDED_BY(mutex_);
  std::vector<LeaseRef> endedFenced_ JOBQ_GUARDED_BY(mutex_);
};

}  // namespace jobq
