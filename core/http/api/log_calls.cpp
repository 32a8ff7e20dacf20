// `GET /logs/{id}`: the log lines of a job's handler, which the storage keeps as long as the job.
#include <cstddef>
#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "core/base/clock.h"
#include "core/base/result.h"
#include "core/base/words.h"
#include "core/http/api/error_response.h"
#include "core/http/api/event_stream.h"
#include "core/http/api/query_parameters.h"
#include "core/http/api/queue_calls.h"
#include "jobq/json_writer.h"
#include "jobq/transitions.h"

namespace jobq {
namespace {

// A storage reads the whole log of a job at once: 1,000 lines of 8 KB.
constexpr std::size_t kWholeLog = 8UL << 20;
constexpr std::size_t kMostText = 1UL << 20;  // bytes of log text in one answer
// Bytes of log text between two readings of an event stream: with escapes, ids and times about a megabyte.
constexpr std::size_t kMostTextOfAPart = 128UL << 10;

// Lines of one millisecond that a cursor can count.
constexpr std::int64_t kMostOfAMillisecond = 999'999'999;

/// A position between two log lines: all lines before the millisecond `at` were shown, and `seen` lines of that
/// millisecond.
struct Cursor {
  std::int64_t at = 0;
  std::size_t seen = 0;
};

std::string cursorText(const Cursor& cursor) { return std::to_string(cursor.at) + "-" + std::to_string(cursor.seen); }

std::optional<Cursor> cursorIn(std::string_view text) {
  const auto pair = readNumberPair(text);
  if (!pair || pair->second > kMostOfAMillisecond) return std::nullopt;
  return Cursor{pair->first, static_cast<std::size_t>(pair->second)};
}

Result<Cursor> readCursor(const ApiRequest& request) {
  const auto text = readText(request, "after");
  if (!text) return text.failure();
  if (!request.query.contains("after")) return Cursor{};
  const auto cursor = cursorIn(*text);
  if (!cursor) return invalid("after must be the next of an earlier answer, not " + clipped(*text), "after");
  return *cursor;
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

// Writes the lines after the cursor with `write`, the first one and further ones of `mostText` bytes in all, and moves
// the cursor behind each line before it is written. Returns true if there are more lines.
template <class Write>
bool writeLinesAfter(Cursor& cursor, const std::vector<LogLine>& lines, std::size_t mostText, Write write) {
  bool isFirst = true;
  std::size_t size = 0;
  std::int64_t millisecond = -1;
  std::size_t place = 0;  // number of the line within its millisecond
  for (const LogLine& line : lines) {
    const std::int64_t at = toEpochMillis(line.at);
    place = at == millisecond ? place + 1 : 1;
    millisecond = at;
    if (at < cursor.at || (at == cursor.at && place <= cursor.seen)) continue;
    size += line.text.size();
    if (size > mostText && !isFirst) return true;
    isFirst = false;
    cursor = {at, place};
    write(line);
  }
  return false;
}

/// The answer of /logs as a stream of events.
class LogEvents final : public PolledEventStream {
 public:
  LogEvents(const QueueDeps& deps, Budget::Reservation place, JobKey key, Cursor cursor)
      : PolledEventStream(deps, std::move(place), std::move(key)), cursor_(cursor) {}

 private:
  void readJob(ApiRequest&) override {
    Budget::Reservation memory;
    if (!memory.grow(deps().answerMemory, kWholeLog)) return;  // the log is read a second later
    const auto log = deps().jobs.log(key());
    if (!log) return endStream();
    const bool hasMore = writeLinesAfter(cursor_, log->lines, kMostTextOfAPart, [this](const LogLine& line) {
      events().add("", cursorText(cursor_), json::object([&line](json::ObjectWriter& out) { writeLine(out, line); }));
    });
    if (hasMore) return readAtOnce();
    if (!terminal(log->state)) return;
    events().add("end", "",
                 json::object([&log](json::ObjectWriter& out) { out.member("status", nameOf(log->state)); }));
    endStream();
  }

  Cursor cursor_;
};

RouteResult logEvents(const QueueDeps& deps, ApiRequest& request, const Cursor& after) {
  Budget::Reservation place;
  if (auto refusal = admitEventStream(deps, request, place)) return *std::move(refusal);
  const Cursor cursor = cursorIn(request.lastEventId).value_or(after);
  return begin(std::make_unique<LogEvents>(deps, std::move(place), jobOf(request), cursor), request);
}

}  // namespace

RouteResult logs(const QueueDeps& deps, ApiRequest& request) {
  const auto read = readCursor(request);
  if (!read) return badRequest(request, read.failure());
  Cursor cursor = *read;
  if (asksForEvents(request)) return logEvents(deps, request, cursor);
  if (!request.answerMemory.grow(deps.answerMemory, kWholeLog)) {
    return unavailable(request.path, "too many large answers are being read now: ask for the log again in a moment");
  }
  const auto log = deps.jobs.log(jobOf(request));
  if (!log) return noJob(request);
  bool more = false;
  return ApiResponse{200, json::object([&](json::ObjectWriter& out) {
                       out.array("lines", [&](json::ArrayWriter& lines) {
                         more = writeLinesAfter(cursor, log->lines, kMostText, [&lines](const LogLine& line) {
                           lines.object([&line](json::ObjectWriter& object) { writeLine(object, line); });
                         });
                       });
                       out.member("next", cursorText(cursor));
                       out.member("more", more);
                       out.member("status", nameOf(log->state));
                     })};
}

}  // namespace jobq
