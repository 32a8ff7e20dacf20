// `jobqctl run`, `job show`, `job cancel` and `job retry`. The JSON of a job belongs to the caller: the bytes are sent
// and printed unchanged.
#include <algorithm>
#include <charconv>
#include <variant>

#include "core/base/words.h"
#include "core/cli/answer_reader.h"
#include "core/cli/commands.h"
#include "core/client/input_text.h"
#include "core/client/table_print.h"
#include "jobq/job.h"
#include "jobq/json.h"
#include "jobq/json_writer.h"

namespace jobq::cli {
namespace {

constexpr Millis kDefaultWait{90'000};
constexpr Millis kLongestWait{300'000};

std::string pathOf(const std::string& endpoint, const std::string& operation) {
  return "/v2/" + ApiClient::segment(endpoint) + "/" + operation;
}

// Returns the body of a submission; the input is inserted unchanged.
std::string requestBody(const std::string& argument) {
  const bool named = argument == "-" || argument.starts_with('@');
  const std::string input = named ? readSource(argument == "-" ? argument : argument.substr(1)) : argument;
  checkObject(input, "the input", "{\"text\": \"hello\"}");
  return json::object([&input](json::ObjectWriter& out) { out.raw("input", input); });
}

// The server judges the range, so that the user reads the server's sentence. Here the value only has to be a number.
Millis waitOf(const Arguments& arguments) {
  if (!arguments.has("wait")) return kDefaultWait;
  const std::string text = arguments.value("wait");
  std::int64_t wait = 0;
  const auto [at, error] = std::from_chars(text.data(), text.data() + text.size(), wait);
  if (error != std::errc() || at != text.data() + text.size()) {
    throw CommandError(ExitCode::usage, "--wait takes whole milliseconds, not '" + harmless(text) + "'");
  }
  return Millis(wait);
}

json::Document readJob(const std::string& answer) {
  const auto scanned = json::read(answer);
  const auto* job = std::get_if<json::Document>(&scanned);
  if (!job || !job->find("status")) {
    throw CommandError(ExitCode::unreachable, "the answer does not come from a jobq server: check the address");
  }
  return *job;
}

std::string statusOf(const json::Document& job) { return json::toText(*job.find("status")).value_or(""); }

void printLines(std::string_view text, std::ostream& out) {
  eachLine(text, [&out](std::string_view line) { out << "  " << harmless(line) << '\n'; });
}

// The workers of the public SDK send a JSON object with a traceback as the error. Such an object is shown member by
// member, and each text in its own lines.
void printError(const std::string& error, std::ostream& out) {
  out << "error:\n";
  const auto scanned = json::read(error);
  const auto* document = std::get_if<json::Document>(&scanned);
  if (!document || document->root.kind != json::Kind::object) return printLines(error, out);
  for (const auto& [name, value] : document->members) {
    const std::string text = json::toText(value).value_or(std::string(value.raw));
    const bool isBlock = text.find('\n') != std::string::npos;
    out << "  " << harmless(name) << ':' << (isBlock ? "\n" : " " + harmless(text) + "\n");
    if (isBlock) printLines(text, out);
  }
}

// Input and output are the caller's text. The table would change control characters, so both are written without the
// table.
void printJob(const json::Document& job, std::ostream& out) {
  struct Row {
    const char* label;
    const char* key;
    const char* unit;
  };
  constexpr Row kRows[] = {{"id", "id", ""},
                           {"status", "status", ""},
                           {"reason", "queueReason", ""},
                           {"advice", "queueAdvice", ""},
                           {"position", "queuePosition", ""},
                           {"created", "createdAt", ""},
                           {"started", "startedAt", ""},
                           {"ended", "endedAt", ""},
                           {"key", "keyId", ""},
                           {"worker", "workerId", ""},
                           {"delay", "delayTime", " ms"},
                           {"execution", "executionTime", " ms"},
                           {"retries", "retries", ""}};
  Table table;
  for (const Row& row : kRows) {
    const auto member = job.find(row.key);
    if (!member) continue;
    std::string value = json::toText(*member).value_or(std::string(member->raw));
    // The server counts up to 100 jobs ahead.
    if (std::string_view(row.key) == "queuePosition" && value == "101") value = "100+";
    table.add({row.label, value.empty() ? "-" : value + row.unit});
  }
  const auto error = job.find("error");
  const std::string reason = error ? json::toText(*error).value_or(std::string(error->raw)) : "";
  const bool isLong = reason.find('\n') != std::string::npos || reason.starts_with('{');
  if (error && !isLong) table.add({"error", reason.empty() ? "-" : reason});
  table.print(out);
  if (isLong) printError(reason, out);
  for (const char* body : {"input", "output"}) {
    if (const auto text = job.find(body)) out << body << ":\n" << text->raw << '\n';
  }
}

ExitCode showAnswer(const Invocation& invocation, const std::string& answer) {
  if (!printIfJson(invocation, answer) && !printIfQuiet(invocation, answer)) printJob(readJob(answer), invocation.out);
  return ExitCode::ok;
}

ExitCode changeJob(const Invocation& invocation, const std::string& operation) {
  const std::string path = operation + ApiClient::segment(invocation.arguments.words[1]);
  return showAnswer(invocation, invocation.api.post(pathOf(invocation.arguments.words[0], path), ""));
}

}  // namespace

ExitCode runJob(const Invocation& invocation) {
  const bool sync = invocation.arguments.has("sync");
  if (invocation.arguments.has("wait") && !sync)
    throw CommandError(ExitCode::usage, "--wait has a meaning only with --sync");
  const Millis wait = waitOf(invocation.arguments);
  const std::string body = requestBody(invocation.arguments.words[1]);
  const std::string& endpoint = invocation.arguments.words[0];
  if (!sync) return showAnswer(invocation, invocation.api.post(pathOf(endpoint, "run"), body));

  const std::string path = pathOf(endpoint, "runsync?wait=" + std::to_string(wait.count()));
  const std::string answer = invocation.api.post(path, body, std::clamp(wait, Millis{0}, kLongestWait));
  const bool completed = statusOf(readJob(answer)) == nameOf(JobState::completed);
  showAnswer(invocation, answer);
  return completed ? ExitCode::ok : ExitCode::notCompleted;
}

ExitCode showJob(const Invocation& invocation) {
  const std::string members = invocation.arguments.has("input") ? "?include=times,input" : "?include=times";
  const std::string operation = "status/" + ApiClient::segment(invocation.arguments.words[1]) + members;
  return showAnswer(invocation, invocation.api.get(pathOf(invocation.arguments.words[0], operation)));
}

ExitCode cancelJob(const Invocation& invocation) { return changeJob(invocation, "cancel/"); }

ExitCode retryJob(const Invocation& invocation) { return changeJob(invocation, "retry/"); }

}  // namespace jobq::cli
