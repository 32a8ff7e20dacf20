#include "memory_stores.h"

namespace jobq::memory {
namespace {

constexpr Millis kForgetAfter{86'400'000};

}  // namespace

void Workers::forgetOld() {
  const Instant now = clock_.now();
  std::erase_if(beats_, [now](const auto& entry) { return entry.second.at + kForgetAfter <= now; });
}

void Workers::beat(std::string_view node, std::span<const EndpointWorkers> workers) {
  Lock lock(mutex_);
  beats_.insert_or_assign(std::string(node), Beat{clock_.now(), {workers.begin(), workers.end()}});
  forgetOld();
}

WorkerCounts Workers::count(std::string_view endpoint, std::string_view exceptNode) {
  Lock lock(mutex_);
  WorkerCounts sum;
  for (const auto& [node, beat] : beats_) {
    if (node == exceptNode || beat.at + kBeatLife <= clock_.now()) continue;
    for (const EndpointWorkers& workers : beat.workers) {
      if (workers.endpoint == endpoint) sum += workers.workers;
    }
  }
  return sum;
}

std::vector<NodeInfo> Workers::nodes() {
  Lock lock(mutex_);
  forgetOld();
  std::vector<NodeInfo> nodes;
  for (const auto& [node, beat] : beats_) nodes.push_back({node, beat.at, beat.at + kBeatLife > clock_.now()});
  return nodes;
}

}  // namespace jobq::memory
