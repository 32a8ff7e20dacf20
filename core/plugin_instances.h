// The instances of plugins used by this server.
#pragma once

#include <map>
#include <memory>
#include <string>
#include <string_view>
#include <vector>

#include "core/base/logger.h"
#include "core/config/config.h"
#include "core/config/endpoint_spec.h"
#include "core/endpoints/filter_pool.h"
#include "core/endpoints/plugin_resolver.h"
#include "core/http/api/routes.h"
#include "core/plugin/plugin_host.h"
#include "core/webhooks/transports.h"
#include "jobq/admission_filter.h"
#include "jobq/job_handler.h"
#include "jobq/log.h"
#include "jobq/mutex.h"
#include "jobq/plugin.h"
#include "jobq/queue_policy.h"
#include "jobq/rate_limiter.h"
#include "jobq/storage.h"
#include "jobq/worker_launcher.h"

namespace jobq {

/// Makes the plugins of the server, and owns a single instance for each kind and name of the other plugins, shared by
/// all endpoints and made at the first use. Any thread may call the functions, except the four that make the plugins of
/// the server. The four functions throw ConfigError, with one sentence, if the plugin does not exist or refuses its
/// settings.
class PluginInstances final : public PluginResolver, public PluginUse {
 public:
  /// The referenced objects outlive the instances. `deps` is given to every plugin.
  PluginInstances(const Config& config, const PluginHost& host, PluginHost::Deps deps, Log& log);

  /// Make the plugins named by the configuration. To be called once each, before other threads call. The object keeps
  /// the transports; the other plugins belong to the caller and end before the object.
  std::unique_ptr<Storage> makeStorage();
  std::unique_ptr<RateLimiter> makeLimiter();
  const NamedTransports& makeTransports();
  /// Returns null unless the configuration names a launcher.
  std::unique_ptr<WorkerLauncher> makeLauncher();

  Result<HandlerFactory*> handler(const std::string& name) override;
  Result<const QueuePolicy*> policy(const std::string& name) override;
  FilterPool& filter(const std::string& name) override;
  std::vector<std::string> localImages() const override;
  const EndpointConfig& defaults() const override { return config_.endpointDefaults; }

  bool isSelected(std::string_view kind, std::string_view name) const override;
  std::vector<ScriptReport> scripts(std::string_view kind, std::string_view name) const override;

 private:
  std::unique_ptr<FilterPool> makeFilter(const std::string& name);
  template <class Interface>
  std::unique_ptr<Interface> create(const std::string& name);
  template <class Interface>
  Interface& instance(std::map<std::string, std::unique_ptr<Interface>>& made, const std::string& name);
  template <class Interface>
  Result<Interface*> usable(std::map<std::string, std::unique_ptr<Interface>>& made, const std::string& name);
  template <class Interface>
  const Interface* find(const std::map<std::string, std::unique_ptr<Interface>>& made, std::string_view name) const;

  const Config& config_;
  const PluginHost& host_;
  const PluginHost::Deps deps_;
  Log& log_;
  mutable Mutex mutex_;
  std::vector<std::unique_ptr<PrefixedLog>> logs_ JOBQ_GUARDED_BY(mutex_);  // logs lent to plugins
  // The instances made so far, guarded by mutex_. An instance is never removed.
  std::map<std::string, std::unique_ptr<QueuePolicy>> policies_;
  std::map<std::string, std::unique_ptr<HandlerFactory>> handlers_;
  std::map<std::string, std::unique_ptr<AdmissionFilterFactory>> filterFactories_;
  std::map<std::string, std::unique_ptr<FilterPool>> filters_;  // by full name; filterFactories_ by plugin
  NamedTransports transports_;
};

}  // namespace jobq
