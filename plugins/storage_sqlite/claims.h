// The claim of queued jobs inside the writer's transaction.
#pragma once

#include <cstdint>
#include <vector>

#include "bodies/claimed_inputs.h"
#include "jobq/call_id.h"
#include "jobq/holder.h"
#include "jobq/job.h"
#include "jobq/lease_store.h"
#include "writes/step.h"

namespace jobq::sqlite {

/// Columns with the same values for all jobs of one call of claim().
struct ClaimMark {
  std::uint64_t holder;
  CallId id;
};

/// The claim of a job at its insert.
struct FirstClaim {
  WorkerId worker;
  ClaimMark mark;
};

/// Returns whether the life of the holder goes on.
bool isAlive(Step& step, const Holder& holder);

/// Claims jobs from the head of the queue for the workers of `want`, as far as `bound` has room for their inputs, and
/// appends the jobs to `claimed`.
void claimFor(Step& step, const ClaimWant& want, const ClaimMark& mark, InputBound& bound, std::vector<Claim>& claimed);

/// Returns the running job with the number `num` as a claim returns it. Throws SqliteError if the row of its input is
/// lost.
Claim claimedJob(Step& step, std::int64_t num);

}  // namespace jobq::sqlite
