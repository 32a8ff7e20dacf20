// `jobqctl storage probe` and `launcher probe`: check what the storage or the launcher of a settings file needs,
// without a server.
#include <algorithm>
#include <string>
#include <string_view>
#include <utility>

#include "core/base/clock.h"
#include "core/base/words.h"
#include "core/cli/commands.h"
#include "core/cli/error_log.h"
#include "core/client/table_print.h"
#include "core/config/config.h"
#include "core/plugin/plugin_host.h"
#include "jobq/json_writer.h"

namespace jobq::cli {
namespace {

Config configOf(const Arguments& arguments) {
  std::vector<std::pair<std::string, std::string>> settings;
  for (const std::string& text : arguments.values("set")) {
    const std::size_t equals = text.find('=');
    if (equals == 0 || equals == std::string::npos) {
      throw CommandError(ExitCode::usage, "--set takes KEY=VALUE, not '" + harmless(text) + "'");
    }
    settings.emplace_back(text.substr(0, equals), text.substr(equals + 1));
  }
  return loadConfig(arguments.value("config", "etc/jobq.properties"), settings);
}

const char* nameOf(CheckVerdict verdict) {
  switch (verdict) {
    case CheckVerdict::passed: return "ok";
    case CheckVerdict::warned: return "warning";
    case CheckVerdict::failed: return "failed";
  }
  return "";
}

void print(const std::vector<CheckResult>& results, const Invocation& invocation) {
  if (invocation.json) {
    invocation.out << json::array([&results](json::ArrayWriter& out) {
      for (const CheckResult& result : results) {
        out.object([&result](json::ObjectWriter& object) {
          object.member("check", result.name);
          object.member("result", nameOf(result.verdict));
          object.member("text", result.text);
        });
      }
    }) << '\n';
    return;
  }
  Table table({"CHECK", "RESULT", "TEXT"});
  for (const CheckResult& result : results) {
    table.add({result.name, nameOf(result.verdict), result.text.substr(0, result.text.find('\n'))});
  }
  table.print(invocation.out);
  for (const CheckResult& result : results) {
    const std::size_t end = result.text.find('\n');
    if (end == std::string::npos) continue;
    eachLine(std::string_view(result.text).substr(end),
             [&invocation](std::string_view line) { invocation.out << harmless(line) << '\n'; });
  }
}

/// The plugin to check. `none` is the answer for a plugin without checks.
struct Probed {
  PluginKind kind;
  std::string name;
  std::string none;
};

ExitCode probe(const Invocation& invocation, const Config& config, const Probed& probed) {
  ErrorLog log;
  SystemClock clock;
  PluginHost host(config.pluginSettings, log);
  host.load(config.pluginPath);
  host.checkSettings();
  const PluginHost::Deps around{clock, config.dataDir, {}, {}, config.allowPrivateAddresses};
  const auto results = host.probe(probed.kind, probed.name, around, log);
  if (!results && !invocation.json) {
    invocation.out << probed.none << '\n';
    return ExitCode::ok;
  }
  const std::vector<CheckResult> all = results.value_or(std::vector<CheckResult>());
  print(all, invocation);
  const bool isRefused =
      std::any_of(all.begin(), all.end(), [](const CheckResult& one) { return one.verdict == CheckVerdict::failed; });
  return isRefused ? ExitCode::refused : ExitCode::ok;
}

}  // namespace

ExitCode probeStorage(const Invocation& invocation) {
  const Config config = configOf(invocation.arguments);
  return probe(invocation, config,
               {PluginKind::storage, config.storage,
                "The storage " + config.storage + " needs no server, so there is nothing to check."});
}

ExitCode probeLauncher(const Invocation& invocation) {
  const Config config = configOf(invocation.arguments);
  if (config.launcher.empty()) {
    throw CommandError(ExitCode::refused, "the settings name no launcher: set launcher to docker or process");
  }
  return probe(invocation, config,
               {PluginKind::workerLauncher, config.launcher,
                "The launcher " + config.launcher + " needs no other program, so there is nothing to check."});
}

}  // namespace jobq::cli
