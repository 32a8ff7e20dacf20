#include "core/maintenance/endpoint_remover.h"

namespace jobq {
namespace {

constexpr std::size_t kRemovalBatch = 500;
constexpr int kBatches = 20;  // of one step: the sweeps come between

}  // namespace

void EndpointRemover::step() {
  for (const EndpointId& endpoint : rooms_.leaving()) {
    // core/decisions/endpoints.md: its running jobs are stopped first.
    if (rooms_.hasLeft(endpoint)) removeFrom(endpoint);
  }
}

void EndpointRemover::removeFrom(const EndpointId& endpoint) {
  // Asked first: a job that comes after the last look belongs to a call that has the endpoint in hand now.
  const bool inHand = rooms_.isInHand(endpoint);
  std::size_t removed = kRemovalBatch;
  for (int i = 0; i < kBatches && removed == kRemovalBatch; ++i) {
    removed = rooms_.jobs.remove(endpoint, kRemovalBatch);
    if (removed > 0) rooms_.announceRemoved(endpoint);
  }
  if (removed < kRemovalBatch && !inHand) rooms_.forget(endpoint);
}

}  // namespace jobq
