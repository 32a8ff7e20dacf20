#include "core/workers/remote/remote_returns.h"

#include <algorithm>
#include <exception>
#include <iterator>
#include <string>

#include "core/jobs/run_reports.h"

namespace jobq {

void RemoteReturns::add(const std::vector<LeaseRef>& lost, const std::vector<LeaseRef>& unharmed) {
  Lock lock(mutex_);
  lost_.insert(lost_.end(), lost.begin(), lost.end());
  unharmed_.insert(unharmed_.end(), unharmed.begin(), unharmed.end());
}

void RemoteReturns::store() noexcept {
  std::vector<LeaseRef> lost;
  std::vector<LeaseRef> unharmed;
  {
    Lock lock(mutex_);
    lost.swap(lost_);
    unharmed.swap(unharmed_);
  }
  try {
    reports_.giveBack(unharmed, false);
    unharmed.clear();
    reports_.giveBack(lost, true);
    for (const LeaseRef& lease : lost) {
      log_.write(LogLevel::warning, "remote.lost", "a remote worker has lost " + lease.job);
    }
  } catch (const std::exception& error) {
    log_.write(LogLevel::error, "remote.storage",
               std::string("the jobs of lost remote workers cannot be returned yet: ") + error.what());
    Lock lock(mutex_);
    lost_.insert(lost_.end(), lost.begin(), lost.end());
    unharmed_.insert(unharmed_.end(), unharmed.begin(), unharmed.end());
  }
}

}  // namespace jobq
