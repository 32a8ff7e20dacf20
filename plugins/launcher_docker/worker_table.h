// The workers of a launcher from start() to collectExits(), without any call of Docker.
//
//   start() -> queued -> starting -> running -> ended
//                 |         |           |
//                 |         +-> failed -+    failed: a container may be left, which is removed first
//                 +------------------------> ended
#pragma once

#include <chrono>
#include <cstdint>
#include <map>
#include <optional>
#include <set>
#include <stop_token>
#include <string>
#include <vector>

#include "jobq/job.h"
#include "jobq/mutex.h"
#include "jobq/time.h"
#include "jobq/worker_launcher.h"

namespace jobq::docker {

/// A worker to start now. `stop` fires when the worker shall not begin any more.
struct ClaimedLaunch {
  WorkerLaunch launch;
  std::stop_token stop;
  std::uint64_t endedPulls = 0;  ///< number of pulls ended before the claim of the worker
};

/// A failed start.
struct FailedStart {
  bool isFailure = true;  ///< false: the worker was stopped before the start
  std::string reason;
  bool mayHaveContainer = false;
};

/// A worker whose container is watched.
struct WatchedWorker {
  bool isRunning = false;  ///< false: the start failed, and a leftover container is removed
  bool isFailure = true;   ///< of a failed start
  std::string reason;      ///< of a failed start
  bool wasKilled = false;  ///< the container got SIGKILL after the time to end
};

/// A signal to send.
struct DueSignal {
  WorkerId worker;
  std::string container;
  bool isKill = false;  ///< SIGKILL; otherwise SIGTERM
};

/// Any thread. Functions named await... block; after close() the functions return at once, without a value.
class WorkerTable {
 public:
  using Clock = std::chrono::steady_clock;

  /// Adds a worker at the end of the queue.
  void addLaunch(WorkerLaunch launch);
  /// Has the effect of WorkerLauncher::stop().
  void stopWorker(const WorkerId& worker, Millis grace);
  std::vector<WorkerExit> collectExits();

  /// Lets awaitLaunch() return workers. Before the call all workers wait.
  void openLaunches();
  /// Waits for the first worker of the queue whose image is not pulled by another thread; the worker is then starting.
  std::optional<ClaimedLaunch> awaitLaunch();
  /// Returns true if the caller is to pull the image of the starting worker, and calls endPull() afterwards. Otherwise
  /// another thread pulls the image, or has ended a pull since the claim, and the worker is queued again.
  bool beginPull(const ClaimedLaunch& claimed);
  void endPull(const std::string& image);
  /// Marks a starting worker as running.
  void markRunning(const WorkerId& worker, std::string container);
  /// Marks a starting worker as failed, or as ended if there can be no container.
  void endStart(const WorkerId& worker, FailedStart failed);
  /// Ends all queued workers.
  void failQueued(const std::string& reason);

  /// Waits for the next look at the containers: a second, or less while a worker is about to end. Returns false after
  /// close().
  bool awaitPass();
  /// Returns the workers with a certain or possible container, except starting workers.
  std::set<WorkerId> watchedWorkers() const;
  /// Returns true if the worker has not ended yet.
  bool contains(const WorkerId& worker) const;
  /// Returns no value for an unwatched worker.
  std::optional<WatchedWorker> findWatched(const WorkerId& worker) const;
  void endWorker(const WorkerId& worker, bool isFailure, std::string reason);

  /// Waits for due signals.
  std::vector<DueSignal> awaitSignals();
  /// Notes whether Docker has passed on the signal; otherwise a later attempt follows.
  void noteSignal(const DueSignal& signal, bool isSent);

  /// Stops the starts, and ends all waits.
  void close();

 private:
  enum class Phase { queued, starting, running, failed };

  struct Entry {
    Phase phase = Phase::queued;
    std::uint64_t place = 0;  // in the queue
    WorkerLaunch launch;      // moved away by a start
    std::stop_source stop{};
    std::string container{};
    bool isFailure = true;
    std::string reason{};
    std::optional<Clock::time_point> killAt{};  // moment of the kill, for a worker asked to end
    Clock::time_point signalAt{};               // when the next signal is due
    bool wasSignalled = false;                  // Docker has passed on a signal, SIGTERM or SIGKILL
    bool wasKilled = false;                     // Docker has passed on a SIGKILL
  };

  std::map<WorkerId, Entry>::iterator findQueued() JOBQ_REQUIRES(mutex_);

  mutable Mutex mutex_;
  Condition launchWanted_;
  Condition passWanted_;
  Condition signalWanted_;
  bool isOpen_ JOBQ_GUARDED_BY(mutex_) = false;
  bool isClosed_ JOBQ_GUARDED_BY(mutex_) = false;
  bool isPassWanted_ JOBQ_GUARDED_BY(mutex_) = false;
  std::uint64_t lastPlace_ JOBQ_GUARDED_BY(mutex_) = 0;
  std::map<WorkerId, Entry> entries_ JOBQ_GUARDED_BY(mutex_);
  std::set<std::string> pulls_ JOBQ_GUARDED_BY(mutex_);  // images
  std::uint64_t endedPulls_ JOBQ_GUARDED_BY(mutex_) = 0;
  std::vector<WorkerExit> exits_ JOBQ_GUARDED_BY(mutex_);
};

}  // namespace jobq::docker
