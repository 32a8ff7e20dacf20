// A storage that fails when a test says so: it stands before a real one and throws StorageError instead of calling it.
// It does not fail after the call: "a verb that throws StorageError changed nothing" (storage.h). But for records,
// where a test may ask for that too (Strike::done): a storage over a network, or one that dies, leaves its caller in
// doubt.
#pragma once

#include <cstdint>
#include <memory>
#include <random>
#include <string>
#include <string_view>
#include <vector>

#include "jobq/mutex.h"
#include "jobq/storage.h"
#include "jobq/time.h"

namespace jobq::fault {

/// What becomes of the call that strike() names.
enum class Strike {
  before,  ///< it fails
  done,    ///< it is done, and its caller is told that it failed; of records, and of jobs.remove
  onward,  ///< it fails, and every other one after it, until heal()
};

/// Which calls fail. Shared by the test and every storage that it wraps, so it outlives a restart of the server. Calls
/// are counted over all faces. A verb is named like "leases.finish"; Storage::check is "check", now() never fails.
/// Any thread.
class FaultPlan {
 public:
  explicit FaultPlan(const Clock& clock) : clock_(clock) {}

  /// Call number `number`, counted from the plan's beginning, fails; once.
  void failCall(std::uint64_t number);
  /// The next call of `verb` fails; once.
  void failNext(std::string verb);
  /// The next call of `verb` throws std::bad_alloc, which no contract knows; once.
  void exhaustNext(std::string verb);
  /// Every call fails from number `number` on, until heal().
  void failFrom(std::uint64_t number);
  /// Every call of `verb` (of all verbs, when empty) fails until heal(), or as long as the clock is below `until`.
  void failVerb(std::string verb, Instant until = Instant::max());
  /// About one call in `every` fails until heal(), which ones is up to `seed` and the order of the calls.
  void failAtRandom(unsigned seed, unsigned every);
  /// The `number`-th call of `verb` from now on is struck; once.
  void strike(std::string verb, std::uint64_t number, Strike how);
  /// The next claim that finds a job is done, but its caller does not get it before letGo(): a moment for others.
  void holdClaims() { hold("leases.claim"); }
  /// The same of the `number`-th call of `verb` from now on, one of records.
  void hold(std::string verb, std::uint64_t number = 1);
  bool isHolding() const;
  void letGo();
  /// Nothing fails any more.
  void heal();

  std::uint64_t calls() const;
  /// The verbs that failed, in order.
  std::vector<std::string> failed() const;

  /// Returns whether no call is under way. One that is held is not: what it had to do is done.
  bool isQuiet() const;

  /// What the storage says of each call that is not struck.
  void begin();
  void end();

  /// What the storage asks before each call. Throws StorageError.
  void enter(const char* verb);
  /// What it calls when a claim found something, and after each call of records.
  void leave(const char* verb);

 private:
  bool hits(std::string_view verb) JOBQ_REQUIRES(mutex_);

  const Clock& clock_;
  mutable Mutex mutex_;
  std::uint64_t calls_ JOBQ_GUARDED_BY(mutex_) = 0;
  std::uint64_t once_ JOBQ_GUARDED_BY(mutex_) = 0;
  std::uint64_t from_ JOBQ_GUARDED_BY(mutex_) = UINT64_MAX;
  std::string next_ JOBQ_GUARDED_BY(mutex_);
  std::string exhausted_ JOBQ_GUARDED_BY(mutex_);
  std::string verb_ JOBQ_GUARDED_BY(mutex_);
  Instant until_ JOBQ_GUARDED_BY(mutex_) = Instant::min();
  std::string struck_ JOBQ_GUARDED_BY(mutex_);
  std::uint64_t strikeIn_ JOBQ_GUARDED_BY(mutex_) = 0;
  Strike how_ JOBQ_GUARDED_BY(mutex_) = Strike::before;
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

/// What the message of every injected failure contains.
inline constexpr std::string_view kInjected = "the disk of this test has failed";

class FaultyStorage final : public Storage {
 public:
  /// `plan` outlives it.
  FaultyStorage(std::unique_ptr<Storage> inner, FaultPlan& plan);

  JobStore& jobs() override { return *jobs_; }
  LeaseStore& leases() override { return *leases_; }
  ChunkStore& chunks() override { return *chunks_; }
  OutboxStore& outbox() override { return *outbox_; }
  WorkerStore& workers() override { return *workers_; }
  RecordStore& records() override { return *records_; }
  Instant now() override { return inner_->now(); }
  void check() override;

 private:
  FaultPlan& plan_;
  const std::unique_ptr<Storage> inner_;
  const std::unique_ptr<JobStore> jobs_;
  const std::unique_ptr<LeaseStore> leases_;
  const std::unique_ptr<ChunkStore> chunks_;
  const std::unique_ptr<OutboxStore> outbox_;
  const std::unique_ptr<WorkerStore> workers_;
  const std::unique_ptr<RecordStore> records_;
};

}  // namespace jobq::fault
