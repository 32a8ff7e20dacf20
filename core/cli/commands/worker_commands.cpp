// `jobqctl worker ...`: the variables that a remote worker needs, and the workers of an endpoint.
#include <cstddef>
#include <filesystem>
#include <string>
#include <system_error>
#include <utility>
#include <vector>

#include "core/base/ids.h"
#include "core/cli/answer_reader.h"
#include "core/cli/commands.h"
#include "core/client/table_print.h"
#include "core/model/image.h"
#include "core/model/worker_environment.h"
#include "core/process/program_paths.h"
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

using Variables = std::vector<std::pair<std::string, std::string>>;

/// Returns a comment with the way to start a worker whose child processes end with it. `before` and `after` are around
/// the command. Empty if this machine has no guard.
std::string guardLine(const std::string& before, const std::string& after) {
  const std::filesystem::path guard = guardProgram();
  std::error_code unknown;
  if (!std::filesystem::exists(guard, unknown)) return {};
  return "# " + before + guard.string() + " -- PROGRAM" + after + "\n";
}

std::string exportLines(const Variables& variables) {
  std::string text;
  for (const auto& [name, value] : variables) text += "export " + name + "=" + shellWord(value) + "\n";
  // The comment is the last line: a shell without quotes around $() reads all lines as one.
  return text + guardLine("Start the worker with ", ", and its child processes end with it.");
}

/// Lines for `docker run --env-file`, where each character belongs to the value.
std::string plainLines(const Variables& variables) {
  std::string text;
  for (const auto& [name, value] : variables) text += name + "=" + value + "\n";
  return text;
}

/// Lines for EnvironmentFile= of systemd.
std::string systemdLines(const Variables& variables) {
  std::string text;
  for (const auto& [name, value] : variables) {
    text += name + "=\"";
    for (const char c : value) text += (c == '"' || c == '\\' ? "\\" : "") + std::string(1, c);
    text += "\"\n";
  }
  return text + guardLine("ExecStart=", "");
}

/// The part `env` of a container of Kubernetes. An empty value stands for the name of the pod.
std::string kubernetesLines(const Variables& variables) {
  std::string text = "env:\n";
  for (const auto& [name, value] : variables) {
    text += "  - name: " + name + "\n";
    text += value.empty() ? "    valueFrom:\n      fieldRef:\n        fieldPath: metadata.name\n"
                          : "    value: " + json::quoted(value) + "\n";
  }
  return text;
}

/// Returns the variables in the form of --format. A file is for any number of processes, and each process makes a name,
/// so the file has a name of a worker only if the caller has given a name.
std::string formatted(const Arguments& arguments, Variables variables) {
  const std::string format = arguments.value("format", "export");
  if (format == "export") return exportLines(variables);
  for (auto& [name, value] : variables) {
    if (name == "RUNPOD_POD_ID" && !arguments.has("worker")) value.clear();
  }
  if (format == "k8s") return kubernetesLines(variables);
  std::erase_if(variables, [](const auto& variable) { return variable.second.empty(); });
  return format == "systemd" ? systemdLines(variables) : plainLines(variables);
}

void checkFormat(const Arguments& arguments) {
  const std::string format = arguments.value("format", "export");
  for (const char* const known : {"export", "env", "systemd", "k8s"}) {
    if (format == known) return;
  }
  throw CommandError(ExitCode::usage, "--format takes export, env, systemd or k8s, not '" + harmless(format) + "'");
}

}  // namespace

ExitCode printWorkerEnvironment(const Invocation& invocation) {
  const Arguments& arguments = invocation.arguments;
  const std::string& endpoint = arguments.words[0];
  const std::string base = invocation.api.url() + "/v2/" + ApiClient::segment(endpoint);
  if (arguments.has("worker") && !isIdentifier(arguments.value("worker"))) {
    throw CommandError(ExitCode::usage, "--worker takes 1 to 128 letters, digits, _ and -");
  }
  checkFormat(arguments);  // before a key is made
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
  invocation.out << formatted(arguments, variables);
  return ExitCode::ok;
}

ExitCode listWorkers(const Invocation& invocation) {
  const std::string answer =
      invocation.api.get("/v1/endpoints/" + ApiClient::segment(invocation.arguments.words[0]) + "?includeWorkers=true");
  const auto endpoint = readObject(answer);
  if (printIfJson(invocation, answer)) return ExitCode::ok;
  Table table({"WORKER", "STATE", "VERSION", "IMAGE", "SINCE", "NODE"});
  for (const auto& worker : objects(endpoint->getArray("workers"))) {
    table.add({cell(*worker, "id"), cell(*worker, "state"), cell(*worker, "slsVersion"), cell(*worker, "image"),
               cell(*worker, "lastStartedAt"), cell(*worker, "node")});
  }
  table.print(invocation.out);
  if (endpoint->has("advice")) invocation.out << "\n" << harmless(cell(*endpoint, "advice")) << "\n";
  return ExitCode::ok;
}

}  // namespace jobq::cli
