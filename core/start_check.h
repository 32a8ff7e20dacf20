// Checks at a start: the plugins, files and origins named by a configuration, and the secret key of a node.
#pragma once

#include <filesystem>
#include <optional>
#include <string>

#include "core/base/secret_box.h"
#include "core/config/config.h"
#include "core/config/mistakes.h"
#include "core/plugin/plugin_host.h"
#include "jobq/record_store.h"

namespace jobq {

/// Checks all names of plugins without making a plugin. Adds a mistake for each name missing from `host`, with the key
/// of the name and the existing names, and for each selected plugin that refuses its settings.
void checkNames(const Config& config, const PluginHost& host, Mistakes& mistakes);

/// Throws ConfigError for the first origin of `server.cors.origins` that no browser would send, with the remedy.
void checkOrigins(const Config& config);

/// Returns a line for each endpoint of the configuration: its image, and where the image runs.
std::string describePrograms(const Config& config);

/// Checks all files of the configuration. Adds a mistake for each script without a file, and for TLS files that cannot
/// be used. `config` may have names that are mistakes.
void checkFiles(const Config& config, Mistakes& mistakes);

/// Checks that the server's key, which is in `keyFile`, has sealed the secrets in `records`. The secrets may come from
/// the other nodes of a shared storage, or from a restored database. Seals a word in `records` if no server has, and
/// opens the word. Without a word the templates, the endpoints and the webhook secret are opened before. Throws
/// StorageError, and throws ConfigError if a secret was sealed with another key. Removes a file that the start has just
/// made.
void checkSecretKey(RecordStore& records, const SecretBox& secrets, const std::filesystem::path& keyFile);

/// Returns a warning if callers on other machines can make this server connect to private addresses.
std::optional<std::string> exposureOf(const Config& config);

}  // namespace jobq
