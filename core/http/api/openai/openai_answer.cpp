#include "core/http/api/openai/openai_answer.h"

#include <algorithm>
#include <charconv>
#include <optional>
#include <utility>
#include <variant>

#include "core/http/api/error_response.h"
#include "jobq/json.h"
#include "jobq/json_writer.h"

namespace jobq {
namespace {

constexpr std::string_view kDone = "data: [DONE]";
constexpr std::string_view kHttpStatus = "HTTP ";
constexpr std::size_t kLastBytes = 32;  // bytes: enough for kDone and line ends
constexpr std::size_t kMembers = 1'000;
constexpr std::size_t kElements = 10'000;
constexpr std::size_t kMostHeld = 1UL << 20;  // bytes of an unfinished event

std::optional<json::Document> read(std::string_view text, std::size_t most) {
  auto scanned = json::read(text, most);
  auto* document = std::get_if<json::Document>(&scanned);
  return document == nullptr ? std::nullopt : std::optional(std::move(*document));
}

bool isTruthy(const json::Value& value) {
  switch (value.kind) {
    case json::Kind::null: return false;
    case json::Kind::boolean: return value.raw == "true";
    case json::Kind::number: return json::toNumber(value, -1e308, 1e308).value_or(1) != 0;
    case json::Kind::string: return value.raw.size() > 2;
    case json::Kind::array: return read(value.raw, 1)->elements.size() > 0;
    case json::Kind::object: return read(value.raw, 1)->members.size() > 0;
  }
  return true;
}

/// Returns the error object inside `document`: the member `error`, or `document` if `object` is "error".
std::optional<json::Value> errorIn(const json::Document& document) {
  if (document.root.kind != json::Kind::object) return std::nullopt;
  const auto object = document.find("object");
  if (object && json::toText(*object) == "error") return document.root;
  const auto error = document.find("error");
  return error && isTruthy(*error) ? error : std::nullopt;
}

/// Returns `number` if the number is the status of an error.
std::optional<int> errorStatus(std::optional<std::int64_t> number) {
  return number && *number >= 400 && *number < 600 ? std::optional(static_cast<int>(*number)) : std::nullopt;
}

/// Returns the status after "HTTP " in the error of a job, the form of workers with an HTTP server inside.
std::optional<int> statusNamedIn(std::string_view error) {
  for (std::size_t at = error.find(kHttpStatus); at != std::string_view::npos; at = error.find(kHttpStatus, at + 1)) {
    const char* begin = error.data() + at + kHttpStatus.size();
    std::int64_t number = 0;
    if (std::from_chars(begin, error.data() + error.size(), number).ec != std::errc()) continue;
    if (const auto status = errorStatus(number)) return status;
  }
  return std::nullopt;
}

/// Returns the status in the integer `code` of an object.
std::optional<int> statusIn(const json::Document& object) {
  const auto code = object.find("code");
  return code ? errorStatus(json::toInteger(*code)) : std::nullopt;
}

/// `output` is the object around the error, or the error.
ApiResponse errorAnswer(const json::Value& error, const json::Document& output) {
  std::optional<int> status;
  if (error.kind == json::Kind::object) status = statusIn(*read(error.raw, kMembers));
  if (!status) status = statusIn(output);
  const int answered = status.value_or(400);
  if (error.kind != json::Kind::object) {
    return {answered, openAiError(answered, json::toText(error).value_or(std::string(error.raw)))};
  }
  return {answered, json::object([&](json::ObjectWriter& out) { out.raw("error", error.raw); })};
}

/// Returns the JSON text inside a value. A list of a single element gives the element, and a string that holds JSON
/// gives the JSON.
std::string unwrapped(std::string_view output) {
  std::string text(output);
  if (const auto list = read(text, 2); list && list->root.kind == json::Kind::array && list->elements.size() == 1) {
    text = std::string(list->elements[0].raw);
  }
  if (const auto string = read(text, 0); string && string->root.kind == json::Kind::string) {
    std::string inside = json::decode(string->root.raw);
    if (json::valid(inside)) return inside;
  }
  return text;
}

bool isString(std::string_view output) { return output.find_first_not_of(" \t\r\n") == output.find('"'); }

/// Returns the JSON text without line ends, which would end an event. JSON text has line ends only between tokens.
std::string oneLine(std::string_view json) {
  std::string line(json);
  std::replace_if(
      line.begin(), line.end(), [](char c) { return c == '\n' || c == '\r'; }, ' ');
  return line;
}

std::string joined(const std::vector<std::string>& outputs) {
  if (std::all_of(outputs.begin(), outputs.end(), isString)) {
    std::string text;
    for (const std::string& output : outputs) text += json::decode(read(output, 0)->root.raw);
    std::string string;
    json::appendValue(string, text);
    return string;
  }
  return json::array([&](json::ArrayWriter& out) {
    for (const std::string& output : outputs) out.raw(output);
  });
}

/// Returns whether the body of a POST asks for a stream.
Result<bool> readsAsStream(std::string_view body) {
  const auto scanned = json::read(body, kMembers);
  if (const auto* fault = std::get_if<json::Fault>(&scanned)) {
    return invalid("the body is not valid JSON: " + std::string(fault->reason) + " (at byte " +
                   std::to_string(fault->offset) + ")");
  }
  const auto& document = std::get<json::Document>(scanned);
  if (document.root.kind != json::Kind::object) return invalid("the body must be a JSON object");
  const auto stream = document.find("stream");
  const bool isListed = document.members.size() < kMembers;  // otherwise the member may stand behind the listed ones
  if (isListed && (!stream || stream->kind == json::Kind::null)) return false;
  const auto value = isListed ? json::toBoolean(*stream) : std::nullopt;
  if (value) return *value;
  return invalid("stream must be true, false or null, among at most 1,000 keys of the body");
}

}  // namespace

Result<OpenAiRequest> readOpenAiRequest(std::string_view route, std::optional<std::string_view> body) {
  const auto isStream = body ? readsAsStream(*body) : Result<bool>(false);
  if (!isStream) return isStream.failure();
  return OpenAiRequest{*isStream, json::object([&](json::ObjectWriter& out) {
                         out.object("input", [&](json::ObjectWriter& input) {
                           input.member("openai_route", route);
                           if (body) input.raw("openai_input", *body);
                         });
                       })};
}

std::optional<ApiResponse> openAiErrorIn(std::string_view output) {
  const std::string text = unwrapped(output);
  const auto document = read(text, kMembers);
  const auto error = document ? errorIn(*document) : std::nullopt;
  return error ? std::optional(errorAnswer(*error, *document)) : std::nullopt;
}

ApiResponse wholeOpenAiAnswer(const std::vector<std::string>& chunks, std::string_view output) {
  const std::string whole = chunks.empty() ? std::string(output.empty() ? "null" : output) : joined(chunks);
  if (auto error = openAiErrorIn(whole)) return *std::move(error);
  return {200, unwrapped(whole)};
}

ApiResponse failedOpenAiAnswer(const Job& job) {
  if (job.state == JobState::timedOut) {
    return {504, openAiError(504, job.error), {{"x-should-retry", "false"}}};
  }
  if (job.state == JobState::cancelled) {
    return {500, openAiError(500, "the job " + job.id + " was cancelled"), {{"x-should-retry", "false"}}};
  }
  const int status = statusNamedIn(job.error).value_or(500);
  return {status, openAiError(status, job.error)};
}

std::string_view lateOpenAiSentence(JobAfterCall job) {
  return job == JobAfterCall::goesOn
             ? "the job takes longer than 600 seconds and goes on: repeat the call with the same Idempotency-Key"
             : "the job took longer than 600 seconds and was cancelled: ask for less, or use /run";
}

ApiResponse lateOpenAiAnswer(JobAfterCall job) {
  ApiResponse response{504, openAiError(504, lateOpenAiSentence(job))};
  if (job == JobAfterCall::isCancelled) response.headers.emplace_back("x-should-retry", "false");
  return response;
}

ApiResponse halfClosedOpenAiAnswer(JobAfterCall job) {
  return {400, openAiError(400, job == JobAfterCall::goesOn
                                    ? "the client has closed its side of the connection, and the job goes on: keep the "
                                      "connection open until the answer"
                                    : "the client has closed its side of the connection, so the job was cancelled: "
                                      "keep the connection open until the answer")};
}

std::optional<std::string> OutputJoiner::add(const Chunk& chunk) {
  if (!chunk.partial) {
    pieces_.clear();
    return chunk.output;
  }
  if (pieces_.size() <= kMaxOpenAiBytes) pieces_ += json::decode(read(chunk.output, 0)->root.raw);
  // The last piece has no mark. No earlier piece completes an object or an array.
  if (pieces_.size() > kMaxOpenAiBytes || !json::valid(pieces_)) return std::nullopt;
  return std::exchange(pieces_, {});
}

std::string OpenAiEvents::add(std::string_view output) {
  const std::size_t had = held_.size();
  const auto document = read(output, kElements);
  const bool isList = document && document->root.kind == json::Kind::array && document->elements.size() < kElements;
  if (isList) {
    for (const json::Value& element : document->elements) append(element);
  } else if (document) {
    append(document->root);
  }
  return removeWhole(had);
}

void OpenAiEvents::append(const json::Value& value) {
  std::string text;
  if (value.kind == json::Kind::string) {
    text = json::decode(value.raw);
  } else {
    text = std::string(closing()) + "data: " + oneLine(value.raw) + "\n\n";
  }
  note(text);
  held_ += text;
}

// Returns the held text to the end of the last event. The text before `from` ends no event.
std::string OpenAiEvents::removeWhole(std::size_t from) {
  constexpr std::string_view kBlankLines[] = {"\n\n", "\n\r\n"};
  std::size_t end = 0;
  for (const std::string_view line : kBlankLines) {
    const std::size_t begin = from - std::min(from, line.size() - 1);
    const std::size_t at = std::string_view(held_).substr(begin).rfind(line);
    if (at != std::string_view::npos) end = std::max(end, begin + at + line.size());
  }
  if (end > 0) isInPieces_ = false;
  if (held_.size() - end > kMostHeld) {
    end = held_.size();
    isInPieces_ = true;
  }
  std::string whole = held_.substr(0, end);
  held_.erase(0, end);
  return whole;
}

void OpenAiEvents::note(std::string_view added) {
  std::string last(added.substr(added.size() - std::min(added.size(), 2 * kLastBytes)));
  std::erase(last, '\r');
  tail_ += last;
  if (tail_.size() > kLastBytes) tail_.erase(0, tail_.size() - kLastBytes);
}

bool OpenAiEvents::isBetweenEvents() const { return tail_.empty() || tail_.ends_with("\n\n"); }

std::string OpenAiEvents::comment(std::string_view text) const {
  return isInPieces_ ? std::string() : ": " + std::string(text) + "\n\n";
}

std::string OpenAiEvents::end() {
  const std::size_t last = tail_.find_last_not_of('\n');
  const bool isDone = last != std::string::npos && std::string_view(tail_).substr(0, last + 1).ends_with(kDone);
  std::string text = std::exchange(held_, {}) + std::string(closing());
  return isDone ? text : text + std::string(kDone) + "\n\n";
}

std::string OpenAiEvents::error(std::string_view sentence) { return errorObject(openAiError(500, sentence)); }

std::string OpenAiEvents::errorObject(std::string_view json) {
  held_.clear();
  return (isInPieces_ ? "\n\ndata: " : "data: ") + oneLine(json) + "\n\n";
}

}  // namespace jobq
