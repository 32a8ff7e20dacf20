// `GET /v1/endpoints/{id}/workers/{worker}/logs`: the newest output of a launched worker, once or as a stream of
// events.
#include <algorithm>
#include <charconv>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <system_error>
#include <utility>

#include "core/base/bounded_integer.h"
#include "core/base/call_timer.h"
#include "core/base/clock.h"
#include "core/base/words.h"
#include "core/endpoints/endpoint_registry.h"
#include "core/endpoints/output_reader.h"
#include "core/http/api/error_response.h"
#include "core/http/api/event_text.h"
#include "core/http/api/query_parameters.h"
#include "core/http/api/queue/event_stream.h"
#include "core/http/api/router.h"
#include "core/http/api/routes.h"
#include "core/http/transport/budget.h"
#include "jobq/json_writer.h"

namespace jobq {
namespace {

constexpr std::int64_t kTail = 100;
constexpr std::size_t kLinesOfAPart = 50;  // between two parts of a stream
constexpr std::size_t kPartBytes = kLinesOfAPart * kLongestOutputLine;
constexpr Millis kPause{1'000};  // between two looks of a stream
constexpr Range kNumbers{0, 999'999'999'999'999};

void writeLine(json::ObjectWriter& out, const OutputLine& line) {
  out.member("at", toIso8601(line.at));
  out.member("text", line.text);
}

ApiResponse noLog(const ApiRequest& request) {
  return errorResponse(request.path, 404,
                       "this server has no output of a worker " + clipped(request.params.at("worker")) +
                           ": the output of workers that the server launches is kept until 10 minutes after their end; "
                           "other workers write where they were started, and handlers inside the server write to "
                           "/v2/" +
                           clipped(request.params.at("id")) + "/logs/{job}");
}

/// A stream with the lines after `cursor`.
class OutputEvents final : public PendingCall {
 public:
  OutputEvents(const WorkerLogDeps& deps, Budget::Reservation place, const ApiRequest& request, std::uint64_t cursor)
      : deps_(deps),
        place_(std::move(place)),
        endpoint_(request.params.at("id")),
        worker_(request.params.at("worker")),
        cursor_(cursor) {}

  std::optional<ApiResponse> poll(ApiRequest& request) override {
    if (!deps_.logs.readAfter(endpoint_, worker_, cursor_, 0)) return noLog(request);
    quietUntil_ = deps_.clock.now() + deps_.streamSilence;
    ApiResponse response{200, ""};
    response.headers = {{"Content-Type", "text/event-stream"}};
    response.isOpen = true;
    return response;
  }

  std::optional<BodyPart> nextPart(ApiRequest& request) override {
    if (events_.empty()) {
      request.room.noteText(0);  // all earlier events have left
      if (hasEnded_ || request.client->hasLeft() || deps_.timer.isStopped()) return BodyPart{{}, true};
      if (request.room.draw(kPartBytes)) addLines();
      if (events_.empty() && !hasEnded_ && deps_.clock.now() >= quietUntil_) events_.addComment("the worker goes on");
    }
    if (events_.empty() && !hasEnded_) {
      request.room.noteText(0);
      deps_.timer.resumeAt(deps_.clock.now() + kPause, request.client->call());
      return std::nullopt;
    }
    request.room.noteText(events_.size());
    quietUntil_ = deps_.clock.now() + deps_.streamSilence;
    BodyPart part{events_.empty() ? std::string() : events_.removePart(), false};
    part.isLast = hasEnded_ && events_.empty();
    return part;
  }

 private:
  void addLines() {
    const auto part = deps_.logs.readAfter(endpoint_, worker_, cursor_, kLinesOfAPart);
    if (!part) {  // the output was removed a while after the end of the worker
      hasEnded_ = true;
      return;
    }
    for (const OutputLine& line : part->lines) {
      cursor_ = line.number;
      events_.add("", std::to_string(cursor_),
                  json::object([&line](json::ObjectWriter& out) { writeLine(out, line); }));
    }
    if (!part->reason || part->hasMore) return;
    events_.add("end", "", json::object([&part](json::ObjectWriter& out) { out.member("reason", *part->reason); }));
    hasEnded_ = true;
  }

  const WorkerLogDeps deps_;
  const Budget::Reservation place_;
  const EndpointId endpoint_;
  const WorkerId worker_;
  std::uint64_t cursor_;
  EventText events_;
  Instant quietUntil_{};
  bool hasEnded_ = false;
};

/// Returns the number in the header Last-Event-ID, or no value.
std::optional<std::uint64_t> numberOf(std::string_view text) {
  std::uint64_t number = 0;
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), number);
  if (text.empty() || error != std::errc() || end != text.data() + text.size()) return std::nullopt;
  return number;
}

RouteResult outputEvents(const WorkerLogDeps& deps, ApiRequest& request, std::uint64_t cursor) {
  Budget::Reservation place;
  if (!place.grow(deps.waiting, 1)) {
    return unavailable(request.path, limitReached("too many calls wait", deps.waiting.whole(), "server.waiting") +
                                         "; try again in a moment");
  }
  cursor = numberOf(request.lastEventId).value_or(cursor);
  auto call = std::make_unique<OutputEvents>(deps, std::move(place), request, cursor);
  auto head = call->poll(request);
  if (!head->isOpen) return *std::move(head);
  return OpenAnswer{*std::move(head), std::move(call)};
}

ApiResponse outputPage(const WorkerLogDeps& deps, ApiRequest& request, std::uint64_t cursor) {
  if (!request.room.draw(kMostOutputBytes)) return noAnswerMemory(request.path, "the output");
  const auto part = deps.logs.readAfter(request.params.at("id"), request.params.at("worker"), cursor, SIZE_MAX);
  if (!part) return noLog(request);
  const std::size_t most = mostBytesOfLines(part->lines);
  if (!request.room.holdAtLeast(kMostOutputBytes + most)) return noAnswerMemory(request.path, "the output");
  ApiResponse response;
  response.body.reserve(most);
  json::appendObject(response.body, [&](json::ObjectWriter& out) {
    out.array("lines", [&](json::ArrayWriter& lines) {
      for (const OutputLine& line : part->lines) {
        cursor = line.number;
        lines.object([&line](json::ObjectWriter& object) { writeLine(object, line); });
      }
    });
    out.member("next", std::to_string(cursor));
    out.member("state", part->reason ? "ended" : "running");
    if (part->reason) out.member("reason", *part->reason);
  });
  request.room.noteText(response.body.size());
  return response;
}

RouteResult workerLogs(const WorkerLogDeps& deps, ApiRequest& request) {
  const auto tail = readNumber(request, "tail", {0, kMostOutputLines}, OutOfRange::refuse, kTail);
  if (!tail) return badRequest(request, tail.failure());
  const auto after = readNumber(request, "after", kNumbers, OutOfRange::refuse, 0);
  if (!after) return badRequest(request, after.failure());
  if (!deps.endpoints.entry(request.params.at("id"))) {
    return errorResponse(request.path, 404,
                         "there is no endpoint " + clipped(request.params.at("id")) + ": check the id");
  }
  const std::uint64_t cursor = request.query.contains("after") ? static_cast<std::uint64_t>(*after)
                                                               : deps.logs.startOfTail(request.params.at("worker"),
                                                                                       static_cast<std::size_t>(*tail));
  if (asksForEvents(request)) return outputEvents(deps, request, cursor);
  return outputPage(deps, request, cursor);
}

}  // namespace

void addWorkerLogRoutes(Router& router, const WorkerLogDeps& deps) {
  router.add({.methods = {"GET"},
              .pattern = "/v1/endpoints/{id}/workers/{worker}/logs",
              .scope = Scope::admin,
              .run = [deps](ApiRequest& request) { return workerLogs(deps, request); }});
}

}  // namespace jobq
