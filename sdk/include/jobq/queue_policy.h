// Room 5 (registry): which waiting job is next. A policy only numbers jobs; the storage keeps the line.
#pragma once

#include <cstdint>
#include <optional>
#include <string>

#include "jobq/error.h"
#include "jobq/job.h"
#include "jobq/plugin.h"
#include "jobq/time.h"

namespace jobq {

/// What a policy may know of the line when it ranks a job. Read and written inside the storage's insert step, so that
/// fair shares hold on any backend with any number of nodes.
struct GroupState {
  std::optional<std::int64_t> lastRank;       ///< rank given last in this job's group at this endpoint
  std::optional<std::int64_t> lowestWaiting;  ///< lowest rank waiting there in the job's class, lowPriority or not
};

/// Pure: the same arguments give the same answer, nothing is remembered, any thread. Storages call it inside a
/// transaction: no I/O, no locks, microseconds.
///
/// Under every policy the storage takes waiting jobs in the order (lowPriority, rank, arrival), lowest first.
class JOBQ_VISIBLE QueuePolicy : public Plugin {
 public:
  static constexpr PluginKind kKind = PluginKind::queuePolicy;

  /// The group whose share the job counts against. Empty: this policy needs no GroupState, and none is kept.
  virtual std::string group(const JobSpec& job) const = 0;

  /// Lower runs first. `now` is the storage's clock at the moment of the insert or the retry, and `job.policy.ttl` what
  /// is left of the job's time at that moment.
  virtual std::int64_t rank(const JobSpec& job, Instant now, const GroupState& state) const = 0;
};

}  // namespace jobq
