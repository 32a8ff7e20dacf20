// `jobqctl webhook ...`: what was sent to whom and how it went (core/decisions/webhooks.md).
#include "core/ctl/reply_reader.h"
#include "core/ctl/table_print.h"
#include "core/ctl/verbs.h"

namespace jobq::ctl {
namespace {

constexpr const char* kWebhooksPath = "/v1/webhooks";

// How the last attempt went: the receiver's status, or why there was none.
std::string lastAttempt(const std::vector<Poco::JSON::Object::Ptr>& attempts) {
  if (attempts.empty()) return "-";
  const auto& last = *attempts.back();
  const std::string reason = cell(last, "reason");
  return cell(last, "status") + (reason == "-" ? "" : ": " + reason);
}

}  // namespace

ExitCode listWebhooks(const Call& call) {
  struct Parameter {
    const char* option;
    const char* name;
  };
  std::string query;
  for (const auto& [option, name] : {Parameter{"job", "jobId"}, {"endpoint", "endpointId"}, {"limit", "limit"}}) {
    if (!call.arguments.has(option)) continue;
    query += (query.empty() ? "?" : "&") + std::string(name) + "=" + ApiClient::segment(call.arguments.value(option));
  }
  if (!call.arguments.has("job") && !call.arguments.has("endpoint")) {
    throw Failure(ExitCode::usage, "webhook list needs --job ID or --endpoint ID: say whose webhooks you want");
  }
  const std::string answer = call.api.get(kWebhooksPath + query);
  if (call.json) {
    printAnswer(answer, call.out);
    return ExitCode::ok;
  }
  Table table({"ID", "STATE", "JOB", "JOB STATUS", "ATTEMPTS", "LAST", "DUE", "URL"});
  for (const auto& delivery : objects(readArray(answer))) {
    const auto attempts = objects(delivery->getArray("attempts"));
    table.add({cell(*delivery, "id"), cell(*delivery, "state"), cell(*delivery, "jobId"), cell(*delivery, "jobStatus"),
               std::to_string(attempts.size()), lastAttempt(attempts), cell(*delivery, "dueAt"),
               cell(*delivery, "url")});
  }
  table.print(call.out);
  return ExitCode::ok;
}

ExitCode replayWebhook(const Call& call) {
  const std::string& id = call.arguments.words[0];
  const std::string answer = call.api.post(std::string(kWebhooksPath) + "/" + ApiClient::segment(id) + "/replay", "");
  if (call.json) {
    printAnswer(answer, call.out);
  } else {
    call.out << "The webhook " << harmless(id) << " is " << cell(*readObject(answer), "state")
             << " again; `jobqctl webhook list` shows how it goes.\n";
  }
  return ExitCode::ok;
}

}  // namespace jobq::ctl
