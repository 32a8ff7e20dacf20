// `jobqctl release status`: prints the progress of a release, at once or when the release is complete or halted.
#include <algorithm>
#include <chrono>
#include <functional>
#include <map>
#include <thread>

#include "core/cli/answer_reader.h"
#include "core/cli/commands.h"
#include "core/client/table_print.h"

namespace jobq::cli {
namespace {

using Endpoints = std::vector<Poco::JSON::Object::Ptr>;

constexpr Millis kReleaseTimeout{300'000};
constexpr DurationRange kWaitTimeouts{Millis{0}, Millis{86'400'000}};
constexpr Millis kPollInterval{200};

struct ReleaseView {
  std::string answer;
  Endpoints endpoints;
};

ReleaseView readRelease(const Invocation& invocation) {
  const bool one = !invocation.arguments.words.empty();
  const std::string path = one ? "/" + ApiClient::segment(invocation.arguments.words[0]) : "";
  ReleaseView seen{invocation.api.get("/v1/endpoints" + path + "?includeWorkers=true"), {}};
  seen.endpoints = one ? Endpoints{readObject(seen.answer)} : objects(readArray(seen.answer));
  return seen;
}

std::string releaseCell(const Poco::JSON::Object& endpoint, const char* key) {
  const auto release = endpoint.getObject("release");
  return release.isNull() ? "-" : cell(*release, key);
}

// Returns the number of workers of each version, the newest first: "3 have 7, 1 has 6".
std::string workersCell(const Poco::JSON::Object& endpoint) {
  std::map<std::int64_t, std::size_t, std::greater<>> versions;
  for (const auto& worker : objects(endpoint.getArray("workers"))) {
    ++versions[worker->optValue<std::int64_t>("slsVersion", 0)];
  }
  std::string text;
  for (const auto& [version, workers] : versions) {
    text += (text.empty() ? "" : ", ") + std::to_string(workers) + (workers == 1 ? " has " : " have ") +
            std::to_string(version);
  }
  return text.empty() ? "none" : text;
}

void print(const Invocation& invocation, const ReleaseView& seen) {
  if (printIfJson(invocation, seen.answer)) return;
  Table table({"ENDPOINT", "VERSION", "STATE", "WORKERS", "REASON"});
  for (const auto& endpoint : seen.endpoints) {
    table.add({cell(*endpoint, "id"), releaseCell(*endpoint, "version"), releaseCell(*endpoint, "state"),
               workersCell(*endpoint), releaseCell(*endpoint, "reason")});
  }
  table.print(invocation.out);
}

bool anyIs(const Endpoints& endpoints, const std::string& state) {
  return std::any_of(endpoints.begin(), endpoints.end(),
                     [&state](const auto& endpoint) { return releaseCell(*endpoint, "state") == state; });
}

}  // namespace

ExitCode showRelease(const Invocation& invocation) {
  const bool wait = invocation.arguments.has("wait");
  if (invocation.arguments.has("timeout") && !wait) {
    throw CommandError(ExitCode::usage, "--timeout has a meaning only with --wait");
  }
  const auto deadline =
      std::chrono::steady_clock::now() + durationOf(invocation.arguments, "timeout", kReleaseTimeout, kWaitTimeouts);
  for (;;) {
    const ReleaseView seen = readRelease(invocation);
    const bool rolling = anyIs(seen.endpoints, "rolling");
    const bool elapsed = std::chrono::steady_clock::now() >= deadline;
    if (wait && rolling && !elapsed) {
      std::this_thread::sleep_for(kPollInterval);
      continue;
    }
    print(invocation, seen);
    if (!wait) return ExitCode::ok;
    if (anyIs(seen.endpoints, "halted")) return ExitCode::halted;
    return rolling ? ExitCode::waitElapsed : ExitCode::ok;
  }
}

}  // namespace jobq::cli
