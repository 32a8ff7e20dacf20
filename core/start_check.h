// Checks of the plugins, files and origins named by a configuration, before any data is opened.
#pragma once

#include <optional>
#include <string>

#include "core/config/config.h"
#include "core/plugin/plugin_host.h"

namespace jobq {

/// Checks all names of plugins without making a plugin. Throws ConfigError for the first name missing from `host`, with
/// the key of the name and the existing names, and for the first setting refused by a selected plugin.
void checkNames(const Config& config, const PluginHost& host);

/// Throws ConfigError for the first origin of `server.cors.origins` that no browser would send, with the remedy.
void checkOrigins(const Config& config);

/// Checks all files of the configuration. Throws ConfigError if a script has no file, or if the TLS files cannot be
/// used.
void checkFiles(const Config& config);

/// Returns a warning if callers on other machines can make this server connect to private addresses.
std::optional<std::string> exposureOf(const Config& config);

}  // namespace jobq
