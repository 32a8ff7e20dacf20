// Values of the storage contract that no storage uses yet. A storage refuses them, so that no caller loses a value.
#pragma once

#include <optional>
#include <span>

#include "jobq/error.h"
#include "jobq/job.h"
#include "jobq/job_store.h"
#include "jobq/lease_store.h"
#include "jobq/time.h"

namespace jobq {

/// Throws StorageError if the submission has a planned value.
inline void refusePlanned(const JobSpec& job, const InsertTerms& terms = {}) {
  if (job.delay > Millis(0) || job.retry || !job.traceparent.empty() || terms.onlyIf) {
    throw StorageError("job " + job.id + " has a value that this storage does not know yet: a delay, retries, a " +
                       "traceparent, or a condition on a record");
  }
}

/// Throws StorageError if the end of an attempt has a planned value.
inline void refusePlanned(std::span<const EndedAttempt> ends) {
  for (const EndedAttempt& end : ends) {
    if (end.tryAgainAfter) throw StorageError("this storage cannot retry job " + end.lease.job + " by itself yet");
  }
}

/// Throws StorageError if NodeStore::join() names a culprit.
inline void refusePlanned(const std::optional<JobKey>& culprit) {
  if (culprit) throw StorageError("this storage cannot blame job " + culprit->id + " for the end of a node yet");
}

}  // namespace jobq
