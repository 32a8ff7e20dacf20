#include "core/config/config.h"

#include <algorithm>
#include <array>
#include <string_view>

#include "core/base/words.h"
#include "core/config/endpoint_id.h"
#include "core/config/properties.h"
#include "core/config/server_settings.h"
#include "core/config/units.h"
#include "core/process/program_paths.h"
#include "jobq/error.h"
#include "jobq/nearest.h"
#include "jobq/plugin.h"

namespace jobq {
namespace {

// Returns the names of all keys of the server itself; `endpoint.ID.` is a pattern.
std::vector<std::string> knownKeys() {
  std::vector<std::string> keys;
  for (const SettingSection& section : serverSettings()) {
    for (const Setting<Config>& setting : section.settings) keys.push_back(setting.name);
    for (const Setting<LimitSetting>& setting : section.ofOperations) {
      for (const std::string_view operation : kOperationNames) {
        keys.push_back("limits." + std::string(operation) + "." + setting.name);
      }
    }
  }
  for (const FormField<EndpointSpec>& field : endpointFields()) {
    if (!field.setting.name.empty()) keys.push_back("endpoint.ID." + field.setting.name);
  }
  return keys;
}

[[noreturn]] void refuseKey(const std::string& key, const std::vector<std::string>& known) {
  throw ConfigError(key + " is not a setting" +
                    nearestHint(clipped(key), known, ": `jobqd --settings` lists the settings"));
}

void applyEndpoint(Config& config, const std::string& key, const std::string& value) {
  const std::string rest = key.substr(std::string("endpoint.").size());
  const std::size_t dot = rest.find('.');
  const std::string id = rest.substr(0, dot);
  const std::string name = dot == std::string::npos ? "" : rest.substr(dot + 1);
  if (const auto good = checkEndpointId(id); !good) {
    throw ConfigError(key + ": an endpoint's id " + good.failure().message());
  }
  // The settings come in the order of the keys, and the settings of an endpoint follow each other.
  if (config.endpoints.empty() || config.endpoints.back().id != id) config.endpoints.push_back(endpointInFile(id));
  const std::string wanted = name.starts_with("env.") ? "env.NAME" : name;
  for (const FormField<EndpointSpec>& field : endpointFields()) {
    if (!wanted.empty() && field.setting.name == wanted) {
      return field.setting.parse(config.endpoints.back(), key, value);
    }
  }
  std::vector<std::string> known;
  for (const FormField<EndpointSpec>& field : endpointFields()) {
    if (!field.setting.name.empty()) known.push_back("endpoint." + id + "." + field.setting.name);
  }
  refuseKey(key, known);
}

// Returns false if the key is not a limit of an operation.
bool applyLimit(Config& config, const SettingSection& section, const std::string& key, const std::string& value) {
  for (std::size_t i = 0; i < kOperations; ++i) {
    const std::string prefix = "limits." + std::string(kOperationNames[i]) + ".";
    if (!key.starts_with(prefix)) continue;
    for (const Setting<LimitSetting>& setting : section.ofOperations) {
      if (key.substr(prefix.size()) != setting.name) continue;
      setting.parse(config.limits.operations[i], key, value);
      return true;
    }
  }
  return false;
}

// `lua.` belongs to one library with two kinds of plugins and one group of settings (core/plugin/plugin_host.cpp).
bool isPluginKey(const std::string& key) {
  if (key.starts_with("lua.")) return true;
  const auto dots = std::count(key.begin(), key.end(), '.');
  for (PluginKind kind :
       {PluginKind::storage, PluginKind::queuePolicy, PluginKind::rateLimiter, PluginKind::admissionFilter,
        PluginKind::handler, PluginKind::webhookTransport, PluginKind::workerLauncher}) {
    if (dots >= 2 && key.starts_with(std::string(nameOf(kind)) + ".")) return true;
  }
  return false;
}

void apply(Config& config, const std::string& key, const std::string& value) {
  if (key.starts_with("endpoint.")) return applyEndpoint(config, key, value);
  for (const SettingSection& section : serverSettings()) {
    for (const Setting<Config>& setting : section.settings) {
      if (setting.name == key) return setting.parse(config, key, value);
    }
    if (applyLimit(config, section, key, value)) return;
  }
  if (isPluginKey(key)) {
    config.pluginSettings[key] = value;
    return;
  }
  refuseKey(key, knownKeys());
}

void completeEndpoint(const Config& config, EndpointSpec& endpoint, Mistakes& mistakes) {
  const std::string name = "endpoint." + endpoint.id;
  if (endpoint.image.empty()) mistakes.add(name + ".image is missing: name a handler, such as plugin/echo");
  if (endpoint.queuePolicy.empty()) endpoint.queuePolicy = config.queuePolicy;
  if (!endpoint.filters) endpoint.filters = config.endpointDefaults.filters;
  if (endpoint.workersMin > endpoint.workersMax) {
    mistakes.add(name + ".workersMin is greater than " + name + ".workersMax: lower it, or raise workersMax");
  }
}

void complete(Config& config, Mistakes& mistakes) {
  if (config.dataDir.empty()) mistakes.add("data.dir is empty: name the data directory");
  if (config.dataDir.is_relative()) config.dataDir = config.folder / config.dataDir;
  config.dataDir = config.dataDir.lexically_normal();
  if (config.secretKeyFile.empty()) config.secretKeyFile = config.dataDir / "secret.key";
  if (config.pluginPath.empty()) config.pluginPath.push_back(defaultPluginFolder());
  if (config.scriptPath.empty()) config.scriptPath = defaultScriptFolder();
  config.scriptPath = config.scriptPath.lexically_normal();
  if (config.server.tlsCertificate.empty() != config.server.tlsKey.empty()) {
    mistakes.add("server.tls.certificate and server.tls.key belong together: set both, or neither", "server.tls.key");
  }
  for (EndpointSpec& endpoint : config.endpoints) completeEndpoint(config, endpoint, mistakes);
}

}  // namespace

Config loadConfig(const std::filesystem::path& file,
                  const std::vector<std::pair<std::string, std::string>>& overrides) {
  Config config;
  config.folder = std::filesystem::absolute(file).parent_path();
  config.places = SettingPlaces(file.string());
  Mistakes mistakes(config.places);
  const Properties properties = readProperties(file, overrides, mistakes);
  for (const auto& [key, property] : properties) config.places.add(key, property.line);
  for (const auto& [key, property] : properties) {
    if (mistakes.isFull()) break;
    mistakes.collect([&config, &name = key, &value = property.value] { apply(config, name, value); }, key);
  }
  complete(config, mistakes);
  mistakes.throwAny();
  return config;
}

}  // namespace jobq
