// `jobqctl key ...`: who may use the server (core/decisions/auth.md).
#include "core/ctl/reply_reader.h"
#include "core/ctl/table_print.h"
#include "core/ctl/verbs.h"
#include "jobq/json.h"

namespace jobq::ctl {
namespace {

constexpr const char* kKeysPath = "/v1/keys";

std::string stringArray(const std::vector<std::string>& texts) {
  std::string out = "[";
  for (const std::string& text : texts) {
    if (out.size() > 1) out += ',';
    json::appendQuoted(out, text);
  }
  return out + "]";
}

}  // namespace

ExitCode createKey(const Call& call) {
  std::vector<std::string> scopes = call.arguments.values("scope");
  if (scopes.empty()) scopes.emplace_back("client");
  std::string body = "{\"name\":" + json::quoted(call.arguments.words[0]) + ",\"scopes\":" + stringArray(scopes);
  if (call.arguments.has("endpoint")) body += ",\"endpoints\":" + stringArray(call.arguments.values("endpoint"));
  if (call.arguments.has("expires")) body += ",\"expiresAt\":" + json::quoted(call.arguments.value("expires"));
  const std::string answer = call.api.post(kKeysPath, body + "}");
  if (call.json) {
    printAnswer(answer, call.out);
    return ExitCode::ok;
  }
  const auto key = readObject(answer);
  Table table;
  table.add({"id", cell(*key, "id")});
  table.add({"name", cell(*key, "name")});
  table.add({"scopes", listCell(*key, "scopes", "-")});
  table.add({"endpoints", listCell(*key, "endpoints", "all")});
  table.add({"expires", cell(*key, "expiresAt")});
  table.add({"key", cell(*key, "key")});
  table.print(call.out);
  call.out << "\nThe key is shown only now: the server keeps no copy of it.\n";
  return ExitCode::ok;
}

ExitCode listKeys(const Call& call) {
  const std::string answer = call.api.get(kKeysPath);
  if (call.json) {
    printAnswer(answer, call.out);
    return ExitCode::ok;
  }
  Table table({"ID", "NAME", "SCOPES", "ENDPOINTS", "CREATED", "EXPIRES", "LAST USED"});
  for (const auto& key : objects(readArray(answer))) {
    table.add({cell(*key, "id"), cell(*key, "name"), listCell(*key, "scopes", "-"), listCell(*key, "endpoints", "all"),
               cell(*key, "createdAt"), cell(*key, "expiresAt"), cell(*key, "lastUsedAt")});
  }
  table.print(call.out);
  return ExitCode::ok;
}

ExitCode revokeKey(const Call& call) {
  const std::string& id = call.arguments.words[0];
  const std::string answer = call.api.remove(std::string(kKeysPath) + "/" + ApiClient::segment(id));
  if (call.json) {
    printAnswer(answer, call.out);
  } else {
    call.out << "The key " << harmless(id) << " is revoked.\n";
  }
  return ExitCode::ok;
}

}  // namespace jobq::ctl
