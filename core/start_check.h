// Checks before any data is opened that the plugins and files that a configuration names exist.
#pragma once

#include <string>

#include "core/config/config.h"
#include "core/plugin/plugin_host.h"

namespace jobq {

/// Throws ConfigError for the first name that `host` does not have, with the key that holds the name and the names that
/// there are, and for the first value that a selected plugin refuses. Makes no plugin.
void checkNames(const Config& config, const PluginHost& host);

/// Throws ConfigError if a script that the configuration names has no file, or if the TLS files cannot be used.
void checkFiles(const Config& config);

/// Returns a warning if callers on other machines can make this server connect to private addresses; else "".
std::string exposureOf(const Config& config);

}  // namespace jobq
