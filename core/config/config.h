// etc/jobq.properties as plain structs with units. All checks come before the start of any part: an unknown key, a
// malformed value or a value out of range stops the server, with a sentence and a place for each such line.
#pragma once

#include <cstddef>
#include <cstdint>
#include <filesystem>
#include <map>
#include <set>
#include <string>
#include <utility>
#include <vector>

#include "core/base/logger.h"
#include "core/config/endpoint_spec.h"
#include "core/config/limits.h"
#include "core/config/mistakes.h"
#include "core/config/server_config.h"
#include "jobq/log.h"
#include "jobq/time.h"

namespace jobq {

/// All settings of the file, after the overrides of the command line.
struct Config {
  std::filesystem::path folder;  ///< folder of the file, where relative paths begin
  SettingPlaces places;          ///< lines of the settings, for messages
  ServerConfig server;
  std::filesystem::path dataDir = "jobq-data";
  std::filesystem::path secretKeyFile;  ///< `<data>/secret.key` unless set
  std::vector<std::filesystem::path> pluginPath;
  std::set<std::string> pluginsRequired;
  std::filesystem::path scriptPath;  ///< folder of handlers/ and filters/
  EndpointConfig endpointDefaults;
  std::string storage = "sqlite";
  Millis storageWait{60'000};  ///< how long a start waits for a storage that is not reachable
  std::string nodeName;        ///< name of the server in a shared storage; empty: made from host and data directory
  std::string queuePolicy = "priority";
  std::string limiter = "window";
  LimitsConfig limits;
  std::vector<std::string> webhookTransports{"http"};  ///< names of webhook plugins
  std::string webhookKey;                              ///< key for signatures, as bytes; empty: made by the server
  Millis webhookMaxAge{86'400'000};                    ///< webhooks owed for longer are abandoned
  std::size_t webhookMaxOwed = 100'000;                ///< most owed of one endpoint; the oldest beyond are abandoned
  std::string launcher;                                ///< plugin that starts remote workers; empty without a plugin
  std::string launcherUrl;  ///< address of the server for launched workers; empty: made from host and port
  std::vector<std::string> launcherGpus;  ///< ids of the GPUs for launched workers; empty: the server counts no GPUs
  bool allowPrivateAddresses = false;
  LogLevel logLevel = LogLevel::information;
  LogFormat logFormat = LogFormat::text;
  std::vector<EndpointSpec> endpoints;  ///< the `endpoint.<id>.*` groups; fixed while the server runs

  /// Values of `<kind>.<name>.<key>`, for the plugins; the plugin host checks the values against the declared keys.
  std::map<std::string, std::string> pluginSettings;
};

/// Reads the file, then applies `overrides` (key and value) in order. Relative paths start at the folder of the file.
/// Throws ConfigError with all mistakes, a line for each.
Config loadConfig(const std::filesystem::path& file, const std::vector<std::pair<std::string, std::string>>& overrides);

}  // namespace jobq
