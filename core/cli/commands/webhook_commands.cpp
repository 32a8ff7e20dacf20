// `jobqctl webhook ...`: lists webhook deliveries with their tries, and sends a delivery again
// (core/http/API.md, "Deliveries over REST").
#include "core/cli/answer_reader.h"
#include "core/cli/commands.h"
#include "core/client/table_print.h"

namespace jobq::cli {
namespace {

constexpr const char* kWebhooksPath = "/v1/webhooks";

// Returns the result of the last try: the receiver's status, and the reason if the try failed.
std::string lastAttempt(const std::vector<Poco::JSON::Object::Ptr>& attempts) {
  if (attempts.empty()) return "-";
  const auto& last = *attempts.back();
  const std::string reason = cell(last, "reason");
  return cell(last, "status") + (reason == "-" ? "" : ": " + reason);
}

}  // namespace

ExitCode listWebhooks(const Invocation& invocation) {
  struct Parameter {
    const char* option;
    const char* name;
  };
  std::string query;
  for (const auto& [option, name] :
       {Parameter{"job", "jobId"}, {"endpoint", "endpointId"}, {"state", "state"}, {"limit", "limit"}}) {
    if (!invocation.arguments.has(option)) continue;
    query +=
        (query.empty() ? "?" : "&") + std::string(name) + "=" + ApiClient::encode(invocation.arguments.value(option));
  }
  if (query.empty() || query.starts_with("?limit=")) {
    throw CommandError(
        ExitCode::usage,
        "webhook list needs --job ID, --endpoint ID or --state STATE: name a job, an endpoint or a state");
  }
  const std::string answer = invocation.api.get(kWebhooksPath + query);
  if (printIfJson(invocation, answer)) return ExitCode::ok;
  Table table({"ID", "STATE", "JOB", "JOB STATUS", "ATTEMPTS", "LAST", "DUE", "URL"});
  for (const auto& delivery : objects(readArray(answer))) {
    const auto attempts = objects(delivery->getArray("attempts"));
    table.add({cell(*delivery, "id"), cell(*delivery, "state"), cell(*delivery, "jobId"), cell(*delivery, "jobStatus"),
               std::to_string(attempts.size()), lastAttempt(attempts), cell(*delivery, "dueAt"),
               cell(*delivery, "url")});
  }
  table.print(invocation.out);
  return ExitCode::ok;
}

ExitCode replayWebhook(const Invocation& invocation) {
  const std::string& id = invocation.arguments.words[0];
  const std::string answer =
      invocation.api.post(std::string(kWebhooksPath) + "/" + ApiClient::segment(id) + "/replay", "");
  if (!printIfJson(invocation, answer)) {
    invocation.out << "The webhook " << harmless(id) << " is " << cell(*readObject(answer), "state")
                   << " again; `jobqctl webhook list` shows its outcome.\n";
  }
  return ExitCode::ok;
}

}  // namespace jobq::cli
