#include "database_clock.h"

namespace jobq::mysql {
namespace {

constexpr std::int64_t kMeasureEvery = 15'000;

std::int64_t steadyMillis() {
  return std::chrono::duration_cast<Millis>(std::chrono::steady_clock::now().time_since_epoch()).count();
}

}  // namespace

Instant DatabaseClock::now() const {
  const std::int64_t time = toEpochMillis(host_.now()) + offset_;
  std::int64_t latest = latest_;
  while (latest < time && !latest_.compare_exchange_weak(latest, time)) continue;
  return fromEpochMillis(latest < time ? time : latest);
}

void DatabaseClock::measureWhenDue(Connection& connection) {
  const std::int64_t now = steadyMillis();
  std::int64_t due = measureAt_;
  if (due > now || !measureAt_.compare_exchange_strong(due, now + kMeasureEvery)) return;
  offset_ = measureOffset(connection, host_).count();
}

}  // namespace jobq::mysql
