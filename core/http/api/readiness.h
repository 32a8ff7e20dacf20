// Readiness of the storage for a write. Requests need no key, so a successful check serves all requests of one second.
#pragma once

#include <cstdint>

#include "core/base/result.h"
#include "jobq/error.h"
#include "jobq/mutex.h"
#include "jobq/storage.h"
#include "jobq/time.h"

namespace jobq {

/// Any thread may call check(). A check is a write and a sync of the disk. A successful check is good for a second.
/// While a check runs, all callers wait for its result. After a failed check the next caller checks again, so that a
/// recovery is seen at once.
class Readiness {
 public:
  /// `storage` and `clock` outlive the object.
  Readiness(Storage& storage, Clock& clock) : storage_(storage), clock_(clock) {}

  /// Returns if the storage can take a write, or could within the last second. Otherwise throws StorageError with the
  /// reason. May block for the length of one check.
  void check();

 private:
  Result<void, StorageError> ask() noexcept;

  Storage& storage_;
  Clock& clock_;
  Mutex mutex_;
  Condition asked_;
  Instant goodUntil_ JOBQ_GUARDED_BY(mutex_) = Instant::min();
  bool asking_ JOBQ_GUARDED_BY(mutex_) = false;
  std::uint64_t answers_ JOBQ_GUARDED_BY(mutex_) = 0;
  Result<void, StorageError> result_ JOBQ_GUARDED_BY(mutex_);  // result of the last check
};

}  // namespace jobq
