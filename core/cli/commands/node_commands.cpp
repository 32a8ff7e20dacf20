// `jobqctl node ...`: lists the servers that share the storage, and lets them drain.
#include <optional>

#include "core/cli/answer_reader.h"
#include "core/cli/commands.h"
#include "core/client/table_print.h"

namespace jobq::cli {
namespace {

std::string yesOrNo(const Poco::JSON::Object& node, const char* member) {
  return node.optValue(member, false) ? "yes" : "no";
}

/// Posts to a path of the named node, and prints `sentence` behind its name.
ExitCode order(const Invocation& invocation, const char* what, const char* sentence) {
  const std::string& name = invocation.arguments.words[0];
  const std::string answer = invocation.api.post("/v1/nodes/" + ApiClient::segment(name) + "/" + what, "");
  if (!printIfJson(invocation, answer)) invocation.out << "node " << name << sentence << "\n";
  return ExitCode::ok;
}

}  // namespace

ExitCode listNodes(const Invocation& invocation) {
  const std::string answer = invocation.api.get("/v1/nodes");
  if (printIfJson(invocation, answer)) return ExitCode::ok;
  Table table({"NAME", "ALIVE", "ANSWERS", "DRAINS", "LAST BEAT (MS)", "EPOCH"});
  for (const auto& node : objects(readArray(answer))) {
    table.add({cell(*node, "name"), yesOrNo(*node, "alive"), yesOrNo(*node, "self"), yesOrNo(*node, "draining"),
               cell(*node, "beatAge"), cell(*node, "epoch")});
  }
  table.print(invocation.out);
  return ExitCode::ok;
}

ExitCode drainNode(const Invocation& invocation) {
  return order(invocation, "drain",
               " drains: it claims no further jobs within a second, and answers 503 to /readyz. Stop it when its jobs "
               "have ended; its next start ends the drain.");
}

ExitCode resumeNode(const Invocation& invocation) {
  return order(invocation, "resume", " claims jobs again within a second.");
}

}  // namespace jobq::cli
