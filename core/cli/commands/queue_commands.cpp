// `jobqctl health`, `job list` and `purge`: the queue of an endpoint as a whole.
#include <unistd.h>

#include <algorithm>
#include <cstdint>
#include <iostream>
#include <utility>

#include "core/base/clock.h"
#include "core/cli/answer_reader.h"
#include "core/cli/commands.h"
#include "core/client/table_print.h"

namespace jobq::cli {
namespace {

std::string pathOf(const Invocation& invocation, const std::string& operation) {
  return "/v2/" + ApiClient::segment(invocation.arguments.words[0]) + "/" + operation;
}

void printCounters(const Poco::JSON::Object& health, const std::string& group, const std::vector<std::string>& names,
                   std::ostream& out) {
  const auto counters = health.getObject(group);
  std::vector<std::string> head{group};
  std::vector<std::string> row{""};
  for (const std::string& name : names) {
    head.push_back(name);
    row.push_back(counters.isNull() ? "-" : cell(*counters, name));
  }
  Table table(head);
  table.add(row);
  table.print(out);
}

/// Returns the time since `createdAt` in its largest unit, such as `3m`, by the clock of this machine.
std::string ageSince(const std::string& createdAt) {
  const auto created = fromIso8601(createdAt);
  if (!created) return "-";
  const std::int64_t seconds = std::max<std::int64_t>(0, (SystemWallClock().now() - *created).count() / 1'000);
  constexpr std::pair<std::int64_t, const char*> kUnits[] = {{86'400, "d"}, {3'600, "h"}, {60, "m"}};
  for (const auto& [length, name] : kUnits) {
    if (seconds >= length) return std::to_string(seconds / length) + name;
  }
  return std::to_string(seconds) + "s";
}

std::string counterCell(const Poco::JSON::Object& health, const std::string& group, const std::string& name) {
  const auto counters = health.getObject(group);
  return counters.isNull() ? "-" : cell(*counters, name);
}

ExitCode showAllHealth(const Invocation& invocation) {
  const std::string answer = getList(invocation.api, "/v1/health");
  if (printIfJson(invocation, answer)) return ExitCode::ok;
  Table table({"ENDPOINT", "NAME", "IN QUEUE", "IN PROGRESS", "COMPLETED", "FAILED", "IDLE", "RUNNING", "UNHEALTHY",
               "WEBHOOKS OWED", "ADVICE"});
  for (const auto& health : objects(readArray(answer))) {
    const auto jobs = [&health](const char* name) { return counterCell(*health, "jobs", name); };
    const auto workers = [&health](const char* name) { return counterCell(*health, "workers", name); };
    table.add({cell(*health, "id"), cell(*health, "name"), jobs("inQueue"), jobs("inProgress"), jobs("completed"),
               jobs("failed"), workers("idle"), workers("running"), workers("unhealthy"),
               counterCell(*health, "webhooks", "owed"), cell(*health, "advice")});
  }
  table.print(invocation.out);
  return ExitCode::ok;
}

// Prints a line about the remaining jobs below the table, or no line if the page is the last.
void printRest(const Poco::JSON::Object& page, std::size_t shown, std::ostream& out) {
  if (!page.optValue("hasMore", false)) return;
  if (!page.has("total")) {
    out << "\n--cursor " << cell(page, "cursor") << " shows the next ones.\n";
    return;
  }
  const auto next = page.optValue<std::uint64_t>("offset", 0) + shown;
  out << "\n" << shown << " of " << cell(page, "total") << " jobs; --offset " << next << " shows the next ones.\n";
}

// Asks a user at a terminal. Without a terminal the answer is no.
bool isConfirmed(const std::string& question) {
  if (isatty(STDIN_FILENO) == 0) return false;
  std::cerr << question << " [y/N] ";
  std::string answer;
  std::getline(std::cin, answer);
  return answer == "y" || answer == "yes";
}

}  // namespace

ExitCode showHealth(const Invocation& invocation) {
  if (invocation.arguments.words.empty()) return showAllHealth(invocation);
  const std::string answer = invocation.api.get(pathOf(invocation, "health"));
  if (printIfJson(invocation, answer)) return ExitCode::ok;
  const auto health = readObject(answer);
  printCounters(*health, "jobs", {"inQueue", "inProgress", "completed", "failed", "retried"}, invocation.out);
  invocation.out << '\n';
  printCounters(*health, "workers", {"idle", "initializing", "ready", "running", "throttled", "unhealthy"},
                invocation.out);
  invocation.out << '\n';
  printCounters(*health, "webhooks", {"owed", "oldestMs"}, invocation.out);
  if (health->has("advice")) invocation.out << "\nadvice: " << cell(*health, "advice") << '\n';
  return ExitCode::ok;
}

ExitCode listJobs(const Invocation& invocation) {
  const Arguments& arguments = invocation.arguments;
  const bool isFiltered = arguments.has("key-id") || arguments.has("prefix") || arguments.has("cursor");
  if (isFiltered && arguments.has("offset")) {
    throw CommandError(ExitCode::usage, "--offset does not go with --key-id, --prefix and --cursor: use --cursor");
  }
  std::string query = isFiltered ? "?endpoint=" + ApiClient::encode(arguments.words[0]) : "";
  constexpr std::pair<const char*, const char*> kParameters[] = {{"status", "status"}, {"limit", "limit"},
                                                                 {"offset", "offset"}, {"cursor", "cursor"},
                                                                 {"key-id", "keyId"},  {"prefix", "id"}};
  for (const auto& [option, parameter] : kParameters) {
    if (!arguments.has(option)) continue;
    query += (query.empty() ? "?" : "&") + std::string(parameter) + "=" + ApiClient::encode(arguments.value(option));
  }
  const std::string answer = invocation.api.get((isFiltered ? "/v1/jobs" : pathOf(invocation, "requests")) + query);
  if (printIfJson(invocation, answer)) return ExitCode::ok;
  const auto page = readObject(answer);
  const auto list = page->getArray(isFiltered ? "jobs" : "requests");
  if (printIfQuiet(invocation, list)) return ExitCode::ok;
  const auto jobs = objects(list);
  Table table({"JOB", "STATUS", "AGE", "DELAY MS", "EXECUTION MS", "RETRIES", "WORKER", "KEY", "ERROR"});
  for (const auto& job : jobs) {
    table.add({cell(*job, "id"), cell(*job, "status"), ageSince(cell(*job, "createdAt")), cell(*job, "delayTime"),
               cell(*job, "executionTime"), cell(*job, "retries"), cell(*job, "workerId"), cell(*job, "keyId"),
               cell(*job, "error")});
  }
  table.print(invocation.out);
  printRest(*page, jobs.size(), invocation.out);
  return ExitCode::ok;
}

ExitCode purgeQueue(const Invocation& invocation) {
  const std::string endpoint = harmless(invocation.arguments.words[0]);
  if (!invocation.arguments.has("yes") && !isConfirmed("Delete all waiting jobs of " + endpoint + "?")) {
    throw CommandError(ExitCode::usage, "no waiting job of " + endpoint + " is deleted: answer y, or give --yes");
  }
  const std::string answer = invocation.api.post(pathOf(invocation, "purge-queue"), "");
  if (printIfJson(invocation, answer)) return ExitCode::ok;
  invocation.out << cell(*readObject(answer), "removed") << " waiting jobs are deleted; running jobs continue.\n";
  return ExitCode::ok;
}

}  // namespace jobq::cli
