// The lives and the workers of nodes.
#include <iterator>

#include "memory_lives.h"
#include "memory_stores.h"

namespace jobq::memory {
namespace {

constexpr Millis kForgetAfter{86'400'000};

}  // namespace

Lives::LifeRef Lives::endLife(LifeRef life) {
  mayHaveLostJobs_ = true;
  return alive_.erase(life);
}

// A time in which no node reached the storage counts as kBeatGap.
void Lives::noteBeat(Node& node, Instant now) {
  if (lastBeat_ + kBeatGap < now) {
    for (auto& [epoch, life] : alive_) life.endsAt += now - lastBeat_ - kBeatGap;
  }
  node.lastBeat = lastBeat_ = now;
}

Holder Lives::join(std::string_view name, Instant now) {
  for (auto at = alive_.begin(); at != alive_.end();) {
    at = !leaseLife_ || at->second.node == name ? endLife(at) : std::next(at);
  }
  forgetOld(now);
  Node& node = nodes_[std::string(name)];
  noteBeat(node, now);
  node.epoch = ++lastEpoch_;
  alive_[node.epoch] = {std::string(name), now + leaseLife_.value_or(Millis(0)), {}};
  return {std::string(name), node.epoch};
}

BeatResult Lives::beat(const Holder& holder, std::span<const EndpointWorkers> workers, Instant now) {
  const auto node = nodes_.find(holder.node);
  const auto life = alive_.find(holder.epoch);
  if (life == alive_.end()) {
    const bool replaced = node != nodes_.end() && node->second.epoch > holder.epoch;
    return replaced ? BeatResult::replaced : BeatResult::ended;
  }
  noteBeat(node->second, now);
  life->second.endsAt = now + leaseLife_.value_or(Millis(0));
  life->second.workers.assign(workers.begin(), workers.end());
  forgetOld(now);
  return BeatResult::extended;
}

void Lives::leave(const Holder& holder) {
  const auto life = alive_.find(holder.epoch);
  if (life != alive_.end()) endLife(life);
}

void Lives::endOverdue(Instant now) {
  if (!leaseLife_ || lastBeat_ + kBeatGap < now) return;
  for (auto at = alive_.begin(); at != alive_.end();) at = at->second.endsAt <= now ? endLife(at) : std::next(at);
}

void Lives::forgetOld(Instant now) {
  std::erase_if(nodes_, [&](const auto& entry) {
    return entry.second.lastBeat + kForgetAfter <= now && !isAlive(entry.second.epoch);
  });
}

WorkerCounts Lives::count(std::string_view endpoint, std::string_view exceptNode) const {
  WorkerCounts sum;
  for (const auto& [epoch, life] : alive_) {
    if (life.node == exceptNode) continue;
    for (const EndpointWorkers& workers : life.workers) {
      if (workers.endpoint == endpoint) sum += workers.workers;
    }
  }
  return sum;
}

std::vector<NodeInfo> Lives::nodes(Instant now) {
  forgetOld(now);
  std::vector<NodeInfo> nodes;
  for (const auto& [name, node] : nodes_) nodes.push_back({name, node.epoch, now - node.lastBeat, isAlive(node.epoch)});
  return nodes;
}

Holder Nodes::join(std::string_view name, const std::optional<JobKey>& culprit) {
  refusePlanned(culprit);
  Lock lock(s_.mutex);
  return s_.lives.join(name, s_.clock.now());
}

BeatResult Nodes::beat(const Holder& holder, std::span<const EndpointWorkers> workers) {
  Lock lock(s_.mutex);
  return s_.lives.beat(holder, workers, s_.clock.now());
}

void Nodes::leave(const Holder& holder) {
  Lock lock(s_.mutex);
  s_.lives.leave(holder);
}

WorkerCounts Nodes::count(std::string_view endpoint, std::string_view exceptNode) {
  Lock lock(s_.mutex);
  return s_.lives.count(endpoint, exceptNode);
}

std::vector<NodeInfo> Nodes::nodes() {
  Lock lock(s_.mutex);
  return s_.lives.nodes(s_.clock.now());
}

}  // namespace jobq::memory
