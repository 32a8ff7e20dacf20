// The output of the running containers, followed with one thread for each container: Docker sends the output of a
// container on one connection that stays open.
#pragma once

#include <map>
#include <stop_token>
#include <string>
#include <thread>

#include "engine.h"
#include "jobq/job.h"
#include "jobq/mutex.h"
#include "jobq/time.h"
#include "jobq/worker_output.h"

namespace jobq::docker {

/// Any thread, except as noted. The arguments of the constructor outlive the object.
class OutputFollower {
 public:
  OutputFollower(Engine& engine, OutputBuffer& outputs) : engine_(engine), outputs_(outputs) {}
  ~OutputFollower() { stop(); }
  OutputFollower(const OutputFollower&) = delete;
  OutputFollower& operator=(const OutputFollower&) = delete;

  /// Begins to follow the container of the worker. Without a further thread the output of the worker is not followed.
  void follow(const WorkerId& worker, const std::string& container) JOBQ_EXCLUDES(mutex_);
  /// Waits for the rest of the output of a container that has ended, at most for kRest, and ends the thread.
  void finish(const WorkerId& worker) JOBQ_EXCLUDES(mutex_);
  /// Ends all threads. Afterwards follow() does nothing.
  void stop() JOBQ_EXCLUDES(mutex_);

 private:
  static constexpr Millis kRest{2'000};

  struct Follower {
    std::stop_source stop{};
    bool hasEnded = false;
    std::thread thread{};
  };

  void followContainer(const WorkerId& worker, const std::string& container, const std::stop_token& stop)
      JOBQ_EXCLUDES(mutex_);
  void wakeAll() JOBQ_EXCLUDES(mutex_);
  void noteEnd(const WorkerId& worker) JOBQ_EXCLUDES(mutex_);

  Engine& engine_;
  OutputBuffer& outputs_;
  Mutex mutex_;
  Condition ended_;
  bool isStopped_ JOBQ_GUARDED_BY(mutex_) = false;
  std::map<WorkerId, Follower> follower_ JOBQ_GUARDED_BY(mutex_);
};

}  // namespace jobq::docker
