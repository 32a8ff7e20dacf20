// The launcher that runs workers as containers of Docker.
//
// Threads: some start containers, because a pull takes minutes; one looks at the containers; one sends signals, because
// a signal must not wait for a look; each running container has one for its output. All share the table of workers, and
// no thread holds a lock during a call of Docker.
#pragma once

#include <cstddef>
#include <optional>
#include <stop_token>
#include <string>
#include <thread>
#include <utility>
#include <vector>

#include "container_starter.h"
#include "container_watcher.h"
#include "engine.h"
#include "jobq/job.h"
#include "jobq/log.h"
#include "jobq/mutex.h"
#include "jobq/plugin.h"
#include "jobq/time.h"
#include "jobq/worker_launcher.h"
#include "jobq/worker_output.h"
#include "options.h"
#include "output_follower.h"
#include "registry_auths.h"
#include "worker_table.h"

namespace jobq::docker {

class DockerLauncher final : public WorkerLauncher {
 public:
  using Options = docker::Options;

  /// Throws ConfigError, Error, std::bad_alloc, and std::system_error if there are no more threads.
  explicit DockerLauncher(const PluginEnv& env);
  /// Takes 15 s at most, even if Docker does not answer.
  ~DockerLauncher() override;

  static std::vector<CheckResult> probe(const PluginEnv& env);

  std::optional<std::string> fault(const ContainerSpec& container) const override;
  void start(WorkerLaunch launch) override { table_.addLaunch(std::move(launch)); }
  void stop(const WorkerId& worker, Millis grace) override { table_.stopWorker(worker, grace); }
  std::vector<WorkerExit> collectExits() override { return table_.collectExits(); }
  std::vector<WorkerOutput> collectOutput() override { return outputs_.drain(); }

 private:
  void startWorkers();
  void watchWorkers();
  void sendSignals();
  void runThread(void (DockerLauncher::*work)());
  void endThreads();

  const Options options_;
  const RegistryAuths auths_;
  const std::string server_;
  Log& log_;
  std::stop_source stop_;  // ends the calls of the threads
  Engine engine_;
  WorkerTable table_;
  OutputBuffer outputs_;
  OutputFollower follower_{engine_, outputs_};
  ContainerStarter starter_;
  ContainerWatcher watcher_;
  Mutex mutex_;
  Condition threadEnded_;
  std::size_t running_ JOBQ_GUARDED_BY(mutex_) = 0;  // threads
  std::vector<std::thread> threads_;                 // last: the threads use all other members
};

}  // namespace jobq::docker
