// A job that runs before the insert, for tests.
#pragma once

#include <memory>

#include "core/jobs/deferred_insert.h"
#include "jobq/job.h"
#include "jobq/storage.h"
#include "unit_storage.h"

namespace jobq::test {

inline JobSpec briefJob(const JobId& id) {
  JobSpec job;
  job.id = id;
  job.endpoint = "ep";
  job.input = "{}";
  return job;
}

inline std::shared_ptr<DeferredInsert> makeInsert(UnitStorage& storage, const JobId& id) {
  return std::make_shared<DeferredInsert>(*storage, storage.clock, briefJob(id), storage.policy,
                                          Begun{"w", storage.life->holder()});
}

}  // namespace jobq::test
