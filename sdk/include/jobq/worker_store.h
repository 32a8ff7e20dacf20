// Store of the workers of all nodes. /health and the dynamic rate limits read the sums. The rules for every store are
// in storage.h. Planned: each node beats, and a list of nodes.
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

/// Numbers of workers by state (core/http/API.md, "/health").
struct WorkerCounts {
  std::uint32_t idle = 0;          ///< started, without a job
  std::uint32_t initializing = 0;  ///< starting
  std::uint32_t ready = 0;         ///< able to claim a job now
  std::uint32_t running = 0;       ///< holding a job
  std::uint32_t throttled = 0;     ///< wanted, but not startable now
  std::uint32_t unhealthy = 0;     ///< stuck in a handler that ignores its stop token; Planned: crashed

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

/// The workers of one endpoint at one node.
struct EndpointWorkers {
  EndpointId endpoint;
  WorkerCounts workers;
};

/// A node as the store knows the node.
struct NodeInfo {
  std::string node;
  Instant lastBeat{};  ///< moment of the last beat, on the storage's clock
  bool alive = false;  ///< the last beat is younger than kBeatLife
};

inline constexpr Millis kBeatLife{5'000};  ///< 5 s; Planned: nodes beat every second

/// Operations on the beats of nodes. The storage owns the store.
class JOBQ_VISIBLE WorkerStore : public abi::Versioned {
 public:
  virtual ~WorkerStore() = default;

  /// Replaces the earlier report of `node` with `workers`. An empty list means that the node has no worker. Repeatable.
  /// Planned: no caller yet.
  virtual void beat(std::string_view node, std::span<const EndpointWorkers> workers) = 0;

  /// Returns the sum of the workers of the endpoint over all nodes that are alive, except `exceptNode`: a node counts
  /// its own workers itself.
  [[nodiscard]] virtual WorkerCounts count(std::string_view endpoint, std::string_view exceptNode) = 0;

  /// Returns every known node by name. The store forgets a node a day after its last beat. Planned: no caller yet.
  [[nodiscard]] virtual std::vector<NodeInfo> nodes() = 0;
};

}  // namespace jobq
