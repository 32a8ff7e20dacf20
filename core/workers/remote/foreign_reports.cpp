#include "core/workers/remote/foreign_reports.h"

#include <algorithm>
#include <cstddef>
#include <memory>

#include "core/jobs/run_reports.h"

namespace jobq {
namespace {

constexpr Millis kKeptLife{60'000};  ///< without a report
constexpr std::size_t kMostKept = 1'000;

}  // namespace

AttemptReportsPtr ForeignReports::find(const RemoteWorkerKey& key, const JobId& job) {
  if (!deps_.storage.leaseLife() || remote_.isStopped(key, job)) return nullptr;
  const auto found = deps_.storage.jobs().find({key.endpoint, job}, 0);
  if (!found || found->state != JobState::inProgress || !isPlaceOf(found->workerId, key.worker)) {
    return nullptr;
  }
  remote_.noteReporter(key);
  Lock lock(mutex_);
  const Instant now = deps_.clock.now();
  dropOld(now);
  Kept& kept = foreign_[{key.endpoint, job}];
  if (!kept.reports || kept.reports->lease().attempt != found->attempt) {
    // The storage knows whether the job owes a webhook: the delivery looks.
    kept.reports = std::make_shared<AttemptReports>(deps_.reports, deps_.storage, key.endpoint,
                                                    LeaseRef{job, found->attempt}, true);
    kept.reports->resumeChunks();
  }
  kept.lastUsed = now;
  return kept.reports;
}

void ForeignReports::loseJob(const LeaseRef& lease) { deps_.reports.giveBack({&lease, 1}, true); }

void ForeignReports::dropOld(Instant now) {
  std::erase_if(foreign_, [now](const auto& kept) { return now >= kept.second.lastUsed + kKeptLife; });
  if (foreign_.size() < kMostKept) return;
  foreign_.erase(std::ranges::min_element(foreign_, {}, [](const auto& kept) { return kept.second.lastUsed; }));
}

}  // namespace jobq
