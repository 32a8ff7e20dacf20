// The start of one container: create, pull a missing image, start.
#pragma once

#include <atomic>
#include <optional>
#include <string>
#include <utility>

#include "container_body.h"
#include "engine.h"
#include "jobq/log.h"
#include "registry_auths.h"
#include "worker_table.h"

namespace jobq::docker {

/// Any thread, many starts at once. The arguments of the constructor outlive the object.
class ContainerStarter {
 public:
  ContainerStarter(Engine& engine, WorkerTable& table, const RegistryAuths& auths, ContainerTerms terms, Log& log)
      : engine_(engine), table_(table), auths_(auths), terms_(std::move(terms)), log_(log) {}

  /// Starts the worker and blocks until the worker runs, or until the start has failed; a pull takes minutes. The table
  /// then has the result. A worker is queued again while another thread pulls the image.
  void startWorker(const ClaimedLaunch& claimed);

 private:
  /// The creation of a container, which may take several calls.
  struct Creation {
    bool boundsDisk = true;  // the last call asked for a size of the disk
    bool wasPulled = false;
  };

  bool createsAgain(const ClaimedLaunch& claimed, const EngineFault& fault, Creation& creation);
  bool pullsImage(const ClaimedLaunch& claimed);
  void startContainer(const ClaimedLaunch& claimed, const std::string& container);
  void failStart(const ClaimedLaunch& claimed, const EngineFault& fault, bool mayHaveContainer);
  void noteUnboundDisk(const EngineFault& fault);

  Engine& engine_;
  WorkerTable& table_;
  const RegistryAuths& auths_;
  const ContainerTerms terms_;
  Log& log_;
  std::atomic<bool> hasUnboundDisk_{false};
};

}  // namespace jobq::docker
