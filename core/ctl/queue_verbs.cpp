// `jobqctl health`, `job list` and `purge`: an endpoint's line of jobs as a whole.
#include "core/ctl/reply_reader.h"
#include "core/ctl/table_print.h"
#include "core/ctl/verbs.h"

namespace jobq::ctl {
namespace {

std::string pathOf(const Call& call, const std::string& operation) {
  return "/v2/" + ApiClient::segment(call.arguments.words[0]) + "/" + operation;
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

// What is said of the page below the table: nothing when it has all there is.
void printRest(const Poco::JSON::Object& page, std::size_t shown, std::ostream& out) {
  if (!page.optValue("hasMore", false)) return;
  const auto next = page.optValue<std::uint64_t>("offset", 0) + shown;
  out << "\n" << shown << " of " << cell(page, "total") << " jobs; --offset " << next << " shows the next ones.\n";
}

}  // namespace

ExitCode showHealth(const Call& call) {
  const std::string answer = call.api.get(pathOf(call, "health"));
  if (call.json) {
    printAnswer(answer, call.out);
    return ExitCode::ok;
  }
  const auto health = readObject(answer);
  printCounters(*health, "jobs", {"inQueue", "inProgress", "completed", "failed", "retried"}, call.out);
  call.out << '\n';
  printCounters(*health, "workers", {"idle", "initializing", "ready", "running", "throttled", "unhealthy"}, call.out);
  call.out << '\n';
  printCounters(*health, "webhooks", {"owed", "oldestMs"}, call.out);
  return ExitCode::ok;
}

ExitCode listJobs(const Call& call) {
  std::string path = pathOf(call, "requests");
  char before = '?';
  for (const char* name : {"status", "limit", "offset"}) {
    if (!call.arguments.has(name)) continue;
    path += before + std::string(name) + "=" + ApiClient::segment(call.arguments.value(name));
    before = '&';
  }
  const std::string answer = call.api.get(path);
  if (call.json) {
    printAnswer(answer, call.out);
    return ExitCode::ok;
  }
  const auto page = readObject(answer);
  const auto jobs = objects(page->getArray("requests"));
  Table table({"JOB", "STATUS", "DELAY MS", "EXECUTION MS", "RETRIES", "WORKER", "ERROR"});
  for (const auto& job : jobs) {
    table.add({cell(*job, "id"), cell(*job, "status"), cell(*job, "delayTime"), cell(*job, "executionTime"),
               cell(*job, "retries"), cell(*job, "workerId"), cell(*job, "error")});
  }
  table.print(call.out);
  printRest(*page, jobs.size(), call.out);
  return ExitCode::ok;
}

ExitCode purgeQueue(const Call& call) {
  const std::string answer = call.api.post(pathOf(call, "purge-queue"), "");
  if (call.json) {
    printAnswer(answer, call.out);
    return ExitCode::ok;
  }
  call.out << cell(*readObject(answer), "removed") << " waiting jobs are gone; running ones go on.\n";
  return ExitCode::ok;
}

}  // namespace jobq::ctl
