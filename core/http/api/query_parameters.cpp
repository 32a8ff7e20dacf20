#include "core/http/api/query_parameters.h"

#include <algorithm>
#include <charconv>
#include <cstddef>
#include <optional>
#include <utility>
#include <variant>

#include "core/base/ids.h"
#include "jobq/json.h"

namespace jobq {
namespace {

constexpr std::int64_t kLargestListPart = 1'000;

// The limit of digits keeps the number from overflowing.
std::optional<std::int64_t> readDigits(std::string_view digits) {
  const bool isPlain = !digits.empty() && digits.size() <= 15 &&
                       std::all_of(digits.begin(), digits.end(), [](char c) { return c >= '0' && c <= '9'; });
  if (!isPlain) return std::nullopt;
  std::int64_t number = 0;
  (void)std::from_chars(digits.data(), digits.data() + digits.size(), number);
  return number;
}

// Returns the JSON value in a parameter. Blanks around the value make it invalid.
std::optional<json::Value> valueIn(const std::string& parameter) {
  const auto text = json::read(parameter);
  const auto* document = std::get_if<json::Document>(&text);
  if (document == nullptr || document->root.raw != parameter) return std::nullopt;
  return document->root;
}

}  // namespace

Result<void> checkOnce(const ApiRequest& request, const char* name) {
  if (request.query.count(name) < 2) return {};
  return invalid(std::string(name) + " appears more than once in the query: send it once", name);
}

Result<std::string> readText(const ApiRequest& request, const char* name) {
  if (const auto good = checkOnce(request, name); !good) return good.failure();
  const auto found = request.query.find(name);
  return found == request.query.end() ? std::string() : found->second;
}

Result<std::int64_t> readNumber(const ApiRequest& request, const char* name, const Range& range, OutOfRange otherwise,
                                std::int64_t fallback) {
  const auto found = request.query.find(name);
  if (found == request.query.end()) return fallback;
  if (const auto good = checkOnce(request, name); !good) return good.failure();
  const auto value = valueIn(found->second);
  const auto number = value ? readInteger(*value, range, otherwise) : std::nullopt;
  if (number) return *number;
  return invalid(
      std::string(name) + " must be an integer from " + std::to_string(range.min) + " to " + std::to_string(range.max),
      name);
}

Result<Millis> readMillis(const ApiRequest& request, const char* name, const Range& range, OutOfRange otherwise,
                          Millis fallback) {
  const auto number = readNumber(request, name, range, otherwise, fallback.count());
  if (number) return Millis(*number);
  const auto value = valueIn(request.query.find(name)->second);
  return invalid(number.failure().message() + (value ? secondsQuestion(*value, range) : ""), name);
}

Result<ListPart> readListPart(const ApiRequest& request) {
  auto cursor = readText(request, "cursor");
  if (!cursor) return cursor.failure();
  if (request.query.contains("cursor") && !isIdentifier(*cursor)) {
    return invalid("cursor must be the id of the last element of the page before", "cursor");
  }
  constexpr std::int64_t kNoLimit = 0;
  const auto limit = readNumber(request, "limit", {1, kLargestListPart}, OutOfRange::refuse, kNoLimit);
  if (!limit) return limit.failure();
  ListPart part{*std::move(cursor)};
  if (*limit != kNoLimit) part.limit = static_cast<std::size_t>(*limit);
  return part;
}

std::optional<std::pair<std::int64_t, std::int64_t>> readNumberPair(std::string_view text) {
  const std::size_t dash = text.find('-');
  if (dash == std::string_view::npos) return std::nullopt;
  const auto first = readDigits(text.substr(0, dash));
  const auto second = readDigits(text.substr(dash + 1));
  if (!first || !second) return std::nullopt;
  return std::pair(*first, *second);
}

Result<std::set<std::string>> readFlags(const ApiRequest& request, std::initializer_list<const char*> names) {
  std::set<std::string> set;
  FieldFaults faults;
  for (const char* name : names) {
    const auto found = request.query.find(name);
    if (found == request.query.end()) continue;
    if (const auto good = checkOnce(request, name); !good) {
      faults.push_back(good.failure().faults.front());
    } else if (found->second == "true") {
      set.insert(name);
    } else if (found->second != "false") {
      faults.push_back({name, std::string(name) + " must be true or false"});
    }
  }
  if (!faults.empty()) return Failure{Failure::Kind::invalid, std::move(faults)};
  return set;
}

}  // namespace jobq
