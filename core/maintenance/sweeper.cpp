#include "core/maintenance/sweeper.h"

#include "jobq/error.h"

namespace jobq {
namespace {

constexpr Millis kInterval{1'000};
constexpr std::size_t kSweepBatch = 500;

}  // namespace

Sweeper::Sweeper(Storage& storage, Clock& clock, Log& log)
    : storage_(storage), periodic_("sweeper", clock, log, kInterval, *this) {}

void Sweeper::run() {
  performAll([this] { listener_->beforeSweep(); }, [this] { sweepAll(); }, [this] { listener_->afterSweep(); });
}

void Sweeper::stop() {
  stopping_ = true;
  periodic_.stop();
}

// Sweeps one batch and passes the result to the listener. If the lists of an earlier batch are lost, the listener is
// told first; the sweep happens also if the listener fails.
SweepResult Sweeper::sweepBatch() {
  SweepResult swept;
  performAll([this] { notifyUnanswered(); }, [&] { swept = sweepAndNotify(); });
  return swept;
}

void Sweeper::notifyUnanswered() {
  if (!isUnanswered_.exchange(false)) return;
  try {
    listener_->sweepUnanswered();
  } catch (...) {
    isUnanswered_ = true;
    throw;
  }
}

SweepResult Sweeper::sweepAndNotify() {
  try {
    SweepResult swept = storage_.leases().sweep(kSweepBatch);
    listener_->swept(swept);
    return swept;
  } catch (const OutcomeUnknown&) {
    isUnanswered_ = true;
    throw;
  } catch (const StorageError&) {  // the batch has changed nothing
    throw;
  } catch (...) {  // the listener has not dealt with the whole batch
    isUnanswered_ = true;
    throw;
  }
}

bool Sweeper::endOverdue() {
  for (;;) {
    const SweepResult swept = sweepBatch();
    if (!swept.more) return false;
    if (swept.requeuedAt.empty() && swept.finished.empty() && swept.stopped.empty()) return true;
  }
}

void Sweeper::sweepAll() {
  for (bool more = true; more;) {
    more = sweepBatch().more && !stopping_;
  }
}

}  // namespace jobq
