// Parts of the store of leases without statements.
#pragma once

#include <compare>
#include <cstdint>
#include <string_view>
#include <variant>

#include "jobq/job.h"
#include "jobq/lease_store.h"
#include "jobq/transitions.h"

namespace jobq::sql {

/// An outcome as a change of state. The bytes belong to the caller.
struct Report {
  Trigger trigger = Trigger::complete;
  std::string_view error;
  std::string_view output;
};

/// Returns the report of the outcome, which outlives the report. Pure; any thread.
inline Report reportOf(const Outcome& outcome) {
  if (const auto* failed = std::get_if<Failed>(&outcome)) return {Trigger::fail, failed->error, failed->output};
  return {Trigger::complete, {}, std::get<Completed>(outcome).output};
}

/// Returns the state of a lease of the attempt `attempt`, on a job in `state` and in the attempt `current`. Pure.
constexpr LeaseState leaseStateOf(std::uint32_t attempt, JobState state, std::uint32_t current) {
  if (current != attempt) return LeaseState::takenOver;
  switch (state) {
    case JobState::inProgress: return LeaseState::held;
    case JobState::cancelled: return LeaseState::cancelled;
    case JobState::timedOut: return LeaseState::timedOut;
    default: return LeaseState::takenOver;
  }
}

/// The position of a queued job among the jobs of its endpoint: the columns that order the claims.
struct QueuePlace {
  std::int64_t low = 0;
  std::int64_t rank = 0;
  std::int64_t arrival = 0;

  auto operator<=>(const QueuePlace&) const = default;
};

}  // namespace jobq::sql
