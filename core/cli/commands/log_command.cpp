// `jobqctl job logs` and `jobqctl worker logs`: print the log lines of a job's handler, or the output of a launched
// worker, once or until the end.
#include <chrono>
#include <optional>
#include <string>
#include <thread>
#include <variant>

#include "core/cli/commands.h"
#include "core/client/table_print.h"
#include "jobq/job.h"
#include "jobq/json.h"

namespace jobq::cli {
namespace {

constexpr std::chrono::milliseconds kBetweenPages{500};

struct LogPage {
  std::string next;
  std::string status;  // of the job, or the state of the worker
  std::string reason;  // of the end of the worker
  bool more = false;
};

json::Document readOrFail(std::string_view text, json::Kind kind) {
  const auto scanned = json::read(text);
  const auto* document = std::get_if<json::Document>(&scanned);
  if (document == nullptr || document->root.kind != kind) {
    throw CommandError(ExitCode::unreachable, "the answer does not come from a jobq server: check the address");
  }
  return *document;
}

std::string memberText(const json::Document& object, std::string_view key) {
  const auto member = object.find(key);
  return member ? json::toText(*member).value_or("") : "";
}

// Prints a line unchanged for --json. Otherwise prints time, level and text, without characters that could steer the
// terminal. Lines of a worker have no level.
void printLine(const json::Value& line, const Invocation& invocation) {
  if (invocation.json) {
    invocation.out << line.raw << '\n';
    return;
  }
  const json::Document object = readOrFail(line.raw, json::Kind::object);
  const std::string level = memberText(object, "level");
  invocation.out << memberText(object, "at") << ' ' << level << (level.empty() ? "" : " ")
                 << harmless(memberText(object, "text")) << '\n';
}

LogPage printPage(const std::string& answer, const Invocation& invocation) {
  const json::Document page = readOrFail(answer, json::Kind::object);
  const auto lines = page.find("lines");
  const json::Document list = readOrFail(lines ? lines->raw : "", json::Kind::array);
  for (const json::Value& line : list.elements) printLine(line, invocation);
  invocation.out.flush();
  const auto more = page.find("more");
  return {.next = memberText(page, "next"),
          .status = memberText(page, page.find("state") ? "state" : "status"),
          .reason = memberText(page, "reason"),
          .more = more && more->raw == "true"};
}

bool hasEnded(const LogPage& page) {
  return page.status != nameOf(JobState::inQueue) && page.status != nameOf(JobState::inProgress);
}

}  // namespace

ExitCode showLog(const Invocation& invocation) {
  const bool follow = invocation.arguments.has("follow");
  const std::string path = "/v2/" + ApiClient::segment(invocation.arguments.words[0]) + "/logs/" +
                           ApiClient::segment(invocation.arguments.words[1]);
  std::string after;
  for (;;) {
    const LogPage page = printPage(invocation.api.get(path + after), invocation);
    if (!invocation.out) return ExitCode::ok;  // main() says why
    after = "?after=" + page.next;
    if (page.more) continue;
    if (!follow) return ExitCode::ok;
    if (hasEnded(page)) return page.status == nameOf(JobState::completed) ? ExitCode::ok : ExitCode::notCompleted;
    std::this_thread::sleep_for(kBetweenPages);
  }
}

ExitCode showWorkerLog(const Invocation& invocation) {
  const Arguments& arguments = invocation.arguments;
  const bool follow = arguments.has("follow");
  const std::string path = "/v1/endpoints/" + ApiClient::segment(arguments.words[0]) + "/workers/" +
                           ApiClient::segment(arguments.words[1]) + "/logs";
  std::string query = arguments.has("tail") ? "?tail=" + ApiClient::segment(arguments.value("tail")) : "";
  for (;;) {
    const LogPage page = printPage(invocation.api.get(path + query), invocation);
    if (!invocation.out) return ExitCode::ok;  // main() says why
    query = "?after=" + page.next;
    if (page.status == "ended") {
      if (!invocation.json) invocation.out << "the worker has ended: " << harmless(page.reason) << '\n';
      return ExitCode::ok;
    }
    if (!follow) return ExitCode::ok;
    std::this_thread::sleep_for(kBetweenPages);
  }
}

}  // namespace jobq::cli
