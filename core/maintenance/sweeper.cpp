#include "core/maintenance/sweeper.h"

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

bool Sweeper::endOverdue() {
  for (;;) {
    const SweepResult swept = storage_.leases().sweep(kSweepBatch);
    listener_->swept(swept);
    if (!swept.more) return false;
    if (swept.requeuedAt.empty() && swept.finished.empty() && swept.stopped.empty()) return true;
  }
}

void Sweeper::sweepAll() {
  for (bool more = true; more;) {
    const SweepResult swept = storage_.leases().sweep(kSweepBatch);
    listener_->swept(swept);
    more = swept.more && !stopping_;
  }
}

}  // namespace jobq
