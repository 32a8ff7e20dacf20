// One worker: the process, the log, and the moment of the kill.
#pragma once

#include <chrono>
#include <optional>
#include <string>

#include "guarded_process.h"
#include "jobq/job.h"
#include "jobq/worker_launcher.h"
#include "jobq/worker_output.h"
#include "last_line.h"
#include "worker_log.h"

namespace jobq::process {

/// Moments of real time, because the deadlines are for real processes.
using SteadyTime = std::chrono::steady_clock::time_point;

/// A guard ends within a second after the kill of its worker, even if the guard may not kill a process.
inline constexpr std::chrono::seconds kGuardTime{5};

/// A worker that has been started. The thread of the launcher uses the object.
class WorkerProcess {
 public:
  WorkerProcess(WorkerId worker, EndpointId endpoint, GuardedProcess process, ProcessLaunch launch, WorkerLog log);

  const WorkerId& worker() const { return worker_; }
  const EndpointId& endpoint() const { return endpoint_; }

  /// Sends SIGTERM, and kills the worker at `latest` unless an earlier moment is set.
  void stop(SteadyTime latest);
  /// Has the guard kill the worker. A guard that has not ended `kGuardTime` later is killed.
  void kill();
  /// Kills the worker or the guard if the moment has come.
  void checkDeadline(SteadyTime now);
  /// Returns the moment of the next kill. No value if no moment is set, or if the guard is killed already.
  std::optional<SteadyTime> deadline() const { return latest_; }

  int statusDescriptor() const { return process_.status().number(); }
  /// Returns the descriptor of the output, or -1 after the end of the output.
  int outputDescriptor() { return process_.output().number(); }

  /// Moves a part of the output to the log and to `outputs`. Returns 0, or errno of the first write that failed. Does
  /// not block.
  int readOutput(OutputBuffer& outputs);
  /// Reads the report of the guard. Returns true if the guard has ended. Does not block.
  bool readStatus();
  /// Returns the exit, after readStatus() has returned true. Kills the processes left by a killed guard, within half a
  /// second.
  WorkerExit finish();

 private:
  const WorkerId worker_;
  const EndpointId endpoint_;
  GuardedProcess process_;
  const ProcessLaunch launch_;
  WorkerLog log_;
  LastLine lastLine_;
  std::string report_;
  std::optional<SteadyTime> latest_;  // deadline of the worker, and after its kill the deadline of the guard
  bool isTerminated_ = false;
  bool isKilled_ = false;
  bool isLogBroken_ = false;
};

}  // namespace jobq::process
