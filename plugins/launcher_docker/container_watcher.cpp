#include "container_watcher.h"

#include <algorithm>
#include <optional>
#include <set>
#include <utility>
#include <variant>

#include "container_end.h"

namespace jobq::docker {
namespace {

constexpr const char* kVanished = "it ended, because another program removed its container";

bool hasEnded(const ListedContainer& container) { return container.state == "exited" || container.state == "dead"; }

// Paused and restarting containers have processes. A container under removal may have processes, too.
bool mayRun(const ListedContainer& container) { return !hasEnded(container) && container.state != "created"; }

}  // namespace

void ContainerWatcher::watchContainers() {
  if (!isConnected_) {
    const auto version = engine_.connect();
    if (const auto* fault = std::get_if<EngineFault>(&version)) return noteFault(*fault);
    engine_.readGpuRequest();
    isConnected_ = true;
  }
  // Read before the list: a worker of the set without a container in the list has lost the container.
  const std::set<WorkerId> watched = table_.watchedWorkers();
  const auto listed = engine_.listContainers(server_);
  if (const auto* fault = std::get_if<EngineFault>(&listed)) return noteFault(*fault);
  noteAnswer();
  const auto& containers = std::get<std::vector<ListedContainer>>(listed);
  watchListed(containers);
  for (const WorkerId& worker : watched) {
    const bool isListed = std::any_of(containers.begin(), containers.end(),
                                      [&worker](const ListedContainer& each) { return each.worker == worker; });
    const auto ended = isListed ? std::nullopt : table_.findWatched(worker);
    if (!ended) continue;
    outputs_.finish(worker);
    table_.endWorker(worker, ended->isRunning || ended->isFailure, ended->isRunning ? kVanished : ended->reason);
  }
}

void ContainerWatcher::watchListed(const std::vector<ListedContainer>& containers) {
  bool isClear = true;
  for (const ListedContainer& container : containers) isClear = watchContainer(container) && isClear;
  if (isOpen_ || !isClear) return;
  isOpen_ = true;
  table_.openLaunches();
}

bool ContainerWatcher::watchContainer(const ListedContainer& container) {
  if (!table_.contains(container.worker)) return removeLeftover(container);
  const auto worker = table_.findWatched(container.worker);
  if (!worker) return true;  // the start is under way
  if (!worker->isRunning) {
    endFailed(container, *worker);
  } else if (hasEnded(container)) {
    endRunning(container, *worker);
  }
  return true;
}

bool ContainerWatcher::removeLeftover(const ListedContainer& container) {
  const auto fault = engine_.removeContainer(container.id);
  if (!fault) return true;
  if (!stubborn_.insert(container.id).second) return !mayRun(container);
  log_.write(LogLevel::warning, "launcher.leftover",
             "the container of the former worker " + container.worker + " cannot be removed: " + fault->reason +
                 "; remove it with `docker rm --force " + container.id + "`");
  return !mayRun(container);
}

void ContainerWatcher::endFailed(const ListedContainer& container, const WatchedWorker& worker) {
  // The answer to the start may have been lost, so the container may run until its removal.
  if (engine_.removeContainer(container.id)) return;
  outputs_.finish(container.worker);
  table_.endWorker(container.worker, worker.isFailure, worker.reason);
}

void ContainerWatcher::endRunning(const ListedContainer& container, const WatchedWorker& worker) {
  const auto end = engine_.readEnd(container.id);
  const auto* state = std::get_if<EndedState>(&end);
  if (state == nullptr) return;  // the next look sees an absent container, or asks again
  const std::string lastLine = state->exitCode == 0 ? std::string() : engine_.readLastLine(container.id);
  outputs_.finish(container.worker);
  // A container whose removal fails has no worker at the next look, and is removed then.
  (void)engine_.removeContainer(container.id);
  table_.endWorker(container.worker, state->exitCode != 0, reasonOfEnd(*state, lastLine, worker.wasKilled));
}

void ContainerWatcher::noteFault(const EngineFault& fault) {
  isConnected_ = false;
  if (!isOpen_) table_.failQueued("it could not be started: " + fault.reason);
  if (std::exchange(isFailing_, true)) return;
  log_.write(LogLevel::warning, "launcher.unreachable",
             fault.reason +
                 "; no worker starts, and no end of a worker is seen, until Docker answers: start Docker, and "
                 "let this user open its socket");
}

void ContainerWatcher::noteAnswer() {
  if (!std::exchange(isFailing_, false)) return;
  log_.write(LogLevel::information, "launcher.reachable", "Docker answers again; workers are started and watched");
}

}  // namespace jobq::docker
