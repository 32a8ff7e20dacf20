// The start of one container: create, pull a missing image, start.
#pragma once

#include <atomic>
#include <optional>
#include <string>
#include <utility>

#include "container_body.h"
#include "engine.h"
#include "jobq/log.h"
#include "output_follower.h"
#include "registry_auths.h"
#include "worker_table.h"

namespace jobq::docker {

/// Any thread may call the method, also for many starts at once. The arguments of the constructor outlive the object.
class ContainerStarter {
 public:
  ContainerStarter(Engine& engine, WorkerTable& table, OutputFollower& outputs, const RegistryAuths& auths,
                   ContainerTerms terms, Log& log)
      : engine_(engine), table_(table), outputs_(outputs), auths_(auths), terms_(std::move(terms)), log_(log) {}

  /// Starts the worker. The call blocks until the worker runs or the start has failed, and a pull takes minutes. If
  /// another thread pulls the image already, the worker goes back to the queue and the call returns. The table has the
  /// result.
  void startWorker(const ClaimedLaunch& claimed);

 private:
  /// The state of one creation, which may take several calls of Docker.
  struct Creation {
    bool boundsDisk = true;  // the last call asked for a limit of the container's disk
    bool wasPulled = false;  // a missing image was pulled once already
  };

  /// Both return true if the creation is to be tried again, and false if the start is over for this thread.
  bool prepareAnotherTry(const ClaimedLaunch& claimed, const EngineFault& fault, Creation& creation);
  bool pullImage(const ClaimedLaunch& claimed);
  void startContainer(const ClaimedLaunch& claimed, const std::string& container);
  void failStart(const ClaimedLaunch& claimed, const EngineFault& fault, bool mayHaveContainer);
  void noteNoDiskLimit(const EngineFault& fault);

  Engine& engine_;
  WorkerTable& table_;
  OutputFollower& outputs_;
  const RegistryAuths& auths_;
  const ContainerTerms terms_;
  Log& log_;
  // The storage driver of Docker knows no limit of a disk; found at the first refused creation.
  std::atomic<bool> cannotLimitDisk_{false};
};

}  // namespace jobq::docker
