#include "core/workers/remote/remote_offers.h"

#include <algorithm>
#include <utility>

namespace jobq {
namespace {

constexpr std::size_t kFew = 1'000;

}  // namespace

void RemoteOffers::offer(const EndpointId& endpoint, const std::shared_ptr<RemoteTake>& take,
                         std::vector<WorkerId> places) {
  if (addToPool(endpoint, *take, places)) return;
  Lock lock(mutex_);
  if (refused_.size() >= std::max(looksAt_, kFew)) {
    std::erase_if(refused_, [](const Refused& each) { return each.take.expired(); });
    looksAt_ = 2 * refused_.size();
  }
  take->refused = std::move(places);
  refused_.push_back({endpoint, take});
}

void RemoteOffers::offerAgain() {
  std::vector<std::pair<EndpointId, std::shared_ptr<RemoteTake>>> parked;
  {
    Lock lock(mutex_);
    std::erase_if(refused_, [](const Refused& each) {
      const auto take = each.take.lock();
      return !take || take->refused.empty();
    });
    for (const Refused& each : refused_) {
      if (auto take = each.take.lock()) parked.emplace_back(each.endpoint, std::move(take));
    }
  }
  for (const auto& [endpoint, take] : parked) {
    if (take->isOver || addToPool(endpoint, *take, take->refused)) take->refused.clear();
  }
}

// Returns false if the pool refuses the places, and the call may still be parked.
bool RemoteOffers::addToPool(const EndpointId& endpoint, const RemoteTake& take, const std::vector<WorkerId>& places) {
  const bool areAdded = pools_.addWorkers(endpoint, places);
  if (!take.isOver) return areAdded;
  // The call has ended before the places were in the pool, so the end of the call has not removed the places.
  RemotePools::Places idle;
  for (const WorkerId& place : places) idle.emplace_back(endpoint, place);
  pools_.removeIdleWorkers(idle);
  return true;
}

}  // namespace jobq
