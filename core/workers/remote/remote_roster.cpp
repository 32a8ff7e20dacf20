#include "core/workers/remote/remote_roster.h"

namespace jobq {
namespace {

constexpr std::size_t kMostWorkers = 10'000;
constexpr std::size_t kReserved = 1'000;  ///< the last places are for endpoints with fewer workers than kReserved
constexpr std::size_t kMostLooks = 256;   ///< workers in a search for a place
constexpr std::size_t kMostRemembered = 10'000;  ///< endpoints above which endpoints without a worker are forgotten

}  // namespace

RemoteWorker* RemoteRoster::find(const RemoteWorkerKey& key) {
  const auto found = workers_.find(key);
  return found == workers_.end() ? nullptr : &found->second;
}

RemoteWorker* RemoteRoster::add(const RemoteWorkerKey& key) {
  if (!hasPlaceFor(key.endpoint)) removeUnused();
  if (!hasPlaceFor(key.endpoint)) return nullptr;
  ++workersOf_[key.endpoint];
  return &workers_[key];
}

bool RemoteRoster::hasPlaceFor(const EndpointId& endpoint) const {
  if (workers_.size() < kMostWorkers - kReserved) return true;
  const auto present = workersOf_.find(endpoint);
  return workers_.size() < kMostWorkers && (present == workersOf_.end() || present->second < kReserved);
}

// The search continues after the place where the last search ended. Repeated searches find each unused worker, and a
// search among workers in use costs no more.
void RemoteRoster::removeUnused() {
  auto at = workers_.upper_bound(lastLook_);
  for (std::size_t looks = 0; looks < kMostLooks; ++looks, ++at) {
    if (at == workers_.end()) at = workers_.begin();
    lastLook_ = at->first;
    if (!at->second.isUnused()) continue;
    erase(at);
    return;
  }
}

RemoteRoster::Workers::iterator RemoteRoster::erase(Workers::iterator worker) {
  const EndpointId& endpoint = worker->first.endpoint;
  if (--workersOf_[endpoint] == 0 && workersOf_.size() > kMostRemembered) {
    std::erase_if(workersOf_, [&](const auto& entry) { return entry.second == 0 && entry.first != endpoint; });
  }
  return workers_.erase(worker);
}

}  // namespace jobq
