#include "core/workers/remote_offers.h"

#include <utility>

namespace jobq {

void RemoteOffers::offer(const EndpointId& endpoint, const std::shared_ptr<RemoteTake>& take,
                         const std::vector<WorkerId>& places) {
  const bool areAdded = pools_.addWorkers(endpoint, places);
  if (!take->isOver) {
    if (areAdded) return;
    Lock lock(mutex_);
    refused_.push_back({endpoint, take, places});
    return;
  }
  // The call has ended before its places were in the pool, where its end has not found them.
  RemotePools::Places idle;
  for (const WorkerId& place : places) idle.emplace_back(endpoint, place);
  pools_.removeIdleWorkers(idle);
}

void RemoteOffers::offerAgain() {
  std::vector<Refused> refused;
  {
    Lock lock(mutex_);
    refused.swap(refused_);
  }
  for (const Refused& each : refused) {
    if (const auto take = each.take.lock(); take && !take->isOver) offer(each.endpoint, take, each.places);
  }
}

}  // namespace jobq
