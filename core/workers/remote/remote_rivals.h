// Signs that two processes work under the same worker id (core/decisions/remote_workers.md). Plain state, guarded by
// the mutex of RemoteRegistry.
#pragma once

#include <algorithm>
#include <cstddef>
#include <deque>
#include <optional>

#include "jobq/job.h"
#include "jobq/time.h"

namespace jobq {

/// Not thread-safe. A sign is a call for jobs that replaces a call still waiting, or the result of a job that a process
/// under the same id did not have. A process that replaces another process makes a single sign.
class RemoteRivals {
 public:
  /// Notes a sign. Returns true if there are enough signs, at most once in 10 minutes.
  bool noteSign(Instant now) {
    if (now >= since_ + kWindow) {
      since_ = now;
      signs_ = 0;
    }
    if (++signs_ < kEnough || (toldAt_ && now < *toldAt_ + kQuiet)) return false;
    toldAt_ = now;
    return true;
  }
  /// Notes a job that was lost because a call reported that the worker has no job.
  void noteDisowned(const JobId& job) {
    if (disowned_.size() >= kMostDisowned) disowned_.pop_front();
    disowned_.push_back(job);
  }
  /// Returns true if the job is among the last jobs of noteDisowned().
  bool isDisowned(const JobId& job) const { return std::ranges::count(disowned_, job) > 0; }

 private:
  static constexpr Millis kWindow{30'000};
  static constexpr Millis kQuiet{600'000};
  static constexpr int kEnough = 4;
  static constexpr std::size_t kMostDisowned = 16;

  Instant since_{};
  int signs_ = 0;
  std::optional<Instant> toldAt_;
  std::deque<JobId> disowned_;
};

}  // namespace jobq
