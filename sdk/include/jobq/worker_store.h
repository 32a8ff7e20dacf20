// Storage, face 5: which workers the nodes have. Feeds /health, dynamic rate limits and the list of nodes.
#pragma once

#include <cstdint>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "jobq/abi_version.h"
#include "jobq/error.h"
#include "jobq/job.h"
#include "jobq/time.h"

namespace jobq {

/// The counters of /health (wire.md section 3).
struct WorkerCounts {
  std::uint32_t idle = 0;          ///< started, without a job
  std::uint32_t initializing = 0;  ///< starting
  std::uint32_t ready = 0;         ///< able to take a job now
  std::uint32_t running = 0;       ///< holding a job
  std::uint32_t throttled = 0;     ///< wanted, but not startable now
  std::uint32_t unhealthy = 0;     ///< crashed, or reported unhealthy

  WorkerCounts& operator+=(const WorkerCounts& other) noexcept {
    idle += other.idle;
    initializing += other.initializing;
    ready += other.ready;
    running += other.running;
    throttled += other.throttled;
    unhealthy += other.unhealthy;
    return *this;
  }
  bool operator==(const WorkerCounts&) const = default;
};

struct EndpointWorkers {
  EndpointId endpoint;
  WorkerCounts workers;
};

struct NodeInfo {
  std::string node;
  Instant lastBeat{};
  bool alive = false;  ///< beat within kBeatLife
};

inline constexpr Millis kBeatLife{5'000};  ///< nodes beat every second

class JOBQ_VISIBLE WorkerStore : public abi::Versioned {
 public:
  virtual ~WorkerStore() = default;

  /// Replaces everything that `node` said before. An empty list says that it has no worker.
  virtual void beat(std::string_view node, std::span<const EndpointWorkers> workers) = 0;

  /// The sum over the nodes that are alive, but `exceptNode`: a node knows its own workers better.
  [[nodiscard]] virtual WorkerCounts count(std::string_view endpoint, std::string_view exceptNode) = 0;

  /// Every node that ever beat and was not forgotten (a day after its last beat), by name.
  [[nodiscard]] virtual std::vector<NodeInfo> nodes() = 0;
};

}  // namespace jobq
