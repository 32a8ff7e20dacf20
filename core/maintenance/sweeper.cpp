#include "core/maintenance/sweeper.h"

#include <exception>

namespace jobq {
namespace {

constexpr Millis kInterval{1'000};
constexpr std::size_t kSweepBatch = 500;

// Performs a duty and keeps the first failure in `fault`.
template <class Function>
void perform(std::exception_ptr& fault, const Function& duty) {
  try {
    duty();
  } catch (...) {
    if (!fault) fault = std::current_exception();
  }
}

}  // namespace

Sweeper::Sweeper(Storage& storage, Clock& clock, Log& log)
    : storage_(storage), periodic_("sweeper", clock, log, kInterval, *this) {}

void Sweeper::run() {
  std::exception_ptr fault;
  perform(fault, [this] { listener_->beforeSweep(); });
  perform(fault, [this] { sweepAll(); });
  perform(fault, [this] { listener_->afterSweep(); });
  if (fault) std::rethrow_exception(fault);
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
