#include "worker_table.h"

#include <algorithm>
#include <utility>

namespace jobq::docker {
namespace {

constexpr const char* kNeverBegan = "it was stopped before it began";
constexpr Millis kPause = std::chrono::seconds(1);
constexpr Millis kShortPause{200};  // while a worker is about to end
// The longest grace and the longest wait: the sum of a moment and a longer time may overflow.
constexpr Millis kLongestGrace = std::chrono::hours(24 * 365);

}  // namespace

void WorkerTable::addLaunch(WorkerLaunch launch) {
  Lock lock(mutex_);
  Entry entry;
  entry.place = ++lastPlace_;
  const WorkerId worker = launch.worker;
  entry.launch = std::move(launch);
  entries_.emplace(worker, std::move(entry));
  launchWanted_.notifyOne();
}

void WorkerTable::stopWorker(const WorkerId& worker, Millis grace) {
  const Clock::time_point now = Clock::now();
  std::stop_source startStop;
  {
    Lock lock(mutex_);
    const auto found = entries_.find(worker);
    if (found == entries_.end()) return;
    Entry& entry = found->second;
    if (entry.phase == Phase::queued) {
      exits_.push_back({worker, false, kNeverBegan});
      entries_.erase(found);
      return;
    }
    // A later call may shorten the time and never extends it. The first signal is due at once; afterwards the next
    // signal is due at `killAt` at the latest.
    const Clock::time_point killAt = now + std::min(grace, kLongestGrace);
    entry.killAt = std::min(entry.killAt.value_or(killAt), killAt);
    entry.signalAt = entry.wasSignalled ? std::min(entry.signalAt, *entry.killAt) : now;
    startStop = entry.stop;
    signalWanted_.notifyAll();
    passWanted_.notifyAll();  // awaitPass() then takes the short pause
  }
  // The stop source fires after the lock is free, because the callbacks of the starting thread run inside the call.
  startStop.request_stop();
}

std::vector<WorkerExit> WorkerTable::collectExits() {
  Lock lock(mutex_);
  return std::exchange(exits_, {});
}

void WorkerTable::openLaunches() {
  Lock lock(mutex_);
  isOpen_ = true;
  launchWanted_.notifyAll();
}

std::map<WorkerId, WorkerTable::Entry>::iterator WorkerTable::findQueued() {
  auto first = entries_.end();
  for (auto each = entries_.begin(); each != entries_.end(); ++each) {
    const Entry& entry = each->second;
    if (entry.phase != Phase::queued || pulls_.count(entry.launch.container.image) != 0) continue;
    if (first == entries_.end() || entry.place < first->second.place) first = each;
  }
  return first;
}

std::optional<ClaimedLaunch> WorkerTable::awaitLaunch() {
  Lock lock(mutex_);
  for (;;) {
    if (isClosed_) return std::nullopt;
    const auto found = isOpen_ ? findQueued() : entries_.end();
    if (found != entries_.end()) {
      Entry& entry = found->second;
      ClaimedLaunch claimed{std::move(entry.launch), entry.stop.get_token(), endedPulls_};
      entry.phase = Phase::starting;
      return claimed;
    }
    launchWanted_.wait(mutex_);
  }
}

bool WorkerTable::beginPull(const ClaimedLaunch& claimed) {
  Lock lock(mutex_);
  // The image is still missing if no pull has ended since the claim. After a pull, of any image, the worker is queued
  // again, and a further creation of the container is tried.
  const bool isStillMissing = claimed.endedPulls == endedPulls_;
  if (isStillMissing && pulls_.insert(claimed.launch.container.image).second) return true;
  Entry& entry = entries_.at(claimed.launch.worker);
  if (entry.killAt) {  // stopWorker() was called during the start
    exits_.push_back({claimed.launch.worker, false, kNeverBegan});
    entries_.erase(claimed.launch.worker);
    return false;
  }
  entry.launch = claimed.launch;  // awaitLaunch() has moved the launch away
  entry.phase = Phase::queued;
  return false;
}

void WorkerTable::endPull(const std::string& image) {
  Lock lock(mutex_);
  pulls_.erase(image);
  ++endedPulls_;
  launchWanted_.notifyAll();
}

void WorkerTable::markRunning(const WorkerId& worker, std::string container) {
  Lock lock(mutex_);
  Entry& entry = entries_.at(worker);
  entry.phase = Phase::running;
  entry.container = std::move(container);
  signalWanted_.notifyAll();
}

void WorkerTable::endStart(const WorkerId& worker, FailedStart failed) {
  Lock lock(mutex_);
  const auto found = entries_.find(worker);
  if (found == entries_.end()) return;  // the worker has ended already: a start that throws is reported again
  Entry& entry = found->second;
  if (!failed.mayHaveContainer) {
    exits_.push_back({worker, failed.isFailure, std::move(failed.reason)});
    entries_.erase(worker);
    return;
  }
  entry.phase = Phase::failed;
  entry.isFailure = failed.isFailure;
  entry.reason = std::move(failed.reason);
  isPassWanted_ = true;  // the next look removes a container that may be left
  passWanted_.notifyAll();
}

void WorkerTable::failQueued(const std::string& reason) {
  Lock lock(mutex_);
  for (auto each = entries_.begin(); each != entries_.end();) {
    if (each->second.phase != Phase::queued) {
      ++each;
      continue;
    }
    exits_.push_back({each->first, true, reason});
    each = entries_.erase(each);
  }
}

bool WorkerTable::awaitPass() {
  const Clock::time_point begin = Clock::now();
  Lock lock(mutex_);
  while (!isClosed_ && !isPassWanted_) {
    const bool isEnding =
        std::any_of(entries_.begin(), entries_.end(), [](const auto& each) { return each.second.killAt.has_value(); });
    const auto left = begin + (isEnding ? kShortPause : kPause) - Clock::now();
    if (left <= Clock::duration::zero()) break;
    passWanted_.waitFor(mutex_, left);
  }
  isPassWanted_ = false;
  return !isClosed_;
}

std::set<WorkerId> WorkerTable::watchedWorkers() const {
  Lock lock(mutex_);
  std::set<WorkerId> workers;
  for (const auto& [worker, entry] : entries_) {
    if (entry.phase == Phase::running || entry.phase == Phase::failed) workers.insert(worker);
  }
  return workers;
}

bool WorkerTable::contains(const WorkerId& worker) const {
  Lock lock(mutex_);
  return entries_.count(worker) != 0;
}

std::optional<WatchedWorker> WorkerTable::findWatched(const WorkerId& worker) const {
  Lock lock(mutex_);
  const auto found = entries_.find(worker);
  if (found == entries_.end()) return std::nullopt;
  const Entry& entry = found->second;
  if (entry.phase != Phase::running && entry.phase != Phase::failed) return std::nullopt;
  return WatchedWorker{entry.phase == Phase::running, entry.isFailure, entry.reason, entry.wasKilled};
}

void WorkerTable::endWorker(const WorkerId& worker, bool isFailure, std::string reason) {
  Lock lock(mutex_);
  exits_.push_back({worker, isFailure, std::move(reason)});
  entries_.erase(worker);
}

std::vector<DueSignal> WorkerTable::awaitSignals() {
  Lock lock(mutex_);
  std::vector<DueSignal> due;
  while (!isClosed_ && due.empty()) {
    const Clock::time_point now = Clock::now();
    Clock::time_point next = now + kLongestGrace;
    for (const auto& [worker, entry] : entries_) {
      if (entry.phase != Phase::running || !entry.killAt) continue;
      next = std::min(next, entry.signalAt);
      if (entry.signalAt <= now) due.push_back({worker, entry.container, *entry.killAt <= now});
    }
    if (due.empty()) signalWanted_.waitFor(mutex_, next - now);
  }
  return due;
}

void WorkerTable::noteSignal(const DueSignal& signal, bool isSent) {
  constexpr Millis kRepeated = std::chrono::seconds(1);
  Lock lock(mutex_);
  const auto found = entries_.find(signal.worker);
  if (found == entries_.end()) return;
  Entry& entry = found->second;
  entry.wasKilled = entry.wasKilled || (isSent && signal.isKill);
  entry.wasSignalled = entry.wasSignalled || isSent;
  // After a SIGTERM that Docker has passed on, the next signal is the SIGKILL at `killAt`. A signal that was not passed
  // on is sent again after a second. A SIGKILL is sent each second until the container has ended.
  const bool isTermination = isSent && !signal.isKill && entry.killAt;
  entry.signalAt = isTermination ? *entry.killAt : Clock::now() + kRepeated;
}

void WorkerTable::close() {
  std::vector<std::stop_source> starts;
  {
    Lock lock(mutex_);
    isClosed_ = true;
    for (const auto& each : entries_) starts.push_back(each.second.stop);
    launchWanted_.notifyAll();
    passWanted_.notifyAll();
    signalWanted_.notifyAll();
  }
  for (std::stop_source& start : starts) start.request_stop();
}

}  // namespace jobq::docker
