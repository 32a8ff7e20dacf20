#include "core/cli/local_job.h"

#include <algorithm>

#include "core/client/table_print.h"

namespace jobq::cli {

LocalJob::LocalJob(Clock& clock, Millis timeout, std::ostream& reports)
    : clock_(clock), deadline_(clock.now() + timeout), reports_(reports) {
  timer_ = std::jthread([this](const std::stop_token& ended) { awaitDeadline(ended); });
}

LocalJob::~LocalJob() = default;

void LocalJob::awaitDeadline(const std::stop_token& ended) {
  Mutex mutex;
  Condition changed;
  const std::stop_callback wake(ended, [&] {
    Lock lock(mutex);
    changed.notifyAll();
  });
  Lock lock(mutex);
  while (!ended.stop_requested() && clock_.now() < deadline_) clock_.waitUntil(mutex, changed, deadline_);
  lock.unlock();
  if (!ended.stop_requested()) stop_.request_stop();
}

void LocalJob::emit(std::string_view chunk, std::string_view metrics) {
  outputQuota_.charge({chunk, metrics});
  reports_ << "chunk " << chunk << (metrics.empty() ? "" : " metrics ") << metrics << '\n';
}

void LocalJob::progress(std::string_view json) { reports_ << "progress " << json << '\n'; }

void LocalJob::log(LogLevel, std::string_view line) {
  std::string text(line);
  std::replace(text.begin(), text.end(), '\t', ' ');
  reports_ << "log " << harmless(text) << '\n';
}

}  // namespace jobq::cli
