// Random arguments of the operations on runs, for the player of random operations.
#pragma once

#include <cstddef>
#include <cstdint>
#include <vector>

#include "jobq/call_id.h"
#include "jobq/holder.h"
#include "jobq/job.h"
#include "jobq/job_store.h"
#include "jobq/lease_store.h"
#include "jobq/queue_policy.h"
#include "jobq/storage.h"
#include "random_operations.h"

namespace jobq::model {

/// The lease of an unknown job.
inline const LeaseRef kNobodys{"nobody", 1};

/// Bytes that make a body too large for a row of SQLite (256 KB).
inline constexpr std::size_t kLargeFiller = 270'000;

/// Claims jobs, in half of the calls within a bound. Returns the jobs.
std::vector<ClaimedJob> claimJobs(LeaseStore& leases, const std::vector<ClaimWant>& wants, const Holder& holder,
                                  CallId id, const Operation& operation);

/// Reads the job, and reads its bodies within a bound.
void readJob(JobStore& jobs, const JobKey& key, std::uint32_t choice);

/// Loses the worker of `lease`, now and then named twice, and in a third of the calls the workers of the last jobs too.
void lose(LeaseStore& leases, const LeaseRef& lease, const std::vector<LeaseRef>& known, const Operation& operation);

/// Inserts the job with the first attempt, ended in two thirds of the calls. The storage has
/// Capability::insertBegun.
void insertBegun(Storage& storage, const JobSpec& job, const QueuePolicy& policy, const Holder& holder,
                 const Operation& operation);

/// Reads the job `id` out of `jobs` in two thirds of the calls: a shown end must be durable from then on.
void showEnd(Storage& storage, const std::vector<JobKey>& jobs, const JobId& id, std::uint32_t choice);

}  // namespace jobq::model
