// The answers to the questions asked by a node again and again, also without any change: is there work for a sweep, is
// any webhook owed, which endpoints have a queue, has a record changed? One statement answers all of them, and an
// answer serves every question for a moment, so that an idle node asks its database two or three times a second.
//
// An answer includes every change that this process has committed before the call. Changes of other processes may be
// missing for as long as the caller allows.
#pragma once

#include <atomic>
#include <chrono>
#include <cstdint>
#include <optional>
#include <vector>

#include "connection/database_clock.h"
#include "jobq/lease_store.h"
#include "jobq/mutex.h"
#include "jobq/time.h"
#include "reads/readers.h"

namespace jobq::mysql {

/// Number of groups of writes ended by the process. A greater number may mean other content of the database.
using CommitCount = std::atomic<std::uint64_t>;

/// Greatest age of an answer: kNewGlance is for the queues of other nodes, read every 20 ms while the queues have jobs.
/// kFreshGlance is for changed records, read every 500 ms and known within a second. kOldGlance is for periodic work.
inline constexpr std::chrono::milliseconds kNewGlance{5};
inline constexpr std::chrono::milliseconds kFreshGlance{450};
inline constexpr std::chrono::milliseconds kOldGlance{600};

struct Glance {
  std::uint64_t recordVersion = 0;     ///< version of the last change of a record
  Instant sweepAt{};                   ///< earliest moment at which a sweep has work
  bool owesWebhooks = false;           ///< a delivery has not ended
  std::vector<QueuedEndpoint> queued;  ///< endpoints with a queued job, expired jobs before a sweep included
};

/// Any thread. The arguments of the constructor outlive the object.
class Glances {
 public:
  Glances(Readers& readers, DatabaseClock& clock, const CommitCount& commits)
      : readers_(readers), clock_(clock), commits_(commits) {}

  /// Returns an answer that is at most `maxAge` old. Throws StorageError.
  Glance read(std::chrono::milliseconds maxAge);

 private:
  struct Kept {
    Glance glance;
    std::uint64_t commits = 0;
    std::chrono::steady_clock::time_point askedAt;
  };

  Readers& readers_;
  DatabaseClock& clock_;  // a node without writes measures the clock here
  const CommitCount& commits_;
  Mutex mutex_;
  std::optional<Kept> kept_ JOBQ_GUARDED_BY(mutex_);
};

}  // namespace jobq::mysql
