// The requests to the thread of the launcher, and the exits and outputs reported by the thread.
#pragma once

#include <vector>

#include "jobq/file_descriptor.h"
#include "jobq/job.h"
#include "jobq/mutex.h"
#include "jobq/worker_launcher.h"
#include "jobq/worker_output.h"
#include "worker_process.h"

namespace jobq::process {

/// Any thread may call.
class Mailbox {
 public:
  struct Stop {
    WorkerId worker;
    SteadyTime latest;  ///< moment at which the worker is killed
  };
  struct Requests {
    std::vector<WorkerLaunch> starts;
    std::vector<Stop> stops;  ///< stops of workers that are not in `starts`, known or unknown
    bool isEnding = false;    ///< all workers are to be killed
  };

  /// Throws ConfigError if the system has no descriptor left.
  Mailbox();

  void addStart(WorkerLaunch launch) JOBQ_EXCLUDES(mutex_);
  /// A worker whose start was not drained yet gets an exit instead of a start.
  void addStop(const WorkerId& worker, SteadyTime latest) JOBQ_EXCLUDES(mutex_);
  void end() JOBQ_EXCLUDES(mutex_);
  /// Returns the new requests.
  Requests drainRequests() JOBQ_EXCLUDES(mutex_);
  /// Readable if there are new requests.
  int descriptor() const { return signal_.number(); }

  void addExit(WorkerExit exit) JOBQ_EXCLUDES(mutex_);
  std::vector<WorkerExit> drainExits() JOBQ_EXCLUDES(mutex_);

  /// The output of the workers, for the server.
  OutputBuffer& outputs() { return outputs_; }

 private:
  void wake();

  const FileDescriptor signal_;
  Mutex mutex_;
  Requests requests_ JOBQ_GUARDED_BY(mutex_);
  std::vector<WorkerExit> exits_ JOBQ_GUARDED_BY(mutex_);
  OutputBuffer outputs_;
};

}  // namespace jobq::process
