// Contract of queue policies: a policy decides the order of the queued jobs of an endpoint. A policy computes only the
// rank of a job; the storage keeps the queue.
#pragma once

#include <cstdint>
#include <optional>
#include <string>

#include "jobq/error.h"
#include "jobq/job.h"
#include "jobq/plugin.h"
#include "jobq/time.h"

namespace jobq {

/// State of the queue for a job's group, as a policy sees the group. The storage reads and writes the state inside the
/// step of the insert, so fair shares hold with any storage and any number of nodes.
struct GroupState {
  /// Last rank given to a job of the group at the endpoint.
  std::optional<std::int64_t> lastRank;
  /// Lowest queued rank at the endpoint in the job's class, lowPriority or normal.
  std::optional<std::int64_t> lowestWaiting;
};

/// A pure function from jobs to ranks: equal arguments give equal results, and a policy remembers nothing between
/// calls. Any thread may call, many at once. Storages call a policy inside a transaction: no I/O, no locks,
/// microseconds.
///
/// Under every policy the storage claims queued jobs in the order (lowPriority, rank, arrival), lowest first.
class JOBQ_VISIBLE QueuePolicy : public Plugin {
 public:
  static constexpr PluginKind kKind = PluginKind::queuePolicy;

  /// Returns the group against whose share the job counts. An empty string means that the policy needs no GroupState,
  /// and the storage then keeps no state.
  virtual std::string group(const JobSpec& job) const = 0;

  /// Returns the rank of the job; the lowest rank runs first. `now` is the storage's clock at the moment of the insert
  /// or the retry. At that moment `job.policy.ttl` is the rest of the job's time to live. `state` is the state of the
  /// group, and empty if group() returned an empty string.
  virtual std::int64_t rank(const JobSpec& job, Instant now, const GroupState& state) const = 0;
};

}  // namespace jobq
