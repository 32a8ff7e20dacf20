// The JSON text with which a container is created.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>

#include "engine_text.h"
#include "jobq/worker_launcher.h"

namespace jobq::docker {

/// Terms of a container beside its template.
struct ContainerTerms {
  std::string server;                  ///< value of the label kServerLabel
  std::string network;                 ///< empty: the default network of Docker
  bool boundsDisk = true;              ///< the storage driver of the daemon knows a size
  GpuRequest gpus = GpuRequest::byId;  ///< the daemon's ways to GPUs
  std::uint64_t shm = 0;               ///< size of /dev/shm in bytes; 0: the default of Docker
  std::uint64_t memory = 0;            ///< most bytes of memory; 0: no bound
  std::int64_t pids = 0;               ///< most processes and threads; 0: no bound
};

/// Returns a sentence about a field with a value impossible for a container, or no value. Pure.
std::optional<std::string> faultOf(const ContainerSpec& container);

/// Returns the body of the call that creates the worker's container; `launch.container` has no fault. Pure.
std::string containerBody(const WorkerLaunch& launch, const ContainerTerms& terms);

/// Returns the name of the volume of an endpoint. Pure.
std::string volumeNameOf(std::string_view server, std::string_view endpoint);

}  // namespace jobq::docker
