#include "cluster.h"

#include <algorithm>
#include <array>
#include <utility>

#include "../../fault/disk.h"

namespace jobq::model {
namespace {

constexpr Millis kStep{250};
constexpr Millis kLongestOffset{3'600'000};

/// A node without a beat for a longer time may be late with its fence if the node stands still.
constexpr Millis kFresh{9'000};
/// Time for the handlers to obey.
constexpr Millis kObeyed{5'000};

}  // namespace

Host::Host(World& world, Cluster& cluster, std::string name, Millis offset)
    : world_(world), cluster_(cluster), name_(std::move(name)), clock_(world.time, offset) {}

void Host::start() {
  if (process_) return;
  wire_.open();
  clock_.restart();
  pause_.reset();
  excusedSince_.reset();
  excusedUntil_ = world_.time.now();
  world_.rules.handlers.excuse(name_, excusedUntil_);
  try {
    if (world_.plan.isShared()) {
      storage_.emplace(world_.storage(), &wire_);
    } else {
      world_.open(clock_);
    }
    Storage& storage = world_.plan.isShared() ? *storage_ : world_.storage();
    process_ = std::make_unique<Process>(world_, name_, clock_, storage, ++processes_);
    process_->start();
  } catch (const StorageError& error) {  // the process ends with the error
    world_.failed(error);
    die();
  }
}

void Host::stop() {
  if (process() == nullptr) return;
  process_->stop();
  wire_.close();
}

void Host::crash() {
  if (process_) die();
}

void Host::die() {
  if (wire_.isClosed()) return;
  wire_.close();
  world_.rules.handlers.nodeDied(name_);
}

// A starting machine may have another time of day.
void Host::recover() {
  if (world_.isCut()) die();
  constexpr std::array kDrifts{0, 0, 0, -3'600'000, -2'000, 2'000, 3'600'000};
  while (wire_.isClosed() && world_.rules.findings.found.empty()) {
    process_.reset();
    if (world_.plan.isShared()) return;
    world_.close();
    clock_.stepHost(Millis(kDrifts[world_.chance(kDrifts.size())]));
    start();
  }
}

Process* Host::process() {
  return process_ && !wire_.isClosed() && !pause_ && !standsStill_ ? process_.get() : nullptr;
}

void Host::cut(Millis time, std::string operation) {
  wire_.cut(std::move(operation));
  cutUntil_ = world_.time.now() + time;
}

void Host::heal() {
  cutUntil_.reset();
  wire_.mend();
  if (pause_) {
    const Pause ended = *std::exchange(pause_, std::nullopt);
    endPause(ended.isSuspended, world_.time.now() - ended.begunAt);
  }
  if (world_.plan.losesPower()) {
    fault::Disk::instance().cutAt(0);
    try {
      world_.storage().check();
    } catch (const StorageError& error) {
      world_.failed(error);
    }
    recover();
  }
  start();
}

void Host::pause(Millis time, bool isSuspended) {
  if (process() == nullptr) return;
  const Instant now = world_.time.now();
  pause_ = Pause{now, now + time, isSuspended};
  beginPause();
}

void Host::passDuringCall(Millis time, bool standsStill) {
  if (!standsStill) return cluster_.pass(time);
  standsStill_ = true;
  beginPause();
  cluster_.pass(time);
  standsStill_ = false;
  endPause(false, time);
}

void Host::beginPause() {
  ++world_.rules.findings.played["pauses"];
  world_.rules.handlers.excuse(name_, Instant::max());
}

// A node with a beat shortly before fences its runs in time. Any other node is excused until the node could notice.
void Host::endPause(bool isSuspended, Millis paused) {
  if (isSuspended) clock_.standStill(paused);
  const Instant now = world_.time.now();
  const bool isLate = isSuspended || world_.rules.lives.sinceBeat(name_) > kFresh;
  if (isLate && !excusedSince_) excusedSince_ = now;
  if (excusedUntil_ > now - paused) excusedUntil_ += paused;  // the handlers have had no time to obey
  world_.rules.handlers.excuse(name_, excusedSince_ ? Instant::max() : std::max(excusedUntil_, now));
}

// The excuse ends after a fence or a beat of the node, and the time for the handlers to obey.
void Host::noteExcuse() {
  if (!excusedSince_) return;
  const Instant now = world_.time.now();
  const bool hasBeaten = now - world_.rules.lives.sinceBeat(name_) >= *excusedSince_;
  if (!hasBeaten && !process_->life().isFenced()) return;
  excusedSince_.reset();
  world_.rules.handlers.excuse(name_, Instant::max());  // also for the handlers that have begun meanwhile
  excusedUntil_ = now + kObeyed;
  world_.rules.handlers.excuse(name_, excusedUntil_);
}

void Host::beforeCall(std::string_view operation) {
  if (operation == "leases.claim" && process_->life().isFenced())
    world_.rules.findings.note("a fenced node claims: " + name_);
}

// The clock of the calling node decides for one twin.
void Host::enterStorage(bool inside) {
  if (world_.plan.twin != Twin::hostClock) return;
  inside ? world_.storageClock.show(clock_) : world_.storageClock.restart();
}

void Host::step(Millis passed) {
  const Instant now = world_.time.now();
  if (cutUntil_ && now >= *cutUntil_) {
    cutUntil_.reset();
    wire_.mend();
  }
  if (pause_ && now >= pause_->endsAt) {
    const Pause ended = *std::exchange(pause_, std::nullopt);
    endPause(ended.isSuspended, now - ended.begunAt);
    // A handler may return before any thread that keeps the lease runs.
    if (process() != nullptr && world_.chance(2) == 0) process_->workers().finish(world_.chance(8), outcomeOf(1));
  }
  if (process() == nullptr) return;
  clock_.follow(passed);
  process_->step();
  noteExcuse();
}

Cluster::Cluster(World& world, std::size_t nodes) : world_(world) {
  const auto minutes = static_cast<std::uint32_t>(kLongestOffset / std::chrono::minutes(1));
  for (std::size_t i = 0; i < nodes; ++i) {
    const Millis offset = std::chrono::minutes(world.chance(2 * minutes)) - kLongestOffset;
    hosts_.push_back(std::make_unique<Host>(world, *this, "node" + std::to_string(i), i == 0 ? Millis(0) : offset));
  }
  for (const auto& host : hosts_) host->start();
}

void Cluster::pass(Millis time) {
  if (!world_.plan.isShared()) {
    host(0).running().inserts().storeAll();  // by the timer, in the first milliseconds
    world_.time.advance(time);
    return world_.random.restart(world_.time.now());
  }
  for (; time > Millis(0); time -= kStep) {
    world_.time.advance(kStep);
    world_.random.restart(world_.time.now());
    const std::size_t first = world_.chance(static_cast<std::uint32_t>(hosts_.size()));
    for (std::size_t i = 0; i < hosts_.size(); ++i) host(first + i).step(kStep);
    world_.rules.handlers.check();
  }
}

}  // namespace jobq::model
