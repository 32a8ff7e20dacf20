// `jobqctl key ...`: makes, lists and revokes API keys (core/decisions/auth.md).
#include "core/cli/answer_reader.h"
#include "core/cli/commands.h"
#include "core/client/table_print.h"
#include "jobq/json_writer.h"

namespace jobq::cli {
namespace {

constexpr const char* kKeysPath = "/v1/keys";

void addKeyRows(Table& table, const Poco::JSON::Object& key) {
  table.add({"id", cell(key, "id")});
  table.add({"name", cell(key, "name")});
  table.add({"scopes", listCell(key, "scopes", "-")});
  table.add({"endpoints", listCell(key, "endpoints", "all")});
  table.add({"expires", cell(key, "expiresAt")});
}

}  // namespace

ExitCode createKey(const Invocation& invocation) {
  std::vector<std::string> scopes = invocation.arguments.values("scope");
  if (scopes.empty()) scopes.emplace_back("client");
  const Arguments& arguments = invocation.arguments;
  const std::string answer = invocation.api.post(kKeysPath, json::object([&](json::ObjectWriter& out) {
                                                   out.member("name", arguments.words[0]);
                                                   out.member("scopes", scopes);
                                                   if (arguments.has("endpoint"))
                                                     out.member("endpoints", arguments.values("endpoint"));
                                                   if (arguments.has("expires"))
                                                     out.member("expiresAt", arguments.value("expires"));
                                                 }));
  if (printIfJson(invocation, answer) || printIfQuiet(invocation, answer, "key")) return ExitCode::ok;
  const auto key = readObject(answer);
  Table table;
  addKeyRows(table, *key);
  table.add({"key", cell(*key, "key")});
  table.print(invocation.out);
  invocation.out << "\nThe key is shown only now: the server keeps no copy of it.\n";
  return ExitCode::ok;
}

ExitCode showOwnKey(const Invocation& invocation) {
  const std::string answer = invocation.api.get("/v1/me");
  if (printIfJson(invocation, answer)) return ExitCode::ok;
  Table table;
  addKeyRows(table, *readObject(answer));
  table.print(invocation.out);
  return ExitCode::ok;
}

ExitCode listKeys(const Invocation& invocation) {
  const std::string answer = getList(invocation.api, kKeysPath);
  if (printIfJson(invocation, answer) || printIfQuiet(invocation, readArray(answer))) return ExitCode::ok;
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
  if (!printIfJson(invocation, answer)) invocation.out << "The key " << harmless(id) << " is revoked.\n";
  return ExitCode::ok;
}

}  // namespace jobq::cli
