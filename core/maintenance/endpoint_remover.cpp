#include "core/maintenance/endpoint_remover.h"

#include <algorithm>

namespace jobq {
namespace {

constexpr std::size_t kRemovalBatch = 500;
constexpr int kBatches = 20;  // in a step, so that sweeps come between

}  // namespace

void EndpointRemover::step() {
  const std::vector<EndpointId> leaving = deps_.endpoints.leaving();
  std::erase_if(seen_, [&](const auto& seen) { return !std::ranges::binary_search(leaving, seen.first); });
  const Instant now = deps_.clock.now();
  for (const EndpointId& endpoint : leaving) {
    if (now < seen_.try_emplace(endpoint, now).first->second + settle_) continue;
    // The running jobs are stopped first (core/decisions/endpoints.md).
    if (deps_.activity.hasNoActiveWorkers(endpoint)) removeFrom(endpoint);
  }
}

void EndpointRemover::removeFrom(const EndpointId& endpoint) {
  // Asked before the removal: a job inserted after the last batch belongs to a call that holds the endpoint now.
  const bool inUse = deps_.endpoints.isInUse(endpoint);
  std::size_t removed = kRemovalBatch;
  for (int i = 0; i < kBatches && removed == kRemovalBatch; ++i) {
    removed = deps_.jobs.remove(endpoint, kRemovalBatch);
    if (removed > 0) deps_.activity.announceRemoved(endpoint);
  }
  if (removed < kRemovalBatch && !inUse) deps_.endpoints.forget(endpoint);
}

}  // namespace jobq
