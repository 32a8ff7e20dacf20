// Plugins that run in a program without a server. The options --plugins and --set name their folder and settings.
#pragma once

#include <filesystem>
#include <map>
#include <memory>
#include <string>
#include <string_view>

#include "core/client/arguments.h"
#include "core/plugin/plugin_host.h"
#include "jobq/log.h"
#include "jobq/time.h"

namespace jobq::cli {

/// Folders of scripts in Lua.
struct ScriptFolders {
  std::filesystem::path handlers;
  std::filesystem::path filters;
};

/// The installed plugins with the settings that a server would give. Outlives the plugins that were created. Any thread
/// may call.
class LocalPlugins {
 public:
  /// Reads the options --plugins (by default the installed plugins) and --set. `clock` and `log` outlive the object.
  /// Throws CommandError(usage) or ConfigError if a setting is wrong.
  LocalPlugins(const Arguments& arguments, ScriptFolders scripts, Clock& clock, Log& log);

  /// Makes a plugin, owned by the caller. Throws ConfigError if the plugin does not exist or refuses its settings.
  template <class Interface>
  std::unique_ptr<Interface> create(std::string_view name) const {
    return host_.create<Interface>(name, around_, log_);
  }

 private:
  Log& log_;
  std::map<std::string, std::string> settings_;
  PluginHost host_;
  const PluginHost::Deps around_;
};

}  // namespace jobq::cli
