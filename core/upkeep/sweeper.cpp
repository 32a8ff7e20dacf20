#include "core/upkeep/sweeper.h"

namespace jobq {
namespace {

constexpr Millis kInterval{1'000};
constexpr std::size_t kBatch = 500;

}  // namespace

Sweeper::Sweeper(Storage& storage, Clock& clock, Log& log, Listener listener, std::function<void()> first,
                 std::function<void()> last)
    : storage_(storage),
      listener_(std::move(listener)),
      periodic_("sweeper", clock, log, kInterval, [this, first = std::move(first), last = std::move(last)] {
        if (first) first();
        sweepAll();
        if (last) last();
      }) {}

void Sweeper::sweepAll() {
  for (bool more = true; more;) {
    const Swept swept = storage_.leases().sweep(kBatch);
    listener_(swept);
    more = swept.more;
  }
}

}  // namespace jobq
