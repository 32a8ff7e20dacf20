#include "core/process/clock_keeper.h"

#include <cstdlib>
#include <string>

namespace jobq {
namespace {

constexpr Millis kFollowInterval{1'000};
constexpr Millis kNotableDifference{60'000};

}  // namespace

ClockKeeper::ClockKeeper(SystemClock& clock, Log& log)
    : clock_(clock), log_(log), periodic_("clock", clock, log, kFollowInterval, *this) {}

void ClockKeeper::step() {
  const Millis ahead = clock_.follow();
  const bool differs = ahead >= kNotableDifference || ahead <= -kNotableDifference;
  if (differs && !hasWarned_) {
    const std::string seconds = std::to_string(std::abs(ahead.count()) / 1'000) + " s ";
    log_.write(LogLevel::warning, "clock.differs",
               "the machine's time is " + seconds +
                   (ahead.count() > 0 ? "ahead of the clock of leases, timeouts and expiry, which catches up slowly"
                                      : "behind the clock of leases, timeouts and expiry, which does not go back") +
                   "; signatures and the expiry of keys go by the machine's time; a restart sets both alike");
  }
  hasWarned_ = differs;
}

}  // namespace jobq
