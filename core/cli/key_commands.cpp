// `jobqctl key ...`: makes, lists and revokes API keys (core/decisions/auth.md).
#include "core/cli/answer_reader.h"
#include "core/cli/commands.h"
#include "core/cli/table_print.h"
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

ExitCode createKey(const Invocation& invocation) {
  std::vector<std::string> scopes = invocation.arguments.values("scope");
  if (scopes.empty()) scopes.emplace_back("client");
  std::string body = "{\"name\":" + json::quoted(invocation.arguments.words[0]) + ",\"scopes\":" + stringArray(scopes);
  if (invocation.arguments.has("endpoint"))
    body += ",\"endpoints\":" + stringArray(invocation.arguments.values("endpoint"));
  if (invocation.arguments.has("expires"))
    body += ",\"expiresAt\":" + json::quoted(invocation.arguments.value("expires"));
  const std::string answer = invocation.api.post(kKeysPath, body + "}");
  if (invocation.json) {
    printAnswer(answer, invocation.out);
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
  table.print(invocation.out);
  invocation.out << "\nThe key is shown only now: the server keeps no copy of it.\n";
  return ExitCode::ok;
}

ExitCode listKeys(const Invocation& invocation) {
  const std::string answer = invocation.api.get(kKeysPath);
  if (invocation.json) {
    printAnswer(answer, invocation.out);
    return ExitCode::ok;
  }
  Table table({"ID", "NAME", "SCOPES", "ENDPOINTS", "CREATED", "EXPIRES", "LAST USED"});
  for (const auto& key : objects(readArray(answer))) {
    table.add({cell(*key, "id"), cell(*key, "name"), listCell(*key, "scopes", "-"), listCell(*key, "endpoints", "all"),
               cell(*key, "createdAt"), cell(*key, "expiresAt"), cell(*key, "lastUsedAt")});
  }
  table.print(invocation.out);
  return ExitCode::ok;
}

ExitCode revokeKey(const Invocation& invocation) {
  const std::string& id = invocation.arguments.words[0];
  const std::string answer = invocation.api.remove(std::string(kKeysPath) + "/" + ApiClient::segment(id));
  if (invocation.json) {
    printAnswer(answer, invocation.out);
  } else {
    invocation.out << "The key " << harmless(id) << " is revoked.\n";
  }
  return ExitCode::ok;
}

}  // namespace jobq::ctl
