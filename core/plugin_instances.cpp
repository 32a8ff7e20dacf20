#include "core/plugin_instances.h"

#include <utility>

#include "core/config/filter_name.h"
#include "core/plugin/local_images.h"
#include "jobq/error.h"

namespace jobq {

PluginInstances::PluginInstances(const Config& config, const PluginHost& host, PluginHost::Deps deps, Log& log)
    : config_(config), host_(host), deps_(std::move(deps)), log_(log) {}

// Each plugin writes to the log under its kind and name.
template <class Interface>
std::unique_ptr<Interface> PluginInstances::create(const std::string& name) {
  auto log = std::make_unique<PrefixedLog>(log_, std::string(nameOf(Interface::kKind)) + "." + name);
  auto plugin = host_.create<Interface>(name, deps_, *log);
  Lock lock(mutex_);
  logs_.push_back(std::move(log));
  return plugin;
}

std::unique_ptr<Storage> PluginInstances::makeStorage() { return create<Storage>(config_.storage); }

std::unique_ptr<RateLimiter> PluginInstances::makeLimiter() { return create<RateLimiter>(config_.limiter); }

std::unique_ptr<WorkerLauncher> PluginInstances::makeLauncher() {
  return config_.launcher.empty() ? nullptr : create<WorkerLauncher>(config_.launcher);
}

const NamedTransports& PluginInstances::makeTransports() {
  for (const std::string& name : config_.webhookTransports) instance(transports_, name);
  return transports_;
}

Result<HandlerFactory*> PluginInstances::handler(const std::string& name) { return usable(handlers_, name); }

Result<const QueuePolicy*> PluginInstances::policy(const std::string& name) {
  const auto policy = usable(policies_, name.empty() ? config_.queuePolicy : name);
  if (!policy) return policy.failure();
  return *policy;
}

std::vector<std::string> PluginInstances::localImages() const { return jobq::localImages(host_, deps_.handlerScripts); }

FilterPool& PluginInstances::filter(const std::string& name) {
  {
    Lock lock(mutex_);
    const auto found = filters_.find(name);
    if (found != filters_.end()) return *found->second;
  }
  auto fresh = makeFilter(name);
  Lock lock(mutex_);
  return *filters_.try_emplace(name, std::move(fresh)).first->second;
}

std::unique_ptr<FilterPool> PluginInstances::makeFilter(const std::string& name) {
  const auto parsed = parseFilter(name);
  if (!parsed) return std::make_unique<FilterPool>(name, parsed.failure().message());
  const auto factory = usable(filterFactories_, parsed->plugin);
  if (!factory) return std::make_unique<FilterPool>(name, factory.failure().message());
  return std::make_unique<FilterPool>(name, **factory, parsed->script);
}

// If two threads make an instance of the same name at the same time, the second instance is destroyed. Throws
// ConfigError if the plugin does not exist or refuses its settings.
template <class Interface>
Interface& PluginInstances::instance(std::map<std::string, std::unique_ptr<Interface>>& made, const std::string& name) {
  {
    Lock lock(mutex_);
    const auto found = made.find(name);
    if (found != made.end()) return *found->second;
  }
  auto fresh = create<Interface>(name);
  Lock lock(mutex_);
  return *made.try_emplace(name, std::move(fresh)).first->second;
}

// The instance, or the sentence of the plugin's ConfigError.
template <class Interface>
Result<Interface*> PluginInstances::usable(std::map<std::string, std::unique_ptr<Interface>>& made,
                                           const std::string& name) {
  try {
    return &instance(made, name);
  } catch (const ConfigError& error) {
    return invalid(error.what());
  }
}

template <class Interface>
const Interface* PluginInstances::find(const std::map<std::string, std::unique_ptr<Interface>>& made,
                                       std::string_view name) const {
  Lock lock(mutex_);
  const auto found = made.find(std::string(name));
  return found == made.end() ? nullptr : found->second.get();
}

bool PluginInstances::isSelected(std::string_view kind, std::string_view name) const {
  if (kind == nameOf(PluginKind::storage)) return name == config_.storage;
  if (kind == nameOf(PluginKind::rateLimiter)) return name == config_.limiter;
  if (kind == nameOf(PluginKind::workerLauncher)) return name == config_.launcher;
  if (kind == nameOf(PluginKind::queuePolicy)) return find(policies_, name) != nullptr;
  if (kind == nameOf(PluginKind::webhookTransport)) return find(transports_, name) != nullptr;
  if (kind == nameOf(PluginKind::handler)) return find(handlers_, name) != nullptr;
  if (kind == nameOf(PluginKind::admissionFilter)) return find(filterFactories_, name) != nullptr;
  return false;
}

std::vector<ScriptReport> PluginInstances::scripts(std::string_view kind, std::string_view name) const {
  const Plugin* plugin = nullptr;
  if (kind == nameOf(PluginKind::handler)) plugin = find(handlers_, name);
  if (kind == nameOf(PluginKind::admissionFilter)) plugin = find(filterFactories_, name);
  return plugin == nullptr ? std::vector<ScriptReport>{} : plugin->scripts();
}

}  // namespace jobq
