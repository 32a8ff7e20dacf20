// `jobqctl worker ...`: the variables that a remote worker needs, and the workers of an endpoint.
#include <cstddef>
#include <string>
#include <vector>

#include "core/base/ids.h"
#include "core/base/image.h"
#include "core/base/worker_environment.h"
#include "core/cli/answer_reader.h"
#include "core/cli/commands.h"
#include "core/cli/table_print.h"
#include "jobq/json.h"
#include "jobq/json_writer.h"

namespace jobq::cli {
namespace {

/// Length of the name of a worker that has none of its own.
constexpr std::size_t kNameLength = 14;

/// Makes a key that takes jobs of the endpoint and nothing else.
std::string makeKey(const Invocation& invocation, const std::string& endpoint) {
  const std::string answer = invocation.api.post("/v1/keys", json::object([&](json::ObjectWriter& out) {
                                                   out.member("name", "workers of " + endpoint);
                                                   out.member("scopes", std::vector<std::string>{"worker"});
                                                   out.member("endpoints", std::vector<std::string>{endpoint});
                                                 }));
  return readObject(answer)->getValue<std::string>("key");
}

/// Throws unless remote workers take the jobs of the endpoint.
void checkIsRemote(const Invocation& invocation, const std::string& endpoint) {
  const std::string image =
      readObject(invocation.api.get("/v1/endpoints/" + endpoint))->optValue<std::string>("image", "");
  if (image.empty() || parseImage(image).kind == Image::Kind::remote) return;
  throw CommandError(ExitCode::refused, "endpoint " + endpoint +
                                            " needs no remote worker: the server runs its image, " + harmless(image) +
                                            "; name an endpoint with a container image");
}

/// Quotes the text as one word of a shell.
std::string shellWord(const std::string& text) {
  std::string word = "'";
  for (const char c : text) word += c == '\'' ? std::string("'\\''") : std::string(1, c);
  return word + "'";
}

}  // namespace

ExitCode printWorkerEnvironment(const Invocation& invocation) {
  const Arguments& arguments = invocation.arguments;
  const std::string& endpoint = arguments.words[0];
  const std::string base = invocation.api.url() + "/v2/" + ApiClient::segment(endpoint);
  if (arguments.has("worker") && !isIdentifier(arguments.value("worker"))) {
    throw CommandError(ExitCode::usage, "--worker takes 1 to 128 letters, digits, _ and -");
  }
  const bool hasKey = arguments.has("worker-key");
  // The endpoint has to exist. More can be asked for only with a key of scope admin, which a new key needs anyway.
  (void)invocation.api.get("/v2/" + ApiClient::segment(endpoint) + "/health");
  if (!hasKey) checkIsRemote(invocation, ApiClient::segment(endpoint));
  const std::string key = hasKey ? arguments.value("worker-key") : makeKey(invocation, endpoint);
  const std::string worker = arguments.has("worker") ? arguments.value("worker") : newName(kNameLength);
  const auto variables = workerEnvironment(base, endpoint, worker, key);
  if (invocation.json) {
    std::string object;
    for (const auto& [name, value] : variables) {
      object += (object.empty() ? "{" : ",") + json::quoted(name) + ":" + json::quoted(value);
    }
    invocation.out << object << "}\n";
    return ExitCode::ok;
  }
  for (const auto& [name, value] : variables) invocation.out << "export " << name << "=" << shellWord(value) << "\n";
  return ExitCode::ok;
}

ExitCode listWorkers(const Invocation& invocation) {
  const std::string answer =
      invocation.api.get("/v1/endpoints/" + ApiClient::segment(invocation.arguments.words[0]) + "?includeWorkers=true");
  const auto endpoint = readObject(answer);
  if (invocation.json) {
    printAnswer(answer, invocation.out);
    return ExitCode::ok;
  }
  Table table({"WORKER", "STATE", "VERSION", "IMAGE", "SINCE"});
  for (const auto& worker : objects(endpoint->getArray("workers"))) {
    table.add({cell(*worker, "id"), cell(*worker, "state"), cell(*worker, "slsVersion"), cell(*worker, "image"),
               cell(*worker, "lastStartedAt")});
  }
  table.print(invocation.out);
  if (endpoint->has("advice")) invocation.out << "\n" << harmless(cell(*endpoint, "advice")) << "\n";
  return ExitCode::ok;
}

}  // namespace jobq::cli
