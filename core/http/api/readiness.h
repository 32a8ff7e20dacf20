// Whether the storage can take a write: asked by anybody, without a key, and answered from one check a second.
#pragma once

#include <cstdint>
#include <optional>
#include <string>

#include "jobq/mutex.h"
#include "jobq/storage.h"
#include "jobq/time.h"

namespace jobq {

/// Any thread. A check is a write and a sync of the disk. One that succeeds is good for a second; while one runs, all
/// callers wait for it; after one that failed the next caller checks again, so that a recovery is seen at once.
class Readiness {
 public:
  /// Both outlive it.
  Readiness(Storage& storage, Clock& clock) : storage_(storage), clock_(clock) {}

  /// Returns if the storage can take a write, or could within the last second. Throws StorageError with the reason
  /// otherwise.
  void check();

 private:
  std::optional<std::string> ask() noexcept;

  Storage& storage_;
  Clock& clock_;
  Mutex mutex_;
  Condition asked_;
  Instant goodUntil_ JOBQ_GUARDED_BY(mutex_) = Instant::min();
  bool asking_ JOBQ_GUARDED_BY(mutex_) = false;
  std::uint64_t answers_ JOBQ_GUARDED_BY(mutex_) = 0;
  std::optional<std::string> fault_ JOBQ_GUARDED_BY(mutex_);  // of the last answer
};

}  // namespace jobq
