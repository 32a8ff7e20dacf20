// `GET /logs/{id}`: the log lines of a job's handler, which the storage keeps as long as the job.
#include <algorithm>
#include <charconv>
#include <cstddef>
#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "core/base/clock.h"
#include "core/base/result.h"
#include "core/base/words.h"
#include "core/http/api/error_response.h"
#include "core/http/api/query_parameters.h"
#include "core/http/api/queue_calls.h"
#include "jobq/json_writer.h"

namespace jobq {
namespace {

// A storage reads the whole log of a job at once: 1,000 lines of 8 KB.
constexpr std::size_t kWholeLog = 8UL << 20;
constexpr std::size_t kMostText = 1UL << 20;  // bytes of log text in one answer

/// A position between two log lines: all lines before the millisecond `at` were shown, and `seen` lines of that
/// millisecond.
struct Cursor {
  std::int64_t at = 0;
  std::size_t seen = 0;
};

std::string cursorText(const Cursor& cursor) { return std::to_string(cursor.at) + "-" + std::to_string(cursor.seen); }

// Reads a text of digits only. The limit of `most` digits keeps the number from overflowing.
std::optional<std::int64_t> readDigits(std::string_view digits, std::size_t most) {
  const bool plain = !digits.empty() && digits.size() <= most &&
                     std::all_of(digits.begin(), digits.end(), [](char c) { return c >= '0' && c <= '9'; });
  if (!plain) return std::nullopt;
  std::int64_t number = 0;
  (void)std::from_chars(digits.data(), digits.data() + digits.size(), number);
  return number;
}

Result<Cursor> readCursor(const ApiRequest& request) {
  const auto text = readText(request, "after");
  if (!text) return text.failure();
  if (!request.query.contains("after")) return Cursor{};
  const std::string_view after = *text;
  const std::size_t dash = after.find('-');
  const auto at = readDigits(after.substr(0, dash), 15);
  const auto seen = dash == std::string_view::npos ? std::nullopt : readDigits(after.substr(dash + 1), 9);
  if (!at || !seen) return invalid("after must be the next of an earlier answer, not " + clipped(*text), "after");
  return Cursor{*at, static_cast<std::size_t>(*seen)};
}

std::string_view nameOfLevel(LogLevel level) {
  switch (level) {
    case LogLevel::debug: return "debug";
    case LogLevel::information: return "information";
    case LogLevel::warning: return "warning";
    case LogLevel::error: return "error";
  }
  return "information";
}

void writeLine(json::ObjectWriter& out, const LogLine& line) {
  out.member("at", toIso8601(line.at));
  out.member("level", nameOfLevel(line.level));
  out.member("text", line.text);
}

// Writes the lines after the cursor and moves the cursor behind the last of the written lines. Returns true if there
// are more lines.
bool writeLinesAfter(json::ArrayWriter& out, const std::vector<LogLine>& lines, Cursor& cursor) {
  std::size_t size = 0;
  std::int64_t millisecond = -1;
  std::size_t place = 0;  // number of the line within its millisecond
  for (const LogLine& line : lines) {
    const std::int64_t at = toEpochMillis(line.at);
    place = at == millisecond ? place + 1 : 1;
    millisecond = at;
    if (at < cursor.at || (at == cursor.at && place <= cursor.seen)) continue;
    size += line.text.size();
    if (size > kMostText && !out.empty()) return true;
    out.object([&line](json::ObjectWriter& object) { writeLine(object, line); });
    cursor = {at, place};
  }
  return false;
}

}  // namespace

RouteResult logs(const QueueDeps& deps, ApiRequest& request) {
  const auto read = readCursor(request);
  if (!read) return badRequest(request, read.failure());
  Cursor cursor = *read;
  if (!request.answerMemory.grow(deps.answerMemory, kWholeLog)) {
    return unavailable(request.path, "too many large answers are being read now: ask for the log again in a moment");
  }
  const auto log = deps.jobs.log({request.endpoint->spec.id, request.params.at("id")});
  if (!log) return noJob(request);
  bool more = false;
  return ApiResponse{200, json::object([&](json::ObjectWriter& out) {
                       out.array("lines",
                                 [&](json::ArrayWriter& lines) { more = writeLinesAfter(lines, log->lines, cursor); });
                       out.member("next", cursorText(cursor));
                       out.member("more", more);
                       out.member("status", nameOf(log->state));
                     })};
}

}  // namespace jobq
