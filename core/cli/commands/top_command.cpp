// `jobqctl top`: a live table of endpoints, the busiest first.
#include <algorithm>
#include <chrono>
#include <cmath>
#include <iomanip>
#include <iostream>
#include <map>
#include <optional>
#include <sstream>

#include "core/cli/answer_reader.h"
#include "core/cli/commands.h"
#include "core/cli/live_screen.h"
#include "core/client/table_print.h"
#include "jobq/json_writer.h"

namespace jobq::cli {
namespace {

using SteadyClock = std::chrono::steady_clock;

constexpr Millis kDefaultInterval{1'000};
constexpr DurationRange kIntervals{Millis{100}, Millis{3'600'000}};

/// State of an endpoint at one moment.
struct Row {
  std::string id;
  std::string name;
  std::string release;
  std::int64_t version = 0;
  std::string reason;
  bool paused = false;
  std::map<std::string, std::int64_t> workers;
  std::map<std::string, std::int64_t> jobs;
  SteadyClock::time_point at;
  std::optional<double> finishedPerSecond;  ///< since the state before; empty for the first state

  std::int64_t finished() const { return jobs.at("completed") + jobs.at("failed"); }
};
using Rows = std::vector<Row>;

std::map<std::string, std::int64_t> counters(const Poco::JSON::Object& health, const std::string& group,
                                             std::initializer_list<const char*> names) {
  const auto object = health.getObject(group);
  std::map<std::string, std::int64_t> numbers;
  for (const char* name : names) numbers[name] = object.isNull() ? 0 : object->optValue<std::int64_t>(name, 0);
  return numbers;
}

Row rowOf(const Poco::JSON::Object& endpoint, const std::string& answer) {
  Row row;
  row.id = cell(endpoint, "id");
  row.name = endpoint.optValue<std::string>("name", "");
  row.paused = endpoint.optValue("paused", false);
  if (const auto release = endpoint.getObject("release")) {
    row.release = cell(*release, "state");
    row.version = release->optValue<std::int64_t>("version", 0);
    row.reason = release->optValue<std::string>("reason", "");
  }
  const auto health = readObject(answer);
  row.workers = counters(*health, "workers", {"running", "idle", "initializing", "unhealthy"});
  row.jobs = counters(*health, "jobs", {"inQueue", "inProgress", "completed", "failed"});
  row.at = SteadyClock::now();
  return row;
}

// Returns no row for an endpoint that was deleted between the two calls, or is not served yet.
std::optional<Row> readRow(const ApiClient& api, const Poco::JSON::Object& endpoint) {
  try {
    return rowOf(endpoint, api.get("/v2/" + ApiClient::segment(cell(endpoint, "id")) + "/health"));
  } catch (const CommandError& failure) {
    if (failure.code() != ExitCode::refused) throw;
    return std::nullopt;
  }
}

void compare(Row& row, const Rows& before) {
  const auto old = std::find_if(before.begin(), before.end(), [&row](const Row& other) { return other.id == row.id; });
  if (old == before.end()) return;
  const double seconds = std::chrono::duration<double>(row.at - old->at).count();
  const auto finished = std::max<std::int64_t>(row.finished() - old->finished(), 0);
  if (seconds > 0) row.finishedPerSecond = std::round(static_cast<double>(finished) / seconds * 10) / 10;
}

Rows readView(const Invocation& invocation, const Rows& before) {
  const bool one = !invocation.arguments.words.empty();
  const std::string path = one ? "/" + ApiClient::segment(invocation.arguments.words[0]) : "";
  const std::string answer =
      one ? invocation.api.get("/v1/endpoints" + path) : getList(invocation.api, "/v1/endpoints");
  const auto endpoints = one ? std::vector{readObject(answer)} : objects(readArray(answer));
  Rows rows;
  for (const auto& endpoint : endpoints) {
    auto row = readRow(invocation.api, *endpoint);
    if (!row) continue;
    compare(*row, before);
    rows.push_back(std::move(*row));
  }
  const auto load = [](const Row& row) { return row.jobs.at("inQueue") + row.jobs.at("inProgress"); };
  std::stable_sort(rows.begin(), rows.end(), [&load](const Row& a, const Row& b) { return load(a) > load(b); });
  return rows;
}

// Returns the reason for which the first queued job waits, in the words of `queueReason` of /status where possible.
std::string queueState(const Row& row) {
  if (row.paused) return "paused";
  if (row.jobs.at("inQueue") == 0) return "empty";
  if (row.workers.at("idle") > 0) return "moving";
  if (row.workers.at("running") > 0) return "workers_busy";
  return row.workers.at("initializing") > 0 ? "starting" : "no_workers";
}

std::string rateCell(const Row& row) {
  if (!row.finishedPerSecond) return "-";
  std::ostringstream out;
  out << std::fixed << std::setprecision(1) << *row.finishedPerSecond;
  return out.str();
}

std::string releaseCell(const Row& row) {
  return std::to_string(row.version) + " " + row.release + (row.reason.empty() ? "" : ": " + row.reason);
}

std::string picture(const Rows& rows) {
  Table table({"ENDPOINT", "NAME", "RUNNING", "IDLE", "STARTING", "STUCK", "IN QUEUE", "IN PROGRESS", "FINISHED/S",
               "QUEUE", "RELEASE"});
  for (const Row& row : rows) {
    const auto number = [](std::int64_t value) { return std::to_string(value); };
    table.add({row.id, row.name.empty() ? "-" : row.name, number(row.workers.at("running")),
               number(row.workers.at("idle")), number(row.workers.at("initializing")),
               number(row.workers.at("unhealthy")), number(row.jobs.at("inQueue")), number(row.jobs.at("inProgress")),
               rateCell(row), queueState(row), releaseCell(row)});
  }
  std::ostringstream out;
  table.print(out);
  return out.str();
}

// Writes the release in the form of /v1/endpoints.
void writeRelease(json::ObjectWriter& out, const Row& row) {
  out.member("version", row.version);
  out.member("state", row.release);
  if (!row.reason.empty()) out.member("reason", row.reason);
}

void writeRow(json::ObjectWriter& out, const Row& row) {
  out.member("id", row.id);
  out.member("name", row.name);
  out.member("workers", row.workers);
  out.member("jobs", row.jobs);
  out.raw("finishedPerSecond", row.finishedPerSecond ? rateCell(row) : "null");
  out.member("queue", queueState(row));
  out.object("release", [&row](json::ObjectWriter& release) { writeRelease(release, row); });
}

std::string toJson(const Rows& rows) {
  const auto writeRows = [&rows](json::ArrayWriter& endpoints) {
    for (const Row& row : rows) endpoints.object([&row](json::ObjectWriter& endpoint) { writeRow(endpoint, row); });
  };
  return json::object([&](json::ObjectWriter& out) { out.array("endpoints", writeRows); }) + "\n";
}

std::string toJson(const CommandError& failure) {
  return json::object([&failure](json::ObjectWriter& out) { out.member("error", failure.what()); }) + "\n";
}

std::string shown(const Rows& rows, bool json) { return json ? toJson(rows) : picture(rows); }

// After the restart of a server the view continues: an unreachable server is shown, and the next call is made as usual.
void watch(const Invocation& invocation, Millis interval) {
  LiveScreen screen;
  Rows rows = readView(invocation, {});
  std::string text = shown(rows, invocation.json);
  for (;;) {
    screen.draw(invocation.json ? text : text + "\n");
    if (!std::cout || !screen.pause(interval)) return;
    try {
      rows = readView(invocation, rows);
      text = shown(rows, invocation.json);
    } catch (const CommandError& failure) {
      if (failure.code() != ExitCode::unreachable) throw;
      text = invocation.json ? toJson(failure) : harmless(failure.what()) + "\n";
    }
  }
}

}  // namespace

ExitCode showTop(const Invocation& invocation) {
  const bool once = invocation.arguments.has("once");
  if (once && invocation.arguments.has("interval")) {
    throw CommandError(ExitCode::usage, "--interval has a meaning only without --once");
  }
  const Millis interval = durationOf(invocation.arguments, "interval", kDefaultInterval, kIntervals);
  if (once) {
    invocation.out << shown(readView(invocation, {}), invocation.json);
  } else {
    watch(invocation, interval);
  }
  return ExitCode::ok;
}

}  // namespace jobq::cli
