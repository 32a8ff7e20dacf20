#include "core/base/clock.h"

#include <Poco/DateTime.h>
#include <Poco/DateTimeFormat.h>
#include <Poco/DateTimeFormatter.h>
#include <Poco/DateTimeParser.h>
#include <Poco/Timestamp.h>

#include <regex>

namespace jobq {

SystemClock::SystemClock()
    : wallAtStart_(std::chrono::system_clock::now()), steadyAtStart_(std::chrono::steady_clock::now()) {}

Instant SystemClock::now() const {
  return std::chrono::floor<Millis>(wallAtStart_ + (std::chrono::steady_clock::now() - steadyAtStart_));
}

void SystemClock::waitUntil(Mutex& mutex, Condition& condition, Instant deadline) {
  // A deadline may be "never" (Instant::max()): an hour is a bound that cannot overflow, and waiters loop.
  const Millis left = deadline - now();
  if (left > Millis::zero()) condition.waitFor(mutex, std::min<Millis>(left, std::chrono::hours(1)));
}

std::string toIso8601(Instant instant) {
  const Poco::Timestamp stamp(toEpochMillis(instant) * 1000);
  return Poco::DateTimeFormatter::format(stamp, "%Y-%m-%dT%H:%M:%S.%iZ");
}

std::optional<Instant> fromIso8601(const std::string& text) {
  static const std::regex kShape(R"(\d{4}-\d{2}-\d{2}T\d{2}:\d{2}:\d{2}(\.\d{1,3})?Z)");
  Poco::DateTime time;
  int zone = 0;
  if (!std::regex_match(text, kShape)) return std::nullopt;
  if (!Poco::DateTimeParser::tryParse(Poco::DateTimeFormat::ISO8601_FRAC_FORMAT, text, time, zone)) return std::nullopt;
  return fromEpochMillis(time.timestamp().epochMicroseconds() / 1000);
}

}  // namespace jobq
