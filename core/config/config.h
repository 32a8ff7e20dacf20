// etc/jobq.properties as plain structs with units. Everything is checked before anything starts: a key that does not
// exist, a value that does not parse or is out of range stops the server with one sentence that names the remedy.
#pragma once

#include <cstddef>
#include <cstdint>
#include <filesystem>
#include <map>
#include <optional>
#include <set>
#include <string>
#include <utility>
#include <vector>

#include "core/base/logger.h"
#include "core/config/limits.h"
#include "core/config/scaling.h"
#include "jobq/job.h"
#include "jobq/log.h"
#include "jobq/time.h"

namespace jobq {

/// Of server.threads: kept for calls that never wait, so that a server full of waiting callers still answers.
inline constexpr int kNeverWaitingThreads = 512;

/// What all answers over 1 MB may take while their clients read them; the largest has 20 MB.
inline constexpr std::uint64_t kAnswerMemory = 512UL << 20;

struct ServerConfig {
  std::string host = "127.0.0.1";
  std::uint16_t port = 8000;                   ///< 0: any free one
  int threads = 2048;                          ///< that serve requests; an idle connection needs none
  std::uint64_t bodyMemory = 1UL << 30;        ///< bytes that all bodies over 1 MB may take while they are read
  std::size_t connectionsPerAddress = 10'000;  ///< that one peer address may have at once; 0: any number
  std::filesystem::path tlsCertificate;        ///< empty: plain HTTP
  std::filesystem::path tlsKey;
  std::set<std::string> corsOrigins;  ///< pages of these may call the API; "*": of any
  Millis keepAlive{75'000};
  Millis drain{30'000};  ///< how long running jobs may take to finish at shutdown
};

/// One `endpoint.<id>.*` group. Fixed while the server runs.
struct EndpointConfig {
  EndpointId id;
  std::string image;
  std::uint32_t workersMin = 0;
  std::uint32_t workersMax = 3;
  std::optional<std::uint32_t> maxStuck;  ///< workersMax unless set
  Millis idleTimeout{5'000};
  Millis executionTimeout{600'000};
  Millis stopGrace{5'000};
  std::uint32_t maxAttempts = 3;
  Scaling scaling{ScalerType::requestCount, 1};     ///< one worker a job, at once: what runs here starts in a moment
  std::string queuePolicy;                          ///< name of the policy plugin; the server's default filled in
  std::optional<std::vector<std::string>> filters;  ///< names, in order; the server's default filled in
  std::string webhookKey;                           ///< the bytes that sign its webhooks; empty: the server's
  std::map<std::string, std::string> env;
};

struct Config {
  ServerConfig server;
  std::filesystem::path dataDir = "jobq-data";
  std::filesystem::path secretKeyFile;  ///< `<data>/secret.key` unless set
  std::vector<std::filesystem::path> pluginPath;
  std::set<std::string> pluginsRequired;
  std::filesystem::path scriptPath;  ///< holds handlers/ and filters/
  std::vector<std::string> filters;  ///< of endpoints that name none: scripts, or `plugin/<filter>`
  std::string storage = "sqlite";
  std::string queuePolicy = "priority";
  std::string limiter = "window";
  LimitsConfig limits;
  std::vector<std::string> webhookTransports{"http"};  ///< names of webhook plugins
  std::string webhookKey;                              ///< the bytes that sign webhooks; empty: one is made and kept
  Millis webhookMaxAge{86'400'000};                    ///< a webhook that is owed for longer is given up
  std::size_t webhookMaxOwed = 100'000;                ///< that one endpoint may owe; the oldest beyond it are given up
  bool allowPrivateAddresses = false;
  LogLevel logLevel = LogLevel::information;
  LogFormat logFormat = LogFormat::text;
  std::vector<EndpointConfig> endpoints;

  /// `<kind>.<name>.<key>` values, for the plugins; the plugin host checks them against what plugins declare.
  std::map<std::string, std::string> pluginSettings;

  /// The names of all keys that the server itself knows, `endpoint.<id>.…` as patterns; for suggestions.
  static const std::vector<std::string>& knownKeys();
};

/// Reads the file, then applies `overrides` ("key", "value") in order. Relative paths resolve against the file's
/// folder; `${other.key}` references are followed. Throws ConfigError.
Config loadConfig(const std::filesystem::path& file, const std::vector<std::pair<std::string, std::string>>& overrides);

}  // namespace jobq
