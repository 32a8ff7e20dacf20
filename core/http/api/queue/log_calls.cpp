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
#include "core/http/api/query_parameters.h"
#include "core/http/api/queue/event_stream.h"
#include "core/http/api/queue/queue_calls.h"
#include "jobq/json_writer.h"
#include "jobq/transitions.h"

namespace jobq {
namespace {

constexpr std::size_t kMostText = 1UL << 20;  // bytes of log text in one answer
// Bytes of log text between two readings of an event stream: with escapes, ids and times about a megabyte.
constexpr std::size_t kMostTextOfAPart = 128UL << 10;

// Lines of one millisecond that a cursor can count.
constexpr std::int64_t kMostOfAMillisecond = 999'999'999;

// The position between two log lines: all lines before the millisecond `at` were shown, and `skipped` lines of that
// millisecond.
using Cursor = LogPosition;

constexpr Cursor kBegin{};

std::string cursorText(const Cursor& cursor) {
  return std::to_string(toEpochMillis(cursor.at)) + "-" + std::to_string(cursor.skipped);
}

std::optional<Cursor> cursorIn(std::string_view text) {
  const auto pair = readNumberPair(text);
  if (!pair || pair->second > kMostOfAMillisecond) return std::nullopt;
  return Cursor{fromEpochMillis(pair->first), static_cast<std::uint64_t>(pair->second)};
}

Result<Cursor> readCursor(const ApiRequest& request) {
  const auto text = readText(request, "after");
  if (!text) return text.failure();
  if (!request.query.contains("after")) return kBegin;
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

ApiResponse noRoomForLog(const ApiRequest& request) { return noAnswerMemory(request.path, "the log"); }

// Returns the cursor behind the line, which is the next one behind `cursor`.
Cursor behind(const Cursor& cursor, const LogLine& line) {
  return {line.at, line.at == cursor.at ? cursor.skipped + 1 : 1};
}

/// The answer of /logs as a stream of events.
class LogEvents final : public ChangeEventStream {
 public:
  LogEvents(const QueueDeps& deps, Budget::Reservation place, JobKey key, Cursor cursor)
      : ChangeEventStream(deps, std::move(place), std::move(key)), cursor_(cursor) {}

 private:
  NextReading readJob(ApiRequest& request) override {
    if (!request.room.draw(kMostText)) return NextReading::soon;
    const auto log = deps().jobs.log(key(), cursor_, kMostTextOfAPart);
    if (!log) {
      endStream();
      return NextReading::afterChange;
    }
    for (const LogLine& line : log->part.lines) {
      cursor_ = behind(cursor_, line);
      events().add("", cursorText(cursor_), json::object([&line](json::ObjectWriter& out) { writeLine(out, line); }));
    }
    if (log->part.more) return NextReading::atOnce;
    if (!terminal(log->state)) return afterQuietReading(log->state);
    events().add("end", "",
                 json::object([&log](json::ObjectWriter& out) { out.member("status", nameOf(log->state)); }));
    endStream();
    return NextReading::afterChange;
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
  if (!request.room.draw(kMostText)) return noRoomForLog(request);
  const auto log = deps.jobs.log(jobOf(request), cursor, kMostText);
  if (!log) return noJob(request);
  const std::size_t most = mostBytesOfLines(log->part.lines);
  if (!request.room.holdAtLeast(kMostText + most)) return noRoomForLog(request);
  ApiResponse response;
  response.body.reserve(most);
  json::appendObject(response.body, [&](json::ObjectWriter& out) {
    out.array("lines", [&](json::ArrayWriter& lines) {
      for (const LogLine& line : log->part.lines) {
        cursor = behind(cursor, line);
        lines.object([&line](json::ObjectWriter& object) { writeLine(object, line); });
      }
    });
    out.member("next", cursorText(cursor));
    out.member("more", log->part.more);
    out.member("status", nameOf(log->state));
  });
  request.room.noteText(response.body.size());
  return response;
}

}  // namespace jobq
