#include "worker_pool_model.h"

#include <algorithm>
#include <cmath>
#include <cstddef>
#include <deque>
#include <functional>
#include <optional>
#include <queue>
#include <tuple>
#include <utility>

#include "core/workers/pool/scaler.h"

namespace bench {
namespace {

class WorkerPool {
 public:
  WorkerPool(const WorkerPoolRules& rules, const std::vector<Arrival>& arrivals, Millis end)
      : rules_(rules), arrivals_(arrivals), end_(end), slots_(std::max(rules.workersMin, rules.workersMax)) {}

  WorkerPoolRecord play() {
    makePass();
    while (next_ < arrivals_.size() || !events_.empty()) {
      if (next_ < arrivals_.size() && (events_.empty() || arrivals_[next_].at <= events_.top().at)) {
        arrive(arrivals_[next_++]);
      } else {
        const Event event = events_.top();
        events_.pop();
        now_ = event.at;
        if (event.worker) becomeIdle(slots_[*event.worker]);
        makePass();
      }
    }
    for (const Slot& slot : slots_) {
      if (slot.state != WorkerState::gone) countTime(slot, end_);
    }
    std::sort(record_.delays.begin(), record_.delays.end());
    std::sort(record_.lowDelays.begin(), record_.lowDelays.end());
    return std::move(record_);
  }

 private:
  enum class WorkerState { gone, starting, idle, busy, busyLow };
  struct Slot {
    WorkerState state = WorkerState::gone;
    Millis startedAt{0};
    Millis idleSince{0};
  };
  struct Event {
    Millis at;
    std::uint64_t order;                // order of events at one time
    std::optional<std::size_t> worker;  // the worker is ready or has finished; empty: the scaler is due
    bool operator>(const Event& other) const { return std::tie(at, order) > std::tie(other.at, other.order); }
  };

  void plan(Millis at, std::optional<std::size_t> worker) { events_.push({at, ++planned_, worker}); }

  // As QueueSignal::notify: a queue with a job wakes no worker.
  void arrive(const Arrival& arrival) {
    now_ = arrival.at;
    std::deque<Arrival>& line = arrival.low ? lowLine_ : line_;
    line.push_back(arrival);
    if (line.size() == 1) makePass();
  }

  void becomeIdle(Slot& slot) {
    slot.state = WorkerState::idle;
    slot.idleSince = now_;
    plan(now_ + rules_.idleTimeout, std::nullopt);
  }

  void makePass() {
    release();
    claim();
    startWorker();
  }

  void release() {
    std::uint32_t staying = count() - count(WorkerState::gone);
    for (Slot& slot : slots_) {
      if (staying <= rules_.workersMin || !line_.empty() || !lowLine_.empty()) return;
      if (slot.state != WorkerState::idle || slot.idleSince + rules_.idleTimeout > now_) continue;
      slot.state = WorkerState::gone;
      --staying;
      record_.releases.push_back(now_);
      record_.shortestLife = std::min(record_.shortestLife, now_ - slot.startedAt);
      countTime(slot, now_);
    }
  }

  void claim() {
    for (std::size_t i = 0; i < slots_.size() && !(line_.empty() && lowLine_.empty()); ++i) {
      if (slots_[i].state != WorkerState::idle) continue;
      const bool low = line_.empty();
      std::deque<Arrival>& line = low ? lowLine_ : line_;
      slots_[i].state = low ? WorkerState::busyLow : WorkerState::busy;
      (low ? record_.lowDelays : record_.delays).push_back(now_ - line.front().at);
      plan(now_ + line.front().duration, i);
      line.pop_front();
    }
  }

  void startWorker() {
    jobq::ScalerView view{rules_.scaling, rules_.workersMin, rules_.workersMax};
    view.workers = count() - count(WorkerState::gone);
    view.coming = count(WorkerState::idle) + count(WorkerState::starting);
    view.busy = count(WorkerState::busy);
    view.busyLow = count(WorkerState::busyLow);
    view.waiting = line_.size();
    if (!line_.empty()) view.headWait = now_ - line_.front().at;
    const jobq::ScalingDecision decision = jobq::scale(view);
    for (std::uint32_t workers = view.workers; workers < decision.workers; ++workers) {
      const auto slot =
          std::find_if(slots_.begin(), slots_.end(), [](const Slot& s) { return s.state == WorkerState::gone; });
      *slot = {WorkerState::starting, now_, {}};
      record_.starts.push_back(now_);
      plan(now_ + rules_.startTime, static_cast<std::size_t>(slot - slots_.begin()));
    }
    record_.most = std::max(record_.most, decision.workers);
    if (decision.recheckAfter && (nextDecisionAt_ <= now_ || now_ + *decision.recheckAfter < nextDecisionAt_)) {
      nextDecisionAt_ = now_ + *decision.recheckAfter;
      plan(nextDecisionAt_, std::nullopt);
    }
  }

  void countTime(const Slot& slot, Millis until) {
    record_.workerTime += std::max(std::min(until, end_) - slot.startedAt, Millis(0));
  }

  std::uint32_t count() const { return static_cast<std::uint32_t>(slots_.size()); }
  std::uint32_t count(WorkerState state) const {
    return static_cast<std::uint32_t>(
        std::count_if(slots_.begin(), slots_.end(), [state](const Slot& slot) { return slot.state == state; }));
  }

  const WorkerPoolRules rules_;
  const std::vector<Arrival>& arrivals_;
  const Millis end_;
  std::size_t next_ = 0;  // of the arrivals
  Millis now_{0};
  Millis nextDecisionAt_{-1};  // next time requested by the scaler
  std::uint64_t planned_ = 0;
  std::vector<Slot> slots_;
  std::deque<Arrival> line_;
  std::deque<Arrival> lowLine_;
  std::priority_queue<Event, std::vector<Event>, std::greater<>> events_;
  WorkerPoolRecord record_;
};

}  // namespace

WorkerPoolRecord playWorkerPool(const WorkerPoolRules& rules, const std::vector<Arrival>& arrivals, Millis end) {
  return WorkerPool(rules, arrivals, end).play();
}

Millis quantile(const std::vector<Millis>& sorted, double share) {
  if (sorted.empty()) return Millis(0);
  const double rank = std::ceil(share * static_cast<double>(sorted.size()));
  return sorted[static_cast<std::size_t>(std::max(rank, 1.0)) - 1];
}

}  // namespace bench
