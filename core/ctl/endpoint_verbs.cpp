// `jobqctl endpoint ...`: who answers which jobs, with how many workers.
#include "core/ctl/form_options.h"
#include "core/ctl/reply_reader.h"
#include "core/ctl/table_print.h"
#include "core/ctl/verbs.h"

namespace jobq::ctl {
namespace {

constexpr const char* kEndpointsPath = "/v1/endpoints";

std::string endpointPath(const Call& call) {
  return std::string(kEndpointsPath) + "/" + ApiClient::segment(call.arguments.words[0]);
}

ExitCode printEndpoint(const Call& call, const std::string& answer) {
  if (call.json) {
    printAnswer(answer, call.out);
  } else {
    printMembers(answer, {"workers"}, call.out);
  }
  return ExitCode::ok;
}

void printWorkers(const Poco::JSON::Object& endpoint, std::ostream& out) {
  Table table({"WORKER", "STATE", "VERSION", "IMAGE", "STARTED"});
  for (const auto& worker : objects(endpoint.getArray("workers"))) {
    table.add({cell(*worker, "id"), cell(*worker, "state"), cell(*worker, "slsVersion"), cell(*worker, "image"),
               cell(*worker, "lastStartedAt")});
  }
  table.print(out);
}

ExitCode pauseOrResume(const Call& call, const std::string& verb, const std::string& meaning) {
  const std::string answer = call.api.post(endpointPath(call) + "/" + verb, "");
  if (call.json) {
    printAnswer(answer, call.out);
  } else {
    call.out << "The endpoint " << harmless(call.arguments.words[0]) << " is " << meaning << "\n";
  }
  return ExitCode::ok;
}

}  // namespace

const std::vector<FieldOption>& endpointFields() {
  static const std::vector<FieldOption> kFields = {
      {"template", "ID", "the template that its workers are made of", "templateId"},
      {"name", "NAME", "its name, for people", "name"},
      {"workers-min", "N", "workers it always has", "workersMin", FieldKind::whole},
      {"workers-max", "N", "workers it may have", "workersMax", FieldKind::whole},
      {"idle-timeout", "SECONDS", "how long a worker above the minimum stays idle", "idleTimeout", FieldKind::whole},
      {"scaler-type", "TYPE", "QUEUE_DELAY or REQUEST_COUNT", "scalerType"},
      {"scaler-value", "N", "seconds in line, or jobs a worker, that it aims at", "scalerValue", FieldKind::whole},
      {"execution-timeout", "MS", "how long a job may run", "executionTimeoutMs", FieldKind::whole},
      {"max-attempts", "N", "how often a job whose worker is lost runs", "maxAttempts", FieldKind::whole},
      {"stop-grace", "MS", "how long a stopped handler may take", "stopGraceMs", FieldKind::whole},
      {"max-stuck", "N", "how many stuck workers are replaced", "maxStuck", FieldKind::whole},
      {"queue-policy", "NAME", "the order of its jobs", "queuePolicy"},
      {"filters", "NAMES", "admission filters, separated by commas, in order", "filters", FieldKind::list},
      {"isolation", "KIND", "where its handlers run", "isolation"},
      {"flashboot", "true|false", "stored only", "flashboot", FieldKind::flag},
  };
  return kFields;
}

ExitCode listEndpoints(const Call& call) {
  const std::string answer = call.api.get(kEndpointsPath);
  if (call.json) {
    printAnswer(answer, call.out);
    return ExitCode::ok;
  }
  Table table({"ID", "NAME", "IMAGE", "TEMPLATE", "WORKERS", "VERSION", "RELEASE", "PAUSED", "FROM"});
  for (const auto& endpoint : objects(readArray(answer))) {
    const auto release = endpoint->getObject("release");
    table.add({cell(*endpoint, "id"), cell(*endpoint, "name"), cell(*endpoint, "image"), cell(*endpoint, "templateId"),
               cell(*endpoint, "workersMin") + "-" + cell(*endpoint, "workersMax"), cell(*endpoint, "version"),
               release.isNull() ? "-" : cell(*release, "state"), endpoint->optValue("paused", false) ? "yes" : "no",
               endpoint->optValue("static", false) ? "file" : "template"});
  }
  table.print(call.out);
  return ExitCode::ok;
}

ExitCode showEndpoint(const Call& call) {
  const bool workers = call.arguments.has("workers");
  const std::string answer = call.api.get(endpointPath(call) + (workers ? "?includeWorkers=true" : ""));
  printEndpoint(call, answer);
  if (!workers || call.json) return ExitCode::ok;
  call.out << '\n';
  printWorkers(*readObject(answer), call.out);
  return ExitCode::ok;
}

ExitCode createEndpoint(const Call& call) {
  return printEndpoint(call, call.api.post(kEndpointsPath, formBody(call.arguments, endpointFields())));
}

ExitCode updateEndpoint(const Call& call) {
  return printEndpoint(call, call.api.post(endpointPath(call) + "/update", formBody(call.arguments, endpointFields())));
}

ExitCode deleteEndpoint(const Call& call) {
  const std::string answer = call.api.remove(endpointPath(call));
  if (call.json) {
    printAnswer(answer, call.out);
  } else {
    call.out << "The endpoint " << harmless(call.arguments.words[0]) << " is deleted, and its jobs with it.\n";
  }
  return ExitCode::ok;
}

ExitCode pauseEndpoint(const Call& call) {
  return pauseOrResume(call, "pause", "paused: its jobs wait, running ones go on.");
}

ExitCode resumeEndpoint(const Call& call) { return pauseOrResume(call, "resume", "no longer paused."); }

}  // namespace jobq::ctl
