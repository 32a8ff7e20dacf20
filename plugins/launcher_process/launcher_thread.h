// The thread of the launcher: starts, watches and ends all workers.
#pragma once

#include <cstdint>
#include <filesystem>
#include <list>
#include <map>
#include <optional>
#include <string>
#include <thread>
#include <vector>

#include "jobq/log.h"
#include "jobq/worker_launcher.h"
#include "mailbox.h"
#include "worker_process.h"

struct pollfd;

namespace jobq::process {

/// The settings common to all workers.
struct LauncherPlan {
  std::filesystem::path guard;                   ///< path of jobq-guard
  std::filesystem::path directory;               ///< working directory of the workers
  std::string user;                              ///< the workers' user, in the form of userNumbersOf()
  std::filesystem::path logs;                    ///< folder of the logs
  std::uint64_t maxLog = 0;                      ///< bound of a log's file, in bytes
  std::map<std::string, std::string> variables;  ///< the server's variables for the workers
  std::string mark;                              ///< first part of the marks of all workers
};

/// Carries out the requests of a mailbox on a separate thread, and puts the exits into the mailbox.
class LauncherThread {
 public:
  /// `mailbox` and `log` outlive the object.
  LauncherThread(LauncherPlan plan, Mailbox& mailbox, Log& log);
  /// Kills the workers, and waits until all processes of the workers have ended.
  ~LauncherThread();
  LauncherThread(const LauncherThread&) = delete;
  LauncherThread& operator=(const LauncherThread&) = delete;

 private:
  void run();
  void awaitEvents();
  int millisecondsToDeadline() const;
  void followRequests();
  void start(WorkerLaunch launch);
  void readWorkers();
  void readOutputOf(WorkerProcess& worker);
  void finish(WorkerProcess& worker);

  const LauncherPlan plan_;
  Mailbox& mailbox_;
  Log& log_;
  std::list<WorkerProcess> workers_;  // of the thread
  bool isEnding_ = false;             // of the thread
  std::thread thread_;
};

}  // namespace jobq::process
