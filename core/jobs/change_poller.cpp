#include "core/jobs/change_poller.h"

#include <algorithm>
#include <vector>

#include "core/base/periodic.h"
#include "core/jobs/queue_signal.h"
#include "jobq/transitions.h"

namespace jobq {
namespace {

constexpr std::size_t kJobsOfAQuestion = 500;
constexpr Millis kJobPause{20};
constexpr Millis kLongestJobPause{1'000};  // after a question that the storage answered slowly
constexpr int kIdleShare = 4;              // times the duration of the questions
constexpr Millis kQueuePause{500};
constexpr Millis kQuickQueuePause{20};
constexpr Millis kQuickTime{2'000};
constexpr Millis kRetryPause{1'000};

}  // namespace

ChangePoller::ChangePoller(const Deps& deps) : deps_(deps), isShared_(deps.storage.leaseLife().has_value()) {
  if (isShared_) deps_.completions.setListener(*this);
}

void ChangePoller::start() {
  if (!isShared_ || thread_.joinable()) return;
  thread_ = std::thread([this] { loop(); });
}

void ChangePoller::stop() {
  {
    Lock lock(mutex_);
    stopping_ = true;
    changed_.notifyAll();
  }
  if (thread_.joinable()) thread_.join();
}

void ChangePoller::waiterCame() {
  Lock lock(mutex_);
  waiterCame_ = true;
  changed_.notifyAll();
}

void ChangePoller::loop() {
  nameThread("changes");
  for (;;) {
    const Instant next = poll();
    Lock lock(mutex_);
    while (!stopping_ && !waiterCame_ && deps_.clock.now() < next) deps_.clock.waitUntil(mutex_, changed_, next);
    waiterCame_ = false;
    if (stopping_) return;
  }
}

Instant ChangePoller::poll() {
  const Instant now = deps_.clock.now();
  const bool isAwaited = deps_.completions.hasWaiters();
  try {
    performAll(
        [&] {
          if (!isAwaited || now < jobsDueAt_) return;
          jobsDueAt_ = now + kRetryPause;
          askForJobs();
          const Instant end = deps_.clock.now();
          jobsDueAt_ = end + std::clamp<Millis>((end - now) * kIdleShare, kJobPause, kLongestJobPause);
        },
        [&] {
          if (now < queuesDueAt_) return;
          queuesDueAt_ = now + kRetryPause;
          askForQueues();
          queuesDueAt_ = now + (now < quickUntil_ ? kQuickQueuePause : kQueuePause);
        });
  } catch (const std::exception& error) {  // also std::bad_alloc of the storage: the next question may succeed
    deps_.log.write(LogLevel::error, "changes.storage", error.what());
  }
  return deps_.completions.hasWaiters() ? std::min(jobsDueAt_, queuesDueAt_) : queuesDueAt_;
}

void ChangePoller::askForJobs() {
  decltype(known_) before = std::exchange(known_, {});
  for (JobId last;;) {
    const std::vector<AwaitedJob> awaited = deps_.completions.awaited(last, kJobsOfAQuestion);
    if (awaited.empty()) return;
    std::vector<JobKey> keys;
    keys.reserve(awaited.size());
    for (const AwaitedJob& each : awaited) keys.push_back(each.job);
    const std::vector<std::optional<JobSummary>> summaries = deps_.storage.jobs().summaries(keys);
    for (std::size_t i = 0; i < awaited.size(); ++i) {
      const auto known = before.find(awaited[i].job.id);
      if (known != before.end()) known_.insert(*known);
      announceChange(awaited[i], summaries[i]);
    }
    last = keys.back().id;
  }
}

// The size of the new chunks is unknown, so a waiter that gathers chunks goes on gathering.
void ChangePoller::announceChange(const AwaitedJob& awaited, const std::optional<JobSummary>& summary) {
  const JobId& id = awaited.job.id;
  if (!summary || terminal(summary->state)) return deps_.completions.announce(id);
  if (!awaited.isStreamed) return;
  auto& [attempt, chunks] = known_[id];
  if (summary->chunks > (attempt == summary->attempt ? chunks : 0)) deps_.completions.announceChunk(id, 0);
  if (attempt != summary->attempt) deps_.completions.announceChange(id);
  attempt = summary->attempt;
  chunks = summary->chunks;
}

void ChangePoller::askForQueues() {
  for (const QueuedEndpoint& queued : deps_.storage.leases().queuedEndpoints()) {
    if (deps_.queueSignal.notify(queued.endpoint, !queued.hasNormal)) quickUntil_ = deps_.clock.now() + kQuickTime;
  }
}

}  // namespace jobq
