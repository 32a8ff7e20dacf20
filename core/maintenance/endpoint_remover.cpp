#include "core/maintenance/endpoint_remover.h"

namespace jobq {
namespace {

constexpr std::size_t kRemovalBatch = 500;
constexpr int kBatches = 20;  // of one step: the sweeps come between

}  // namespace

void EndpointRemover::step() {
  for (const EndpointId& endpoint : deps_.leaving()) {
    // core/decisions/endpoints.md: its running jobs are stopped first.
    if (deps_.hasLeft(endpoint)) removeFrom(endpoint);
  }
}

void EndpointRemover::removeFrom(const EndpointId& endpoint) {
  // Asked first: a job that comes after the last look belongs to a call that has the endpoint in hand now.
  const bool inHand = deps_.isInHand(endpoint);
  std::size_t removed = kRemovalBatch;
  for (int i = 0; i < kBatches && removed == kRemovalBatch; ++i) {
    removed = deps_.jobs.remove(endpoint, kRemovalBatch);
    if (removed > 0) deps_.announceRemoved(endpoint);
  }
  if (removed < kRemovalBatch && !inHand) deps_.forget(endpoint);
}

}  // namespace jobq
