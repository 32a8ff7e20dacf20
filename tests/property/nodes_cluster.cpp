#include "nodes_cluster.h"

#include <algorithm>
#include <utility>

namespace jobq::model {
namespace {

constexpr Millis kStep{250};
constexpr Millis kLongestOffset{3'600'000};

/// A node without a beat for a longer time may be late with its fence if the node stands still.
constexpr Millis kFresh{9'000};
/// Time for the handlers to obey.
constexpr Millis kObeyed{5'000};

}  // namespace

NodeHost::NodeHost(NodesWorld& world, Passage& passage, std::string name, Millis offset)
    : world_(world),
      passage_(passage),
      name_(std::move(name)),
      clock_(world.time, offset),
      storage_(*world.storage, wire_) {}

void NodeHost::start() {
  if (process_) return;
  wire_.open();
  clock_.restart();
  pause_.reset();
  excusedSince_.reset();
  excusedUntil_ = world_.time.now();
  world_.judge.handlers.excuse(name_, excusedUntil_);
  process_ = std::make_unique<NodeProcess>(world_, name_, clock_, storage_, ++processes_);
  try {
    process_->start();
  } catch (const StorageError&) {  // the process ends with the error
    die();
  }
}

void NodeHost::stop() {
  if (process() == nullptr) return;
  process_->stop();
  wire_.close();
}

void NodeHost::crash() {
  if (process_) die();
}

void NodeHost::die() {
  if (wire_.isClosed()) return;
  wire_.close();
  world_.judge.handlers.nodeDied(name_);
}

void NodeHost::removeDead() {
  if (wire_.isClosed()) process_.reset();
}

NodeProcess* NodeHost::process() {
  return process_ && !wire_.isClosed() && !pause_ && !standsStill_ ? process_.get() : nullptr;
}

void NodeHost::cut(Millis time, std::string operation) {
  wire_.cut(std::move(operation));
  cutUntil_ = world_.time.now() + time;
}

void NodeHost::heal() {
  cutUntil_.reset();
  wire_.mend();
  if (!pause_) return;
  const Pause ended = *std::exchange(pause_, std::nullopt);
  endPause(ended.isSuspended, world_.time.now() - ended.begunAt);
}

void NodeHost::pause(Millis time, bool isSuspended) {
  if (process() == nullptr) return;
  const Instant now = world_.time.now();
  pause_ = Pause{now, now + time, isSuspended};
  beginPause();
}

void NodeHost::passDuringPause(Millis time) {
  standsStill_ = true;
  beginPause();
  passage_.pass(time);
  standsStill_ = false;
  endPause(false, time);
}

void NodeHost::beginPause() {
  ++world_.judge.findings.played.pauses;
  world_.judge.handlers.excuse(name_, Instant::max());
}

// A node with a beat shortly before fences its runs in time. Any other node is excused until the node could notice.
void NodeHost::endPause(bool isSuspended, Millis paused) {
  if (isSuspended) clock_.standStill(paused);
  const Instant now = world_.time.now();
  const bool isLate = isSuspended || world_.judge.lives.sinceBeat(name_) > kFresh;
  if (isLate && !excusedSince_) excusedSince_ = now;
  if (excusedUntil_ > now - paused) excusedUntil_ += paused;  // the handlers have had no time to obey
  world_.judge.handlers.excuse(name_, excusedSince_ ? Instant::max() : std::max(excusedUntil_, now));
}

// The excuse ends after a fence or a beat of the node, and the time for the handlers to obey.
void NodeHost::noteExcuse() {
  if (!excusedSince_) return;
  const Instant now = world_.time.now();
  const bool hasBeaten = now - world_.judge.lives.sinceBeat(name_) >= *excusedSince_;
  if (!hasBeaten && !process_->life().isFenced()) return;
  excusedSince_.reset();
  world_.judge.handlers.excuse(name_, Instant::max());  // also for the handlers that have begun meanwhile
  excusedUntil_ = now + kObeyed;
  world_.judge.handlers.excuse(name_, excusedUntil_);
}

void NodeHost::beforeCall(std::string_view operation) {
  if (operation == "leases.claim" && process_->life().isFenced())
    world_.judge.findings.note("a fenced node claims: " + name_);
}

void NodeHost::step(Millis passed) {
  const Instant now = world_.time.now();
  if (cutUntil_ && now >= *cutUntil_) {
    cutUntil_.reset();
    wire_.mend();
  }
  if (pause_ && now >= pause_->endsAt) {
    const Pause ended = *std::exchange(pause_, std::nullopt);
    endPause(ended.isSuspended, now - ended.begunAt);
    // A handler may return before any thread that keeps the lease runs.
    if (process() != nullptr && world_.chance(2) == 0) process_->workers().finish(world_.chance(8), true);
  }
  if (process() == nullptr) return;
  clock_.follow(passed);
  process_->step();
  noteExcuse();
}

Cluster::Cluster(NodesWorld& world, std::size_t nodes) : world_(world) {
  const auto minutes = static_cast<std::uint32_t>(kLongestOffset / std::chrono::minutes(1));
  for (std::size_t i = 0; i < nodes; ++i) {
    const Millis offset = std::chrono::minutes(world.chance(2 * minutes)) - kLongestOffset;
    hosts_.push_back(std::make_unique<NodeHost>(world, *this, "node" + std::to_string(i), i == 0 ? Millis(0) : offset));
  }
  for (const auto& host : hosts_) host->start();
}

void Cluster::pass(Millis time) {
  for (; time > Millis(0); time -= kStep) {
    world_.time.advance(kStep);
    world_.random.restart(world_.time.now());
    const std::size_t first = world_.chance(static_cast<std::uint32_t>(hosts_.size()));
    for (std::size_t i = 0; i < hosts_.size(); ++i) host(first + i).step(kStep);
    world_.judge.handlers.check();
  }
}

void Cluster::removeDead() {
  for (const auto& host : hosts_) host->removeDead();
}

}  // namespace jobq::model
