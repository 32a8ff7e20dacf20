// A storage decorator with failures on demand: a failing call throws StorageError and does not reach the real storage.
// Failures do not come after the call, because an operation changes nothing when StorageError is thrown
// (`sdk/include/jobq/storage.h`). For some operations a test may ask for a failure after the call (CallFault::done):
// the storage throws OutcomeUnknown, like a storage behind a connection that breaks before the answer comes.
#pragma once

#include <atomic>
#include <cstdint>
#include <functional>
#include <memory>
#include <optional>
#include <random>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "jobq/job.h"
#include "jobq/mutex.h"
#include "jobq/queue_policy.h"
#include "jobq/storage.h"
#include "jobq/time.h"
#include "testkit/forwarding_storage.h"

namespace jobq::fault {

/// Fate of the call named by failCall().
enum class CallFault {
  before,  ///< the call fails
  done,    ///< the call is done, and throws OutcomeUnknown (repeatable operations, jobs.remove, a sweep with effects)
  lost,    ///< the call is not done, and throws OutcomeUnknown; once
  unanswered,  ///< CallFault::done for the call and for every later call of the operation, until heal()
  onward,      ///< the call fails, and every later call too, until heal()
};

/// Decides which calls fail. The test and every wrapped storage share the plan, so the plan outlives a restart of the
/// server. Calls are counted over all stores. An operation is named like "leases.finish"; Storage::check is "check",
/// now() never fails. Thread-safe.
class FaultPlan {
 public:
  explicit FaultPlan(const Clock& clock) : clock_(clock) {}

  /// Fails call number `number`, counted from the creation of the plan; once.
  void failCall(std::uint64_t number);
  /// Fails the next call of `operation`; once.
  void failNext(std::string operation);
  /// Throws std::bad_alloc, an exception unknown to the contracts, in the next call of `operation`; once.
  void exhaustNext(std::string operation);
  /// Fails every call from number `number` on, until heal().
  void failFrom(std::uint64_t number);
  /// Fails every call of `operation` (of all operations, if empty) until heal(), or as long as the clock is below
  /// `until`.
  void failOperation(std::string operation, Instant until = Instant::max());
  /// Fails about one call in `every` until heal(). The seed and the order of the calls decide which calls fail.
  void failAtRandom(unsigned seed, unsigned every);
  /// Fails the `number`-th call of `operation` from now on; once.
  void failCall(std::string operation, std::uint64_t number, CallFault how);
  /// Holds the `number`-th call of `operation` from now on: the call is done, but its caller does not get the result
  /// before letGo(). Other threads can act in this moment. `operation` is an operation of records, or "leases.claim",
  /// where claims without a job do not count. Under a name like "before jobs.insert" the call of any operation is held
  /// before the storage begins it.
  void hold(std::string operation, std::uint64_t number = 1);
  bool isHolding() const;
  void letGo();
  /// Ends all failures.
  void heal();

  std::uint64_t calls() const;
  /// Returns the names of the failed operations, in order.
  std::vector<std::string> failed() const;

  /// Returns the time since the last join or beat of a node, answered or not, or since the creation of the plan.
  Millis sinceBeat() const;

  /// Returns true if no call is under way. A held call does not count: its work is done, or has not begun.
  bool isQuiet() const;

  /// Called by the storage at the begin (1) and at the end (-1) of each call without a failure.
  void countCall(int change);

  /// Called by the storage before each call. Throws StorageError if the call has to fail.
  void enter(const char* operation);
  /// Called by the storage when a claim found a job, and after each call that CallFault::done can name. The fault of a
  /// claim, a sweep or a consumption waits for a call that has found something.
  void leave(const char* operation);

 private:
  bool hits(std::string_view operation) JOBQ_REQUIRES(mutex_);
  void holdAt(std::string_view point) JOBQ_REQUIRES(mutex_);

  const Clock& clock_;
  std::atomic<std::int64_t> beatAt_{toEpochMillis(clock_.now())};
  mutable Mutex mutex_;
  std::uint64_t calls_ JOBQ_GUARDED_BY(mutex_) = 0;
  std::uint64_t once_ JOBQ_GUARDED_BY(mutex_) = 0;
  std::uint64_t from_ JOBQ_GUARDED_BY(mutex_) = UINT64_MAX;
  std::string next_ JOBQ_GUARDED_BY(mutex_);
  std::string exhausted_ JOBQ_GUARDED_BY(mutex_);
  std::string operation_ JOBQ_GUARDED_BY(mutex_);
  Instant until_ JOBQ_GUARDED_BY(mutex_) = Instant::min();
  std::string failing_ JOBQ_GUARDED_BY(mutex_);
  std::uint64_t failIn_ JOBQ_GUARDED_BY(mutex_) = 0;
  CallFault how_ JOBQ_GUARDED_BY(mutex_) = CallFault::before;
  std::string losing_ JOBQ_GUARDED_BY(mutex_);     // operation whose answers are lost
  bool doubtful_ JOBQ_GUARDED_BY(mutex_) = false;  // the struck call is being done
  std::string held_ JOBQ_GUARDED_BY(mutex_);
  std::uint64_t holdIn_ JOBQ_GUARDED_BY(mutex_) = 0;
  bool holding_ JOBQ_GUARDED_BY(mutex_) = false;
  std::uint64_t releases_ JOBQ_GUARDED_BY(mutex_) = 0;
  int underWay_ JOBQ_GUARDED_BY(mutex_) = 0;
  Condition letGo_;
  unsigned every_ JOBQ_GUARDED_BY(mutex_) = 0;
  std::minstd_rand dice_ JOBQ_GUARDED_BY(mutex_);
  std::vector<std::string> failed_ JOBQ_GUARDED_BY(mutex_);
};

/// Part of the message of every injected failure.
inline constexpr std::string_view kInjected = "the disk of this test has failed";

class FaultyStorage final : private testkit::CallHook, public testkit::ForwardingStorage {
 public:
  /// `plan` must outlive the storage.
  FaultyStorage(std::unique_ptr<Storage> inner, FaultPlan& plan)
      : ForwardingStorage(*inner, this), plan_(plan), owned_(std::move(inner)) {}

 private:
  void around(const char* operation, const std::function<bool()>& call) override;
  Capabilities capabilities() const noexcept override {
    return only({Capability::insertBegun, Capability::insertLater, Capability::adopt});
  }

  FaultPlan& plan_;
  const std::unique_ptr<Storage> owned_;
};

}  // namespace jobq::fault
