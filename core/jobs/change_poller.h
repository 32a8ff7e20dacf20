// Asks a shared storage for the changes that other nodes make: the end of a job that a caller waits for here, new
// chunks and attempts of a job that is streamed here, and queued jobs for the workers here. A storage does not report
// changes, and nodes do not talk to each other.
//
// The cost is bounded on both sides. Callers that wait are noticed at once, and all their jobs are asked for with one
// question for each 500, every 20 ms, but at most for a fifth of the time; the pause after a slow question is a second
// at most. Queues are asked for every 500 ms, and every 20 ms for 2 s after jobs were found that this node did not know
// of. On a storage for a single process the poller does nothing.
#pragma once

#include <atomic>
#include <cstdint>
#include <map>
#include <optional>
#include <thread>
#include <utility>

#include "core/base/service.h"
#include "core/jobs/completion_notifier.h"
#include "jobq/job.h"
#include "jobq/log.h"
#include "jobq/mutex.h"
#include "jobq/storage.h"
#include "jobq/time.h"

namespace jobq {

class QueueSignal;

/// Owner of the thread `changes`.
class ChangePoller final : public Service, private WaiterListener {
 public:
  /// Everything here outlives the poller.
  struct Deps {
    Storage& storage;
    CompletionNotifier& completions;
    QueueSignal& queueSignal;
    Clock& clock;
    Log& log;
  };
  /// Sets the listener of `completions` on a shared storage.
  explicit ChangePoller(const Deps& deps);
  ~ChangePoller() override { stop(); }

  void start() override;
  void stop() override;

  /// Asks the questions that are due, and returns the time of the next question. A failing storage is logged and asked
  /// again a second later. Called by one thread at a time; simulations call it instead of start().
  Instant poll();

 private:
  void loop();
  void waiterCame() override;
  void askForJobs();
  void announceChange(const AwaitedJob& awaited, const std::optional<JobSummary>& summary);
  void askForQueues();

  const Deps deps_;
  const bool isShared_;

  // Used by the polling thread.
  Instant jobsDueAt_{};
  Instant queuesDueAt_{};
  Instant quickUntil_{};  // queues are asked for more often until then
  /// Attempt and number of chunks of each streamed job at the last question.
  std::map<JobId, std::pair<std::uint32_t, std::uint64_t>> known_;

  Mutex mutex_;
  Condition changed_;
  bool stopping_ JOBQ_GUARDED_BY(mutex_) = false;
  bool waiterCame_ JOBQ_GUARDED_BY(mutex_) = false;
  std::thread thread_;
};

}  // namespace jobq
