#include "core/base/clock.h"

#include <Poco/DateTime.h>
#include <Poco/DateTimeFormat.h>
#include <Poco/DateTimeFormatter.h>
#include <Poco/DateTimeParser.h>
#include <Poco/Timestamp.h>

#include <algorithm>
#include <cstddef>
#include <string_view>

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

namespace {

// Poco's parser forgives almost anything; a time that is half a time must not become another one.
bool hasShape(std::string_view text) {
  const auto matches = [text](std::string_view shape) {
    if (text.size() != shape.size()) return false;
    for (std::size_t i = 0; i < text.size(); ++i) {
      const bool digit = text[i] >= '0' && text[i] <= '9';
      if (shape[i] == '0' ? !digit : text[i] != shape[i]) return false;
    }
    return true;
  };
  return matches("0000-00-00T00:00:00Z") || matches("0000-00-00T00:00:00.000Z");
}

}  // namespace

std::optional<Instant> fromIso8601(const std::string& text) {
  Poco::DateTime time;
  int zone = 0;
  if (!hasShape(text)) return std::nullopt;
  if (!Poco::DateTimeParser::tryParse(Poco::DateTimeFormat::ISO8601_FRAC_FORMAT, text, time, zone)) return std::nullopt;
  return fromEpochMillis(time.timestamp().epochMicroseconds() / 1000);
}

}  // namespace jobq
