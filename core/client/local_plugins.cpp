#include "core/client/local_plugins.h"

#include <utility>

#include "core/client/exit_code.h"
#include "core/client/table_print.h"
#include "core/process/program_paths.h"

namespace jobq::cli {
namespace {

// Removes a flag of the server itself from the settings, so that only settings of plugins remain. Returns the value of
// the flag, false if absent.
bool extractFlag(std::map<std::string, std::string>& settings, const std::string& key) {
  const auto found = settings.find(key);
  if (found == settings.end()) return false;
  const std::string value = found->second;
  settings.erase(found);
  if (value != "true" && value != "false") {
    throw CommandError(ExitCode::usage, "--set " + key + " takes true or false, not '" + harmless(value) + "'");
  }
  return value == "true";
}

}  // namespace

LocalPlugins::LocalPlugins(const Arguments& arguments, ScriptFolders scripts, Clock& clock, Log& log)
    : log_(log),
      settings_(pairsOf(arguments, "set")),
      host_(settings_, log_),
      around_{clock, ".", std::move(scripts.handlers), std::move(scripts.filters),
              extractFlag(settings_, "net.allowPrivate")} {
  host_.load({arguments.value("plugins", defaultPluginFolder().string())});
  host_.checkSettings();
}

}  // namespace jobq::cli
