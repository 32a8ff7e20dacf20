#include "core/config/units.h"

#include <Poco/StringTokenizer.h>

#include <charconv>
#include <cstddef>
#include <limits>
#include <span>
#include <system_error>

#include "jobq/base64.h"
#include "jobq/error.h"

namespace jobq::units {
namespace {

struct Unit {
  std::string_view name;
  std::int64_t factor;
};
constexpr Unit kDurations[] = {{"ms", 1}, {"s", 1'000}, {"m", 60'000}, {"h", 3'600'000}, {"d", 86'400'000}};
constexpr Unit kSizes[] = {{"B", 1}, {"KB", 1 << 10}, {"MB", 1 << 20}, {"GB", 1 << 30}};

[[noreturn]] void refuse(std::string_view key, std::string_view text, const std::string& wanted) {
  throw ConfigError(std::string(key) + " = " + std::string(text) + " is not " + wanted);
}

std::optional<std::int64_t> withUnit(std::string_view text, std::span<const Unit> units) {
  std::int64_t number = 0;
  const char* end = text.data() + text.size();
  const auto [at, error] = std::from_chars(text.data(), end, number);
  const std::string_view name(at, static_cast<std::size_t>(end - at));
  if (error == std::errc() && number >= 0) {
    for (const Unit& unit : units) {
      if (unit.name != name) continue;
      if (number > std::numeric_limits<std::int64_t>::max() / unit.factor) break;
      return number * unit.factor;
    }
  }
  return std::nullopt;
}

std::string printWith(std::int64_t number, std::span<const Unit> units) {
  const Unit* best = &units[0];
  for (const Unit& unit : units) {
    if (number != 0 && number % unit.factor == 0) best = &unit;
  }
  return std::to_string(number / best->factor) + std::string(best->name);
}

}  // namespace

std::optional<Millis> readDuration(std::string_view text) {
  const auto millis = withUnit(text, kDurations);
  return millis ? std::optional(Millis(*millis)) : std::nullopt;
}

Millis duration(std::string_view key, std::string_view text, Millis min, Millis max) {
  const auto value = readDuration(text);
  if (value && *value >= min && *value <= max) return *value;
  refuse(key, text, "a duration from " + print(min) + " to " + print(max) + ", like 500ms 5s 10m 24h 7d");
}

std::uint64_t size(std::string_view key, std::string_view text, std::uint64_t min, std::uint64_t max) {
  const auto bytes = withUnit(text, kSizes);
  const auto value = static_cast<std::uint64_t>(bytes.value_or(0));
  if (bytes && value >= min && value <= max) return value;
  refuse(key, text, "a size from " + printSize(min) + " to " + printSize(max) + ", like 512B 64KB 10MB 1GB");
}

std::int64_t integer(std::string_view key, std::string_view text, std::int64_t min, std::int64_t max) {
  std::int64_t value = 0;
  const char* end = text.data() + text.size();
  const auto [at, error] = std::from_chars(text.data(), end, value);
  if (error != std::errc() || at != end || value < min || value > max) {
    refuse(key, text, "a whole number from " + std::to_string(min) + " to " + std::to_string(max));
  }
  return value;
}

bool flag(std::string_view key, std::string_view text) {
  if (text == "true") return true;
  if (text != "false") refuse(key, text, "true or false");
  return false;
}

std::vector<std::string> words(const std::string& list, const std::string& separators) {
  const Poco::StringTokenizer parts(list, separators,
                                    Poco::StringTokenizer::TOK_TRIM | Poco::StringTokenizer::TOK_IGNORE_EMPTY);
  return {parts.begin(), parts.end()};
}

Result<std::string> signingKey(std::string_view text) {
  constexpr std::string_view kPrefix = "whsec_";
  if (!text.starts_with(kPrefix)) return std::string(text);
  const auto bytes = fromBase64(text.substr(kPrefix.size()));
  if (!bytes || bytes->empty()) {
    return invalid("begins with whsec_, and the rest is not base64: write whsec_ and base64, or any other text");
  }
  return *bytes;
}

std::string secret(std::string_view key, std::string_view text) {
  const auto bytes = signingKey(text);
  if (!bytes) throw ConfigError(std::string(key) + " " + bytes.failure().message());
  return *bytes;
}

std::string print(Millis duration) { return printWith(duration.count(), kDurations); }

std::string printSize(std::uint64_t bytes) { return printWith(static_cast<std::int64_t>(bytes), kSizes); }

}  // namespace jobq::units
