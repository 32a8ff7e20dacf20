// Contract of the launch of remote workers: a launcher runs a template's image as a process or container, whose worker
// takes its jobs over HTTP. The server decides when a worker starts and when it ends; the launcher carries that out.
#pragma once

#include <cstdint>
#include <map>
#include <optional>
#include <string>
#include <vector>

#include "jobq/error.h"
#include "jobq/job.h"
#include "jobq/plugin.h"
#include "jobq/time.h"
#include "jobq/worker_output.h"

namespace jobq {

/// The fields of a template that say how its workers run (core/http/API.md, "Template").
struct ContainerSpec {
  std::string image;
  std::vector<std::string> entrypoint;  ///< program and first arguments; empty: that of the image
  std::vector<std::string> command;     ///< further arguments; empty: those of the image
  std::vector<std::string> ports;       ///< "8888/http", "22/tcp"
  std::int64_t diskInGb = 0;            ///< space of the container's own files, in GiB; 0: no bound
  std::int64_t volumeInGb = 0;          ///< space of the volume, in GiB; 0: no volume
  std::string volumeMountPath;          ///< absolute path of the volume in the container
  std::string registryAuthId;           ///< name of the credentials for the image's registry; empty: none
};

/// A worker to start.
struct WorkerLaunch {
  WorkerId worker;  ///< name of 1 to 64 letters, digits and '-', never used twice
  EndpointId endpoint;
  ContainerSpec container;
  /// The template's variables, with those of a worker: the addresses of its calls, its id and its key. The key is a
  /// secret: the launcher writes it to no log.
  std::map<std::string, std::string> env;
  std::uint32_t gpuCount = 0;  ///< GPUs of the worker; 0: the worker needs none
  /// The ids of the worker's GPUs, which no other worker of the server has. Empty although `gpuCount` is above 0: the
  /// server has no list of GPUs, and the launcher gives the worker any GPUs, or none where the launcher cannot.
  std::vector<std::string> gpus{};
};

/// The end of a worker.
struct WorkerExit {
  WorkerId worker;
  bool isFailure = false;  ///< it could not be started, or ended with a code other than 0 or by a signal
  std::string reason;      ///< a clause in plain words, such as "it ended with exit code 1: no module named torch"
};

/// A launcher plugin. All functions return within a second: waits for programs and other servers belong to threads of
/// the launcher. Any thread may call fault(); the other functions are called by a single thread at a time. The
/// destructor kills the workers that are left, and returns when they have ended. A launcher whose server died without
/// the destructor ends the workers with it, or, at the latest, when the next server with the same data directory
/// creates its launcher. The conformance suite sdk/testkit/launcher_suite.h checks this contract for each launcher.
class JOBQ_VISIBLE WorkerLauncher : public Plugin {
 public:
  static constexpr PluginKind kKind = PluginKind::workerLauncher;

  /// Returns a sentence with the remedy if the launcher cannot run such a container at all; otherwise no value. The
  /// answer depends on the arguments and the settings only. Throws only std::bad_alloc.
  virtual std::optional<std::string> fault(const ContainerSpec& container) const = 0;

  /// Begins the start of a worker. Every worker appears in collectExits() once: a failed start is an exit with the
  /// reason. Throws only std::bad_alloc, and starts nothing then.
  virtual void start(WorkerLaunch launch) = 0;

  /// Asks the worker to end (SIGTERM), and kills it if it has not ended when `grace` has passed since this call. A
  /// later call may shorten the time and never extends it. A worker that has not begun yet does not begin. An unknown
  /// worker is ignored. Throws only std::bad_alloc.
  virtual void stop(const WorkerId& worker, Millis grace) = 0;

  /// Returns the workers that have ended since the last call, with all processes that they had started. Throws only
  /// std::bad_alloc.
  virtual std::vector<WorkerExit> collectExits() = 0;

  /// Returns what the workers have written to their standard output and standard error since the last call. Of much
  /// output the newest part is enough, as OutputBuffer keeps it. The call after the collectExits() that returned a
  /// worker has the rest of the output of that worker. Throws only std::bad_alloc.
  virtual std::vector<WorkerOutput> collectOutput() = 0;
};

}  // namespace jobq
