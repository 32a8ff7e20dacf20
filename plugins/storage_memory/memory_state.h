// The shared state of the memory storage, and the steps that several verbs have in common. One mutex guards all of it:
// every verb of the jobs is one critical section, which is what makes this the simplest correct storage, the judge of
// the others.
//
// An expired job stays until sweep() frees it, so that no verb does more work than its own; every verb asks
// Row::expired before it believes a row.
#pragma once

#include <cstdint>
#include <deque>
#include <functional>
#include <map>
#include <string_view>
#include <unordered_map>

#include "jobq/job.h"
#include "jobq/mutex.h"
#include "jobq/queue_policy.h"
#include "jobq/time.h"
#include "jobq/transitions.h"
#include "memory_deliveries.h"
#include "memory_rows.h"

namespace jobq::memory {

struct State {
  explicit State(Clock& systemClock) : clock(systemClock) {}

  /// When an idempotency record ends; in the order of `endsAt`, because all live equally long.
  struct IdempotencyEnd {
    Instant endsAt;
    EndpointId endpoint;
    PromiseKey key;
  };

  Clock& clock;
  Mutex mutex;

  std::map<EndpointId, Endpoint, std::less<>> endpoints JOBQ_GUARDED_BY(mutex);
  std::unordered_map<std::string_view, Rows::iterator> byId JOBQ_GUARDED_BY(mutex);  // views into JobSpec::id
  RowsByTime byExpiry JOBQ_GUARDED_BY(mutex);
  RowsByTime byDeadline JOBQ_GUARDED_BY(mutex);  // IN_PROGRESS
  RowsByTime byLease JOBQ_GUARDED_BY(mutex);     // IN_PROGRESS under a timed lease
  std::deque<IdempotencyEnd> idempotencyEnds JOBQ_GUARDED_BY(mutex);
  Deliveries deliveries JOBQ_GUARDED_BY(mutex);
  std::uint64_t arrivals JOBQ_GUARDED_BY(mutex) = 0;

  /// Null when the job is absent.
  Row* find(const JobKey& key, Instant now) JOBQ_REQUIRES(mutex);
  Row* find(std::string_view id, Instant now) JOBQ_REQUIRES(mutex);
  /// The row, if the job is IN_PROGRESS under this attempt.
  Row* held(const LeaseRef& lease, Instant now) JOBQ_REQUIRES(mutex);

  /// The next job of a line, or null. Expired ones in front of it leave the line on the way.
  Row* head(Line& line, Instant now) JOBQ_REQUIRES(mutex);
  void enterLine(Row& row) JOBQ_REQUIRES(mutex);
  void leaveLine(Row& row) JOBQ_REQUIRES(mutex);
  /// The rank that `policy` gives the job now; remembered for its group.
  std::int64_t rankOf(const JobSpec& job, Endpoint& endpoint, const QueuePolicy& policy, Instant now)
      JOBQ_REQUIRES(mutex);

  void setExpiry(Row& row, Instant expiry) JOBQ_REQUIRES(mutex);
  void setLease(Row& row, Instant end) JOBQ_REQUIRES(mutex);
  /// Forgets the running attempt's deadline and lease.
  void stopRunning(Row& row) JOBQ_REQUIRES(mutex);
  /// Makes the job terminal, wherever it was, and writes the owed webhook.
  void end(Row& row, Trigger trigger, Instant now) JOBQ_REQUIRES(mutex);
  /// Puts a running job back at its old place; chunks and progress are discarded.
  void sendBack(Row& row, Trigger trigger) JOBQ_REQUIRES(mutex);
  /// Removes the job from everything. The row moves to `dead`, which outlives the lock, so that its bodies are freed
  /// outside of it.
  void bury(Row& row, Rows& dead) JOBQ_REQUIRES(mutex);
};

}  // namespace jobq::memory
