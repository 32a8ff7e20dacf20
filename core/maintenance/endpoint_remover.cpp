#include "core/maintenance/endpoint_remover.h"

namespace jobq {
namespace {

constexpr std::size_t kRemovalBatch = 500;
constexpr int kBatches = 20;  // in a step, so that sweeps come between

}  // namespace

void EndpointRemover::step() {
  for (const EndpointId& endpoint : endpoints_.leaving()) {
    // The running jobs are stopped first (core/decisions/endpoints.md).
    if (activity_.hasNoActiveWorkers(endpoint)) removeFrom(endpoint);
  }
}

void EndpointRemover::removeFrom(const EndpointId& endpoint) {
  // Asked before the removal: a job inserted after the last batch belongs to a call that holds the endpoint now.
  const bool inUse = endpoints_.isInUse(endpoint);
  std::size_t removed = kRemovalBatch;
  for (int i = 0; i < kBatches && removed == kRemovalBatch; ++i) {
    removed = jobs_.remove(endpoint, kRemovalBatch);
    if (removed > 0) activity_.announceRemoved(endpoint);
  }
  if (removed < kRemovalBatch && !inUse) endpoints_.forget(endpoint);
}

}  // namespace jobq
