// The shared state of the memory storage, and the steps shared by several operations. A single mutex guards all of the
// state, and every operation on jobs is a single critical section. The storage is therefore the simplest correct one,
// and the judge of the others.
//
// An expired job stays until sweep() frees its space, so an operation never does the work of a sweep. Every operation
// checks Row::expired before using a row.
#pragma once

#include <cstdint>
#include <deque>
#include <functional>
#include <map>
#include <optional>
#include <string_view>
#include <unordered_map>

#include "jobq/job.h"
#include "jobq/mutex.h"
#include "jobq/queue_policy.h"
#include "jobq/receiver_names.h"
#include "jobq/time.h"
#include "jobq/transitions.h"
#include "memory_deliveries.h"
#include "memory_lives.h"
#include "memory_rows.h"

namespace jobq::memory {

struct State {
  State(Clock& systemClock, const ReceiverNames& names, std::optional<Millis> leaseLife)
      : clock(systemClock), lives(leaseLife), deliveries(names) {}

  /// The end of an idempotency record. The entries are in the order of `endsAt`, because all records live equally long.
  struct IdempotencyEnd {
    Instant endsAt;
    EndpointId endpoint;
    IdempotencyRef key;
  };

  Clock& clock;
  Mutex mutex;

  std::map<EndpointId, Endpoint, std::less<>> endpoints JOBQ_GUARDED_BY(mutex);
  std::unordered_map<std::string_view, Rows::iterator> byId JOBQ_GUARDED_BY(mutex);  // views into JobSpec::id
  RowsByTime byExpiry JOBQ_GUARDED_BY(mutex);
  RowsByTime byDeadline JOBQ_GUARDED_BY(mutex);  // IN_PROGRESS
  Lives lives JOBQ_GUARDED_BY(mutex);
  std::deque<IdempotencyEnd> idempotencyEnds JOBQ_GUARDED_BY(mutex);
  Deliveries deliveries JOBQ_GUARDED_BY(mutex);
  std::uint64_t arrivals JOBQ_GUARDED_BY(mutex) = 0;

  /// Returns the row of the job, or null if the job is absent.
  Row* find(const JobKey& key, Instant now) JOBQ_REQUIRES(mutex);
  Row* find(std::string_view id, Instant now) JOBQ_REQUIRES(mutex);
  /// Returns the row if the job is IN_PROGRESS under the attempt of the lease, or null.
  Row* held(const LeaseRef& lease, Instant now) JOBQ_REQUIRES(mutex);

  /// Returns the next job of a queue, or null. Expired jobs before the next one are taken out of the queue.
  Row* head(Queue& queue, Instant now) JOBQ_REQUIRES(mutex);
  /// Puts the job into its queue.
  void enqueue(Row& row) JOBQ_REQUIRES(mutex);
  /// Takes the job out of its queue; no effect on a job outside its queue.
  void dequeue(Row& row) JOBQ_REQUIRES(mutex);
  /// Returns the rank given to the job by `policy` at `now`, and keeps the rank as the last rank of the group, if the
  /// job has a group.
  std::int64_t rankOf(const JobSpec& job, Endpoint& endpoint, const QueuePolicy& policy, Instant now)
      JOBQ_REQUIRES(mutex);

  void setExpiry(Row& row, Instant expiry) JOBQ_REQUIRES(mutex);
  /// Removes the deadline of the running attempt.
  void stopRunning(Row& row) JOBQ_REQUIRES(mutex);
  /// Ends the job from any state, and writes the owed webhook.
  void end(Row& row, Trigger trigger, Instant now) JOBQ_REQUIRES(mutex);
  /// Returns a running job to the old position in the queue, without progress. The chunks move to `discarded`.
  void sendBack(Row& row, Trigger trigger, DiscardedChunks& discarded) JOBQ_REQUIRES(mutex);
  /// Removes the job from all indexes. The row moves to `dead`; the list outlives the lock, so the bodies are freed
  /// outside the lock.
  void removeRow(Row& row, Rows& dead) JOBQ_REQUIRES(mutex);
};

}  // namespace jobq::memory
