#include "core/config/config.h"

#include <Poco/Exception.h>
#include <Poco/Util/PropertyFileConfiguration.h>

#include <algorithm>
#include <array>
#include <functional>
#include <string_view>

#include "core/base/ids.h"
#include "core/base/program_paths.h"
#include "core/config/units.h"
#include "jobq/error.h"
#include "jobq/plugin.h"

namespace jobq {
namespace {

constexpr Millis kNoTime{0};
constexpr Millis kMonth{2'592'000'000};  // 30 days
constexpr Millis kHour{3'600'000};
constexpr Millis kSecond{1'000};
constexpr std::uint64_t kLargestBody = 20UL << 20;
constexpr std::uint64_t kTerabyte = 1UL << 40;

// A later management API shares /v2 with the queue API (core/decisions/endpoints.md). The name openapi.json needs no
// row, because an id has no dot.
constexpr std::array<std::string_view, 10> kReservedIds{"serverless",      "templates",  "pods",    "clusters",
                                                        "network-volumes", "registries", "catalog", "billing",
                                                        "account",         "docs"};

struct Reading {
  Config& config;
  const std::string& key;
  const std::string& value;
  const std::filesystem::path& folder;  // start of relative paths
};

template <class Choice>
Choice oneOf(const Reading& r, const std::vector<std::pair<std::string, Choice>>& choices) {
  std::string all;
  for (const auto& [name, choice] : choices) {
    if (name == r.value) return choice;
    all += (all.empty() ? "" : ", ") + name;
  }
  throw ConfigError(r.key + " = " + r.value + " is not one of " + all);
}

std::set<std::string> readOrigins(const Reading& r) {
  const std::vector<std::string> origins = units::words(r.value, ",");
  return {origins.begin(), origins.end()};  // core/start_check.h checks them
}

// All settings of the server. A new setting is a new row with the name and a function from the value to the structs.
struct Setting {
  const char* name;
  void (*apply)(const Reading&);
};
const Setting kSettings[] = {
    {"server.host", [](const Reading& r) { r.config.server.host = r.value; }},
    {"server.port",
     [](const Reading& r) {
       r.config.server.port = static_cast<std::uint16_t>(units::integer(r.key, r.value, 0, 65535));
     }},
    {"server.threads",
     [](const Reading& r) {
       r.config.server.threads = static_cast<int>(units::integer(r.key, r.value, kNeverWaitingThreads + 1, 100'000));
     }},
    {"server.bodyMemory",
     [](const Reading& r) { r.config.server.bodyMemory = units::size(r.key, r.value, kLargestBody, kTerabyte); }},
    {"server.connectionsPerAddress",
     [](const Reading& r) {
       r.config.server.connectionsPerAddress = static_cast<std::size_t>(units::integer(r.key, r.value, 0, 10'000'000));
     }},
    {"server.cors.origins", [](const Reading& r) { r.config.server.corsOrigins = readOrigins(r); }},
    {"server.tls.certificate", [](const Reading& r) { r.config.server.tlsCertificate = r.folder / r.value; }},
    {"server.tls.key", [](const Reading& r) { r.config.server.tlsKey = r.folder / r.value; }},
    {"server.keepAlive",
     [](const Reading& r) { r.config.server.keepAlive = units::duration(r.key, r.value, Millis(1'000), kHour); }},
    {"server.drain", [](const Reading& r) { r.config.server.drain = units::duration(r.key, r.value, kNoTime, kHour); }},
    {"data.dir", [](const Reading& r) { r.config.dataDir = r.folder / r.value; }},
    {"secret.keyFile", [](const Reading& r) { r.config.secretKeyFile = r.folder / r.value; }},
    {"plugins.path",
     [](const Reading& r) {
       r.config.pluginPath.clear();
       for (const std::string& path : units::words(r.value, ":")) r.config.pluginPath.push_back(r.folder / path);
     }},
    {"plugins.required",
     [](const Reading& r) {
       for (const std::string& name : units::words(r.value, ",")) r.config.pluginsRequired.insert(name);
     }},
    {"scripts.path", [](const Reading& r) { r.config.scriptPath = r.folder / r.value; }},
    {"filters", [](const Reading& r) { r.config.filters = units::words(r.value, ","); }},
    {"storage", [](const Reading& r) { r.config.storage = r.value; }},
    {"queue.policy", [](const Reading& r) { r.config.queuePolicy = r.value; }},
    {"limiter", [](const Reading& r) { r.config.limiter = r.value; }},
    {"limits.enabled", [](const Reading& r) { r.config.limits.enabled = units::flag(r.key, r.value); }},
    {"limits.queue", [](const Reading& r) { r.config.limits.queue = units::flag(r.key, r.value); }},
    {"webhook.transports", [](const Reading& r) { r.config.webhookTransports = units::words(r.value, ","); }},
    {"webhook.secret", [](const Reading& r) { r.config.webhookKey = units::secret(r.key, r.value); }},
    {"webhook.maxAge",
     [](const Reading& r) { r.config.webhookMaxAge = units::duration(r.key, r.value, kSecond, kMonth); }},
    {"webhook.maxOwed",
     [](const Reading& r) {
       r.config.webhookMaxOwed = static_cast<std::size_t>(units::integer(r.key, r.value, 1, 100'000'000));
     }},
    {"net.allowPrivate", [](const Reading& r) { r.config.allowPrivateAddresses = units::flag(r.key, r.value); }},
    {"log.level",
     [](const Reading& r) {
       r.config.logLevel = oneOf<LogLevel>(r, {{"debug", LogLevel::debug},
                                               {"information", LogLevel::information},
                                               {"warning", LogLevel::warning},
                                               {"error", LogLevel::error}});
     }},
    {"log.format",
     [](const Reading& r) {
       r.config.logFormat = oneOf<LogFormat>(r, {{"text", LogFormat::text}, {"json", LogFormat::json}});
     }},
};

struct LimitRow {
  const char* name;
  void (*apply)(LimitSetting&, const std::string& key, const std::string& value);
};
std::uint32_t count(const std::string& key, const std::string& value) {
  return static_cast<std::uint32_t>(units::integer(key, value, kLimitCount.min, kLimitCount.max));
}
const LimitRow kLimitRows[] = {
    {"requests", [](LimitSetting& l, const std::string& k, const std::string& v) { l.requests = count(k, v); }},
    {"window",
     [](LimitSetting& l, const std::string& k, const std::string& v) {
       l.window = units::duration(k, v, Millis(kLimitWindow.min), Millis(kLimitWindow.max));
     }},
    {"concurrent", [](LimitSetting& l, const std::string& k, const std::string& v) { l.concurrent = count(k, v); }},
    {"perWorker", [](LimitSetting& l, const std::string& k, const std::string& v) { l.perWorker = count(k, v); }},
};

[[noreturn]] void refuseKey(const std::string& key, const std::vector<std::string>& known) {
  throw ConfigError(key + " is not a setting; the nearest one is " + units::nearest(key, known));
}

void applyEndpoint(Config& config, const std::string& key, const std::string& value) {
  const std::string rest = key.substr(std::string("endpoint.").size());
  const std::size_t dot = rest.find('.');
  const std::string id = rest.substr(0, dot);
  const std::string name = dot == std::string::npos ? "" : rest.substr(dot + 1);
  if (!isIdentifier(id)) throw ConfigError(key + ": an endpoint's id consists of A-Z a-z 0-9 _ -");
  if (std::find(kReservedIds.begin(), kReservedIds.end(), id) != kReservedIds.end()) {
    throw ConfigError(key + ": the id " + id + " is reserved for the management API: choose another one");
  }
  auto endpoint = std::find_if(config.endpoints.begin(), config.endpoints.end(),
                               [&id](const EndpointSpec& e) { return e.id == id; });
  if (endpoint == config.endpoints.end()) {
    endpoint = config.endpoints.insert(endpoint, endpointInFile(id));
  }
  if (name.starts_with("env.")) {
    endpoint->env[name.substr(4)] = value;
    return;
  }
  std::vector<std::string> known{"endpoint." + id + ".env.NAME"};
  for (const FormField<EndpointSpec>& field : endpointFields()) {
    if (field.setting.empty()) continue;
    if (name == field.setting) return field.parse(*endpoint, key, value);
    known.push_back("endpoint." + id + "." + field.setting);
  }
  refuseKey(key, known);
}

std::vector<std::string> limitKeys() {
  std::vector<std::string> keys;
  for (const std::string_view operation : kOperationNames) {
    for (const LimitRow& row : kLimitRows) keys.push_back("limits." + std::string(operation) + "." + row.name);
  }
  return keys;
}

// Returns false if the key is no limit of an operation.
bool applyLimit(const Reading& r) {
  for (std::size_t i = 0; i < kOperations; ++i) {
    const std::string prefix = "limits." + std::string(kOperationNames[i]) + ".";
    if (!r.key.starts_with(prefix)) continue;
    for (const LimitRow& row : kLimitRows) {
      if (r.key.substr(prefix.size()) != row.name) continue;
      row.apply(r.config.limits.operations[i], r.key, r.value);
      return true;
    }
  }
  return false;
}

// `lua.` belongs to one library with two kinds of plugins and one group of settings (core/plugin/plugin_host.cpp).
bool isPluginKey(const std::string& key) {
  if (key.starts_with("lua.")) return true;
  const auto dots = std::count(key.begin(), key.end(), '.');
  for (PluginKind kind : {PluginKind::storage, PluginKind::queuePolicy, PluginKind::rateLimiter,
                          PluginKind::admissionFilter, PluginKind::handler, PluginKind::webhookTransport}) {
    if (dots >= 2 && key.starts_with(std::string(nameOf(kind)) + ".")) return true;
  }
  return false;
}

void apply(const Reading& r) {
  for (const Setting& setting : kSettings) {
    if (r.key == setting.name) return setting.apply(r);
  }
  if (r.key.starts_with("limits.") && applyLimit(r)) return;
  if (r.key.starts_with("endpoint.")) return applyEndpoint(r.config, r.key, r.value);
  if (isPluginKey(r.key)) {
    r.config.pluginSettings[r.key] = r.value;
    return;
  }
  refuseKey(r.key, Config::knownKeys());
}

using Properties = std::map<std::string, std::string>;

void collect(const Poco::Util::AbstractConfiguration& from, const std::string& path, Properties& into) {
  Poco::Util::AbstractConfiguration::Keys children;
  from.keys(path, children);
  if (!path.empty() && from.hasProperty(path)) into[path] = from.getString(path);
  for (const std::string& child : children) collect(from, path.empty() ? child : path + "." + child, into);
}

// Refuses a file with the same key on several lines, because Poco silently takes the last line.
class FileProperties final : public Poco::Util::PropertyFileConfiguration {
 public:
  explicit FileProperties(const std::string& file) {
    load(file);
    isLoaded_ = true;
  }

 protected:
  void setRaw(const std::string& key, const std::string& value) override {
    if (!isLoaded_ && !keys_.insert(key).second) {
      throw ConfigError(key + " appears twice in the file: remove one line");
    }
    PropertyFileConfiguration::setRaw(key, value);
  }

 private:
  bool isLoaded_ = false;
  std::set<std::string> keys_;
};

Properties readProperties(const std::filesystem::path& file,
                          const std::vector<std::pair<std::string, std::string>>& overrides) {
  try {
    Poco::AutoPtr<FileProperties> properties(new FileProperties(file.string()));
    for (const auto& [key, value] : overrides) properties->setString(key, value);
    Properties all;
    collect(*properties, "", all);
    return all;
  } catch (const Poco::Exception& error) {
    throw ConfigError(file.string() + " cannot be read: " + error.displayText());
  }
}

void complete(Config& config, const std::filesystem::path& folder) {
  if (config.dataDir.is_relative()) config.dataDir = folder / config.dataDir;
  config.dataDir = config.dataDir.lexically_normal();
  if (config.secretKeyFile.empty()) config.secretKeyFile = config.dataDir / "secret.key";
  if (config.pluginPath.empty()) config.pluginPath.push_back(defaultPluginFolder());
  if (config.scriptPath.empty()) config.scriptPath = defaultScriptFolder();
  config.scriptPath = config.scriptPath.lexically_normal();
  if (config.server.tlsCertificate.empty() != config.server.tlsKey.empty()) {
    throw ConfigError("server.tls.certificate and server.tls.key belong together: set both, or neither");
  }
  for (EndpointSpec& endpoint : config.endpoints) {
    const std::string name = "endpoint." + endpoint.id;
    if (endpoint.image.empty()) throw ConfigError(name + ".image is missing: name a handler, such as plugin/echo");
    if (endpoint.queuePolicy.empty()) endpoint.queuePolicy = config.queuePolicy;
    if (!endpoint.filters) endpoint.filters = config.filters;
    if (endpoint.workersMin > endpoint.workersMax) {
      throw ConfigError(name + ".workersMin is greater than " + name + ".workersMax: lower it, or raise workersMax");
    }
  }
}

}  // namespace

const std::vector<std::string>& Config::knownKeys() {
  static const std::vector<std::string> kKeys = [] {
    std::vector<std::string> keys;
    for (const Setting& setting : kSettings) keys.emplace_back(setting.name);
    for (const std::string& key : limitKeys()) keys.push_back(key);
    for (const FormField<EndpointSpec>& field : endpointFields()) {
      if (!field.setting.empty()) keys.push_back("endpoint.ID." + field.setting);
    }
    return keys;
  }();
  return kKeys;
}

Config loadConfig(const std::filesystem::path& file,
                  const std::vector<std::pair<std::string, std::string>>& overrides) {
  const std::filesystem::path folder = std::filesystem::absolute(file).parent_path();
  Config config;
  for (const auto& [key, value] : readProperties(file, overrides)) apply(Reading{config, key, value, folder});
  complete(config, folder);
  return config;
}

}  // namespace jobq
