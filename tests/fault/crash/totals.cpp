#include "totals.h"

#include <algorithm>
#include <cstddef>

namespace jobq::fault {

void Totals::addAbsent(const JobHistory& job, const Sight* end, const Rules& rules) {
  if (job.plan.endpoint == rules.fleeting) {
    ++purged;
    return;
  }
  ++expired;
  unproven += end == nullptr ? 1 : 0;
}

void Totals::addEnd(const JobHistory& job, const Sight& end, const Rules& rules) {
  ++checked;
  retries += end.retries;
  const bool isLoss = end.state == JobState::failed && lossesIn(end.error);
  completed += end.state == JobState::completed ? 1 : 0;
  if (job.plan.endpoint != rules.fleeting) {
    counted += end.state == JobState::completed ? 1 : 0;
    countedRetries += end.retries;
  }
  failed += end.state == JobState::failed ? 1 : 0;
  cancelled += end.state == JobState::cancelled ? 1 : 0;
  const bool wasLost = std::any_of(job.sights.begin(), job.sights.end(), [](const Sight& sight) {
    return sight.state == JobState::failed && lossesIn(sight.error);
  });
  lost += wasLost ? 1 : 0;
  lostUnseen += wasLost && job.runs.empty() ? 1 : 0;
  if (!job.orders.empty()) return;  // without orders, each retry is a loss, and each loss a claim
  const std::size_t begunAndLost = job.runs.size() - (isLoss ? 0 : 1);
  neverBegan += end.retries - begunAndLost;
  for (std::size_t i = 0; i < begunAndLost; ++i) repeated += job.runs[i].end == Run::End::none ? 0 : 1;
}

}  // namespace jobq::fault
