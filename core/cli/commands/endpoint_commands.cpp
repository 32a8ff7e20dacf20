// `jobqctl endpoint ...`: shows, makes, changes, pauses and deletes endpoints.
#include "core/cli/answer_reader.h"
#include "core/cli/commands.h"
#include "core/cli/field_options.h"
#include "core/client/table_print.h"

namespace jobq::cli {
namespace {

constexpr const char* kEndpointsPath = "/v1/endpoints";

std::string endpointPath(const Invocation& invocation) {
  return std::string(kEndpointsPath) + "/" + ApiClient::segment(invocation.arguments.words[0]);
}

ExitCode printEndpoint(const Invocation& invocation, const std::string& answer) {
  if (!printIfJson(invocation, answer) && !printIfQuiet(invocation, answer)) {
    printMembers(answer, {"workers"}, invocation.out);
  }
  return ExitCode::ok;
}

void printWorkers(const Poco::JSON::Object& endpoint, std::ostream& out) {
  Table table({"WORKER", "STATE", "VERSION", "IMAGE", "STARTED", "NODE"});
  for (const auto& worker : objects(endpoint.getArray("workers"))) {
    table.add({cell(*worker, "id"), cell(*worker, "state"), cell(*worker, "slsVersion"), cell(*worker, "image"),
               cell(*worker, "lastStartedAt"), cell(*worker, "node")});
  }
  table.print(out);
}

ExitCode pauseOrResume(const Invocation& invocation, const std::string& command, const std::string& meaning) {
  const std::string answer = invocation.api.post(endpointPath(invocation) + "/" + command, "");
  if (!printIfJson(invocation, answer))
    invocation.out << "The endpoint " << harmless(invocation.arguments.words[0]) << " is " << meaning << "\n";
  return ExitCode::ok;
}

}  // namespace

ExitCode listEndpoints(const Invocation& invocation) {
  const std::string answer = getList(invocation.api, kEndpointsPath);
  if (printIfJson(invocation, answer) || printIfQuiet(invocation, readArray(answer))) return ExitCode::ok;
  Table table({"ID", "NAME", "IMAGE", "TEMPLATE", "WORKERS", "VERSION", "RELEASE", "PAUSED", "FROM"});
  for (const auto& endpoint : objects(readArray(answer))) {
    const auto release = endpoint->getObject("release");
    table.add({cell(*endpoint, "id"), cell(*endpoint, "name"), cell(*endpoint, "image"), cell(*endpoint, "templateId"),
               cell(*endpoint, "workersMin") + "-" + cell(*endpoint, "workersMax"), cell(*endpoint, "version"),
               release.isNull() ? "-" : cell(*release, "state"), endpoint->optValue("paused", false) ? "yes" : "no",
               endpoint->optValue("static", false) ? "file" : "template"});
  }
  table.print(invocation.out);
  return ExitCode::ok;
}

ExitCode showEndpoint(const Invocation& invocation) {
  const bool workers = invocation.arguments.has("workers");
  const std::string answer = invocation.api.get(endpointPath(invocation) + (workers ? "?includeWorkers=true" : ""));
  printEndpoint(invocation, answer);
  if (!workers || invocation.json) return ExitCode::ok;
  invocation.out << '\n';
  printWorkers(*readObject(answer), invocation.out);
  return ExitCode::ok;
}

ExitCode createEndpoint(const Invocation& invocation) {
  return printEndpoint(invocation,
                       invocation.api.post(kEndpointsPath, formBody(invocation.arguments, endpointOptions())));
}

ExitCode updateEndpoint(const Invocation& invocation) {
  return printEndpoint(invocation, invocation.api.post(endpointPath(invocation) + "/update",
                                                       formBody(invocation.arguments, endpointChanges())));
}

ExitCode deleteEndpoint(const Invocation& invocation) {
  const std::string answer = invocation.api.remove(endpointPath(invocation));
  if (!printIfJson(invocation, answer))
    invocation.out << "The endpoint " << harmless(invocation.arguments.words[0]) << " is deleted with all its jobs.\n";
  return ExitCode::ok;
}

ExitCode pauseEndpoint(const Invocation& invocation) {
  return pauseOrResume(invocation, "pause", "paused: its jobs wait, running jobs continue.");
}

ExitCode resumeEndpoint(const Invocation& invocation) {
  return pauseOrResume(invocation, "resume", "no longer paused.");
}

}  // namespace jobq::cli
