// Room 10 (sign-off), the other half: callers who wait for a job to end, or for its next chunk. Each sleeps on its own
// condition; nobody polls the storage.
#pragma once

#include <cstddef>
#include <functional>
#include <map>
#include <stop_token>
#include <string_view>

#include "jobq/job.h"
#include "jobq/mutex.h"
#include "jobq/time.h"

namespace jobq {

/// Where a waiter hears that nobody waits for its answer any more. It is asked only when the wait turns out to be long,
/// because most are not.
using DisconnectSignal = std::function<std::stop_token()>;

/// Any thread.
class CompletionNotifier {
 public:
  explicit CompletionNotifier(Clock& clock) : clock_(clock) {}

  /// What a waiter wants to hear of: the job's end (or that it is gone), or every new chunk too.
  enum class Interest { end, chunks };

  /// A place in the waiting room. Take it before the job is looked at (or put in line): news that come between the look
  /// and the wait are then not missed.
  class Waiter {
   public:
    Waiter(CompletionNotifier& watch, JobKey job, Interest interest = Interest::end);
    ~Waiter();
    Waiter(const Waiter&) = delete;
    Waiter& operator=(const Waiter&) = delete;

    /// Waits for news: the job's end, or chunks of at least `bytes` in all since the last call. With `bytes` above 0 an
    /// end that an earlier call told is news again. Returns true if there was news: look at the job again, and wait
    /// again when it is not enough. Returns false if the wait is over, because the watch closed, the waiter's client
    /// has gone, or `deadline` is reached; news of fewer bytes are forgotten then.
    [[nodiscard]] bool wait(Instant deadline, const DisconnectSignal& gone, std::size_t bytes = 0);

    /// Returns true if a wait found that the waiter's client has gone.
    bool clientHasLeft() const;

   private:
    bool waitAMoment(Instant deadline);
    void waitLong(Instant deadline);
    bool hasNews() const JOBQ_REQUIRES(watch_.mutex_);
    bool mustWait(Instant deadline) const JOBQ_REQUIRES(watch_.mutex_);
    bool takeNews();
    friend class CompletionNotifier;
    CompletionNotifier& watch_;
    const JobKey job_;
    const Interest interest_;
    Condition changed_;
    // These are guarded by watch_.mutex_.
    bool news_ = false;
    bool left_ = false;
    bool ended_ = false;  // or may have: stays, because news of the end may be taken together with that of a chunk
    bool hasChunks_ = false;
    std::size_t bytes_ = 0;   // of those chunks
    std::size_t wanted_ = 0;  // bytes that are news
    std::multimap<JobId, Waiter*>::iterator place_;
  };

  /// The job has ended or is gone.
  void announce(const JobId& job);

  /// The job has new chunks of `bytes` bytes in all.
  void announceChunk(const JobId& job, std::size_t bytes);

  /// How many waiters want to hear of chunks.
  std::size_t streams() const;

  /// Some jobs of the endpoint are gone, nobody knows which (purge).
  void announceSome(std::string_view endpoint);

  /// Ends every wait, now and from now on (shutdown).
  void close();

 private:
  Clock& clock_;
  mutable Mutex mutex_;
  std::multimap<JobId, Waiter*> waiting_ JOBQ_GUARDED_BY(mutex_);
  std::size_t streams_ JOBQ_GUARDED_BY(mutex_) = 0;
  bool closed_ JOBQ_GUARDED_BY(mutex_) = false;
};

}  // namespace jobq
