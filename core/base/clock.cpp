#include "core/base/clock.h"

#include <Poco/DateTime.h>
#include <Poco/DateTimeFormat.h>
#include <Poco/DateTimeFormatter.h>
#include <Poco/DateTimeParser.h>
#include <Poco/Timestamp.h>
#include <sys/timex.h>

#include <algorithm>
#include <cstddef>
#include <string_view>

namespace jobq {

namespace {

constexpr int kCatchUpPart = 10;                    // the clock catches up by a tenth of the passing time
constexpr std::chrono::seconds kLongestCatchUp{1};  // in one step, however late the step

}  // namespace

Instant SystemWallClock::now() const { return std::chrono::floor<Millis>(std::chrono::system_clock::now()); }

std::chrono::system_clock::time_point TimeSource::wall() const { return std::chrono::system_clock::now(); }
std::chrono::steady_clock::time_point TimeSource::steady() const { return std::chrono::steady_clock::now(); }

bool TimeSource::isSynchronised() const {
  timex state{};  // changes nothing
  const int clock = ::adjtimex(&state);
  return clock != -1 && clock != TIME_ERROR;
}

const TimeSource& TimeSource::ofMachine() {
  static const TimeSource kMachine;
  return kMachine;
}

SystemClock::SystemClock(const TimeSource& source)
    : source_(source), wallAtStart_(source.wall()), steadyAtStart_(source.steady()), followedAt_(steadyAtStart_) {}

Instant SystemClock::now() const {
  return std::chrono::floor<Millis>(wallAtStart_ + (source_.steady() - steadyAtStart_) + caughtUp_.load());
}

Millis SystemClock::follow() {
  const auto now = source_.steady();
  const auto ahead = source_.wall() - (wallAtStart_ + (now - steadyAtStart_) + caughtUp_.load());
  const std::chrono::system_clock::duration passed = now - followedAt_;
  const auto most = std::min<std::chrono::system_clock::duration>(passed / kCatchUpPart, kLongestCatchUp);
  followedAt_ = now;
  if (ahead.count() > 0) caughtUp_ = caughtUp_.load() + std::min(ahead, most);
  return std::chrono::floor<Millis>(ahead);
}

void SystemClock::waitUntil(Mutex& mutex, Condition& condition, Instant deadline) {
  // A deadline may be "never" (Instant::max()). An hour is a bound that cannot overflow, and callers wait in a loop.
  const Millis left = deadline - now();
  if (left > Millis::zero()) condition.waitFor(mutex, std::min<Millis>(left, std::chrono::hours(1)));
}

std::optional<Millis> SystemClock::lead() const {
  if (!source_.isSynchronised()) return std::nullopt;
  return std::chrono::floor<Millis>(now() - source_.wall());
}

std::string toIso8601(Instant instant) {
  const Poco::Timestamp stamp(toEpochMillis(instant) * 1000);
  return Poco::DateTimeFormatter::format(stamp, "%Y-%m-%dT%H:%M:%S.%iZ");
}

namespace {

// Poco's parser accepts almost any text; an incomplete time must not become another time.
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
