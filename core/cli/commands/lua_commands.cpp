// `jobqctl lua ...`: runs and checks scripts without a server, in the sandbox of the plugin `lua`.
#include <exception>
#include <filesystem>
#include <iostream>

#include "core/base/clock.h"
#include "core/cli/commands.h"
#include "core/cli/error_log.h"
#include "core/cli/local_job.h"
#include "core/client/input_text.h"
#include "core/client/local_plugins.h"
#include "core/client/table_print.h"
#include "core/config/policy_fields.h"
#include "core/model/filter_verdict.h"
#include "core/model/script_name.h"
#include "core/model/script_result.h"
#include "jobq/admission_filter.h"

namespace jobq::cli {
namespace {

constexpr Millis kTimeout{60'000};
constexpr DurationRange kRunTimeouts{Millis(1), Millis(3'600'000)};

struct ScriptFile {
  std::filesystem::path folder;
  std::string name;
  bool isFilter = false;
};

ScriptFile scriptOf(const Arguments& arguments) {
  const std::filesystem::path file = std::filesystem::absolute(arguments.words[0]);
  if (!std::filesystem::is_regular_file(file)) {
    throw CommandError(ExitCode::usage,
                       "the file '" + harmless(arguments.words[0]) + "' cannot be read: check its name");
  }
  const std::string name = file.stem().string();
  if (file.extension() != ".lua" || !isScriptName(name)) {
    throw CommandError(ExitCode::usage, "a script's file is named like word_count.lua, with letters, digits, _ and -");
  }
  const std::filesystem::path folder = file.parent_path();
  return {folder, name, arguments.has("filter") || folder.filename() == "filters"};
}

// The plugin `lua` with the settings and folders that a server would give.
class LocalServer {
 public:
  LocalServer(const Arguments& arguments, const ScriptFile& script)
      : plugins_(arguments, {script.folder, script.folder}, clock_, log_) {}

  template <class Factory>
  std::unique_ptr<Factory> make() {
    return plugins_.create<Factory>("lua");
  }

  Clock& clock() { return clock_; }

 private:
  ErrorLog log_;
  SystemClock clock_;
  LocalPlugins plugins_;
};

std::string inputOf(const Arguments& arguments) {
  const std::string given = arguments.value("input", "{}");
  const std::string text =
      given == "-" || given.starts_with('@') ? readSource(given == "-" ? given : given.substr(1)) : given;
  checkObject(text, "the input", "{\"text\": \"hello\"}");
  return text;
}

ExitCode runHandler(LocalServer& server, const ScriptFile& script, const Invocation& invocation) {
  const std::string input = inputOf(invocation.arguments);
  const auto factory = server.make<HandlerFactory>();
  const auto handler = factory->make({"local", "local-1", pairsOf(invocation.arguments, "env"), script.name});
  LocalJob job(server.clock(), durationOf(invocation.arguments, "timeout", kTimeout, kRunTimeouts), std::cerr);
  try {
    invocation.out << handler->run(input, job) << '\n';
    return ExitCode::ok;
  } catch (const std::exception& error) {
    throw CommandError(ExitCode::notCompleted, error.what());
  }
}

void printChange(std::ostream& out, const Replace& change) {
  out << "accepted\n";
  if (change.input) out << "input " << *change.input << '\n';
  if (change.policy) out << "policy " << writeForm(*change.policy, policyFields(), false) << '\n';
}

ExitCode runFilter(LocalServer& server, const ScriptFile& script, const Invocation& invocation) {
  const std::string input = inputOf(invocation.arguments);
  const auto env = pairsOf(invocation.arguments, "env");
  const auto factory = server.make<AdmissionFilterFactory>();
  const auto filter = factory->make(script.name);
  const Decision verdict = [&] {
    try {
      Decision made = filter->review({"local", "local", input, JobPolicy{}, env});
      if (const auto* change = std::get_if<Replace>(&made)) checkReplacement(*change);
      if (const auto* refusal = std::get_if<Refuse>(&made)) checkRefusal(*refusal);
      return made;
    } catch (const std::exception& error) {
      throw CommandError(ExitCode::notCompleted, error.what());
    }
  }();
  if (const auto* refusal = std::get_if<Reject>(&verdict)) throw CommandError(ExitCode::notCompleted, refusal->message);
  if (const auto* refusal = std::get_if<Refuse>(&verdict)) {
    const std::string status = refusal->status == 400 ? "" : " (" + std::to_string(refusal->status) + ")";
    throw CommandError(ExitCode::notCompleted, refusal->message + status);
  }
  const auto* change = std::get_if<Replace>(&verdict);
  printChange(invocation.out, change == nullptr ? Replace{} : *change);
  return ExitCode::ok;
}

}  // namespace

ExitCode runScript(const Invocation& invocation) {
  const ScriptFile script = scriptOf(invocation.arguments);
  LocalServer server(invocation.arguments, script);
  return script.isFilter ? runFilter(server, script, invocation) : runHandler(server, script, invocation);
}

ExitCode checkScript(const Invocation& invocation) {
  const ScriptFile script = scriptOf(invocation.arguments);
  LocalServer server(invocation.arguments, script);
  const auto good = scriptResult(script.isFilter ? server.make<AdmissionFilterFactory>()->fault(script.name)
                                                 : server.make<HandlerFactory>()->fault(script.name));
  if (!good) throw CommandError(ExitCode::refused, good.failure().message());
  invocation.out << script.name << ".lua is fine\n";
  return ExitCode::ok;
}

}  // namespace jobq::cli
