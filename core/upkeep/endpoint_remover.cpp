#include "core/upkeep/endpoint_remover.h"

namespace jobq {
namespace {

constexpr std::size_t kBatch = 500;
constexpr int kBatches = 20;  // of one step: the sweeps come between

}  // namespace

void EndpointRemover::step() {
  for (const EndpointId& endpoint : rooms_.leaving()) {
    // decisions.md, "Templates and endpoints": its running jobs are stopped first.
    if (rooms_.hasLeft(endpoint)) removeFrom(endpoint);
  }
}

void EndpointRemover::removeFrom(const EndpointId& endpoint) {
  std::size_t removed = kBatch;
  for (int i = 0; i < kBatches && removed == kBatch; ++i) {
    removed = rooms_.jobs.remove(endpoint, kBatch);
    if (removed > 0) rooms_.announceRemoved(endpoint);
  }
  if (removed < kBatch) rooms_.forget(endpoint);
}

}  // namespace jobq
