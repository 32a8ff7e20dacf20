#include "core/maintenance/sweeper.h"

#include <exception>
#include <vector>

namespace jobq {
namespace {

constexpr Millis kInterval{1'000};
constexpr std::size_t kSweepBatch = 500;

// Performs every duty, also after a failed duty, and throws the first failure at the end.
void doAll(const std::vector<std::function<void()>>& duties) {
  std::exception_ptr fault;
  for (const auto& duty : duties) {
    try {
      if (duty) duty();
    } catch (...) {
      if (!fault) fault = std::current_exception();
    }
  }
  if (fault) std::rethrow_exception(fault);
}

}  // namespace

Sweeper::Sweeper(Storage& storage, Clock& clock, Log& log, Listener listener, std::function<void()> first,
                 std::function<void()> last)
    : storage_(storage),
      listener_(std::move(listener)),
      periodic_("sweeper", clock, log, kInterval,
                [duties = std::vector{std::move(first), std::function<void()>([this] { sweepAll(); }),
                                      std::move(last)}] { doAll(duties); }) {}

void Sweeper::stop() {
  stopping_ = true;
  periodic_.stop();
}

bool Sweeper::endOverdue() {
  for (;;) {
    const SweepResult swept = storage_.leases().sweep(kSweepBatch);
    listener_(swept);
    if (!swept.more) return false;
    if (swept.requeuedAt.empty() && swept.finished.empty() && swept.stopped.empty()) return true;
  }
}

void Sweeper::sweepAll() {
  for (bool more = true; more;) {
    const SweepResult swept = storage_.leases().sweep(kSweepBatch);
    listener_(swept);
    more = swept.more && !stopping_;
  }
}

}  // namespace jobq
