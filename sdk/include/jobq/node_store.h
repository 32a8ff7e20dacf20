// Store of nodes: the lives of nodes, on which all leases depend, and the workers of each node. The rules for every
// store are in storage.h.
//
// A node is a server with a name. A life of a node begins with join() and is the holder of the jobs that the node
// claims. The life ends
//  - by leave();
//  - by a join() of the same name;
//  - on a storage of a single process (Storage::leaseLife() is empty): by any join();
//  - on a shared storage: by a sweep(), when the last beat is Storage::leaseLife() old.
// A life that has ended stays ended. The leases of a life end with the life: the next sweep() takes back its jobs.
//
// A storage that no node could reach must not end the lives of all nodes. Therefore a time without any beat or join
// counts as kBeatGap at most: a sweep ends lives only if a life has beaten or begun within the last kBeatGap, and the
// first beat or join after a longer time moves the end of each life by that time minus kBeatGap.
#pragma once

#include <cstdint>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "jobq/abi_version.h"
#include "jobq/error.h"
#include "jobq/holder.h"
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

/// A node as the store knows the node: its last life.
struct NodeInfo {
  std::string name;
  std::uint64_t epoch = 0;
  Millis sinceBeat{0};   ///< time since join() or the last beat
  bool isAlive = false;  ///< the life has not ended
};

/// Answer of NodeStore::beat().
enum class BeatResult {
  extended,  ///< the life goes on
  ended,     ///< the life has ended; the node may begin a new life with join()
  replaced   ///< another life of the same name has begun since; two servers use the same name
};

/// A time without any beat or join above this bound counts as a failure of the storage, not of the nodes.
inline constexpr Millis kBeatGap{3'000};

/// Operations on nodes. The storage owns the store.
class JOBQ_VISIBLE NodeStore : public abi::Versioned {
 public:
  virtual ~NodeStore() = default;

  /// Begins a life of the node `name`, at most 64 bytes, without workers. Returns the holder with an epoch greater than
  /// every epoch before. `culprit` is Planned: the job whose run ended the process of the former life; every storage
  /// refuses the value (planned.h). Repeatable, but for the epoch: a repeated call ends the life of the call before and
  /// begins another.
  [[nodiscard]] virtual Holder join(std::string_view name, const std::optional<JobKey>& culprit = {}) = 0;

  /// Moves the end of the life to leaseLife() from now, and replaces the earlier report of the life's workers with
  /// `workers`. An empty list means that the node has no worker. Changes nothing if the life has ended. Returns
  /// extended, ended or replaced. Repeatable: a repeated call moves the end again. Unsynced.
  [[nodiscard]] virtual BeatResult beat(const Holder& holder, std::span<const EndpointWorkers> workers) = 0;

  /// Ends the life. The node has released its jobs before; the next sweep() takes back any that is left. Repeatable:
  /// the life has ended already.
  virtual void leave(const Holder& holder) = 0;

  /// Returns the sum of the workers of the endpoint over all lives that have not ended, except the lives of the node
  /// `exceptNode`: a node counts its own workers itself.
  [[nodiscard]] virtual WorkerCounts count(std::string_view endpoint, std::string_view exceptNode) = 0;

  /// Returns every known node with its last life, by name. The store forgets a node a day after its last beat.
  [[nodiscard]] virtual std::vector<NodeInfo> nodes() = 0;
};

}  // namespace jobq
