// The workers of an endpoint on this node, as shown in responses.
#pragma once

#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "core/endpoints/endpoint.h"
#include "jobq/job.h"
#include "jobq/time.h"

namespace jobq {

/// A worker, as copied at one moment.
struct WorkerView {
  WorkerId id;
  std::string_view state;  ///< starting, idle, running, stuck or leaving
  Instant startedAt{};
  ReleasePtr release;
  std::string reason{};  ///< of an unhealthy remote worker, as the worker names the reason
};

/// The reader of a sentence about workers. The last line that a worker printed, and the paths of the machine, are for
/// administrators only.
enum class AdviceReader { administrator, client };

/// All workers of an endpoint on this node, as copied at one moment.
struct WorkerPoolView {
  std::vector<WorkerView> workers;
  bool rolling = false;  ///< some workers have an older release
  bool halted = false;   ///< the newest release does not start
  std::optional<std::string>
      fault;  ///< reason of the last failed start; nullopt after a new release or a start of the newest release
};

}  // namespace jobq
