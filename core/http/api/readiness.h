// Readiness of the storage for a write. Requests need no key, so a successful check serves all requests of one second.
#pragma once

#include <cstdint>
#include <optional>
#include <vector>

#include "core/base/result.h"
#include "core/base/suspended_call.h"
#include "jobq/error.h"
#include "jobq/mutex.h"
#include "jobq/storage.h"
#include "jobq/time.h"

namespace jobq {

/// Any thread. A check is a write and a sync of the disk. A successful check is good for a second. While a check runs
/// on the thread of a caller, further callers wait for the result without a thread. After a failed check the next
/// caller checks again, so that a recovery is seen at once.
class Readiness {
 public:
  /// `storage` and `clock` outlive the object.
  Readiness(Storage& storage, Clock& clock) : storage_(storage), clock_(clock) {}

  /// A caller of check(). One thread at a time.
  struct Question {
    SuspendedCall call;
    std::optional<std::uint64_t> check{};  ///< the number of the check whose result the caller waits for
  };

  /// Returns success if the storage can take a write, or could within the last second, and otherwise the reason. Blocks
  /// for the length of one check at most. Returns no value while another caller checks: `question.call` is resumed at
  /// the end, and the same question is asked again.
  std::optional<Result<void, StorageError>> check(Question& question);

 private:
  Result<void, StorageError> askStorage() noexcept;

  Storage& storage_;
  Clock& clock_;
  const StorageError lacking_{"the storage cannot be checked: this machine has no memory left"};
  Mutex mutex_;
  Instant goodUntil_ JOBQ_GUARDED_BY(mutex_) = Instant::min();
  bool isChecking_ JOBQ_GUARDED_BY(mutex_) = false;
  std::uint64_t ended_ JOBQ_GUARDED_BY(mutex_) = 0;            // number of checks that have ended
  Result<void, StorageError> result_ JOBQ_GUARDED_BY(mutex_);  // result of the last check
  std::vector<SuspendedCall> waiting_ JOBQ_GUARDED_BY(mutex_);
};

}  // namespace jobq
