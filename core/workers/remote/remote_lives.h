// The ends of the lives of nodes, as the remote workers of this node need them. The jobs of a node are in the node's
// news up to two seconds after the hand-out (core/workers/remote/remote_exchange.h), so a node that dies may have
// handed out jobs that no other node has read of. Such a job returns to the queue when the life has ended, and not
// before.
//
// A report names no attempt, so a worker gets a job that has run before only if the worker has shown all held jobs
// since the last end of a life (ShownJobs::mayGet). The order of the steps is the proof: the job is handed out; the
// life ends; the job returns to the queue; this node claims the job; this node reads that the life has ended, and
// notes the moment; the worker shows the held jobs. The worker shows the jobs after the hand-out, and gets none of the
// listed jobs. An end noted before the claim was noted after the hand-out, too.
//
// Three cases are not covered: a job that is cancelled and retried within two seconds of the hand-out, because no life
// has ended; a job that a node returns within two seconds because `server.drain` is over; and the answer to a call that
// a suspended node sends after the end of the node's life.
#pragma once

#include <cstdint>
#include <set>
#include <string>
#include <tuple>

#include "core/workers/node/node_lives.h"
#include "jobq/mutex.h"
#include "jobq/storage.h"
#include "jobq/time.h"

namespace jobq {

/// Any thread. The lock is not held while the storage is asked.
class RemoteLives {
 public:
  /// `storage` and `clock` outlive the object.
  RemoteLives(Storage& storage, Clock& clock) : storage_(storage), clock_(clock) {}

  /// Asks the storage for the lives, and returns a moment after each end of a life that the storage knows. Called after
  /// the claim of a job that has run before: each job handed out by a life before the life lost the claimed job was
  /// handed out before the moment. Returns Instant::min() on a storage for a single process, and Instant::max() if the
  /// storage fails.
  Instant check() noexcept;

  /// Takes in lives that the storage returned for another reason, so that check() finds no change later.
  void note(const NodeLives& lives);

 private:
  using Life = std::tuple<std::string, std::uint64_t, bool>;  // name, epoch, whether the life goes on

  Storage& storage_;
  Clock& clock_;
  Mutex mutex_;
  std::set<Life> lives_ JOBQ_GUARDED_BY(mutex_);
  Instant askedAt_ JOBQ_GUARDED_BY(mutex_) = Instant::min();
  Instant changedAt_ JOBQ_GUARDED_BY(mutex_) = Instant::min();
};

}  // namespace jobq
