#include "core/house.h"

#include "core/base/ids.h"
#include "core/endpoints/image.h"
#include "core/http/routes.h"
#include "core/upkeep/lost_jobs.h"

namespace jobq {
namespace {

// However long the jobs took: the answers to those who waited for them may take as long as this.
constexpr Millis kLastAnswers{1'000};

// Loads what is installed; what the configuration names has to be there.
PluginHost loadPlugins(const Config& config, Log& log) {
  PluginHost host(config.pluginSettings, log);
  host.load(config.pluginPath);
  host.checkSettings();
  for (const std::string& name : config.pluginsRequired) {
    bool there = false;
    for (const PluginHost::Library& library : host.libraries()) {
      for (const PluginHost::Entry& entry : library.entries) there = there || entry.name == name;
    }
    if (!there) throw ConfigError("plugins.required names " + name + ", which is not installed or was rejected");
  }
  return host;
}

// A script's text is read when its plugin is made, which a check does not do; that it is there can be said before.
void needScript(const std::string& key, const std::filesystem::path& folder, const std::string& name) {
  const std::filesystem::path file = folder / (name + ".lua");
  std::error_code ignored;
  if (std::filesystem::is_regular_file(file, ignored)) return;
  throw ConfigError(key + " needs " + file.string() + ", which is not there: write it, or set scripts.path");
}

}  // namespace

House::House(Config config, Clock& clock, Log& log, const StorageWrap& around)
    : config_(std::move(config)),
      clock_(clock),
      log_(log),
      node_(newName(14)),
      dataDir_(config_.dataDir),
      secrets_(config_.secretKeyFile),
      plugins_(loadPlugins(config_, log_)),
      around_{clock_, dataDir_.path(), config_.scriptPath / "handlers", config_.scriptPath / "filters",
              config_.allowPrivateAddresses},
      storage_(around(plugins_.create<Storage>(config_.storage, around_, logFor("storage." + config_.storage)))),
      transportPlugins_(buildTransports()),
      transports_(transportPlugins_),
      webhookSecrets_({config_.webhookKey,
                       [this](const EndpointId& id) {
                         const EndpointPtr endpoint = endpoints_.find(id);
                         return endpoint ? endpoint->webhookKey : std::string();
                       }},
                      storage_->records(), secrets_),
      courier_({storage_->outbox(), transports_, webhookSecrets_, clock_, log_}),
      endpoints_({storage_->records(), secrets_, parts(), log_}, config_.endpoints,
                 [this](const EndpointId& id, const EndpointPtr& now) { endpointChanged(id, now); }),
      templateService_(storage_->records(), secrets_, endpoints_),
      endpointService_(storage_->records(), secrets_, endpoints_, clock_),
      runtimes_(storage_->records(), clock_),
      keys_(storage_->records(), clock_, log_),
      wakeup_({}),
      watch_(clock_),
      jobs_(*storage_, wakeup_, watch_, [this] { courier_.ring(); }),
      deadlines_(clock_, log_, [this] { sweeper_.sweepAll(); }),
      executor_({jobs_, *storage_, running_, deadlines_, secrets_, clock_, log_}),
      dispatcher_({*storage_, wakeup_, executor_, running_, clock_, log_}, node_, endpoints_.all()),
      remover_({storage_->jobs(), [this] { return endpoints_.leaving(); },
                [this](const EndpointId& id) { return dispatcher_.hasLeft(id); },
                [this](const EndpointId& id) { return endpoints_.isInHand(id); },
                [this](const EndpointId& id) { watch_.announceSome(id); },
                [this](const EndpointId& id) { endpointService_.forget(id); }}),
      sweeper_(
          *storage_, clock_, log_,
          [this](const Swept& swept) {
            jobs_.announce(swept);
            for (const LeaseRef& lease : swept.stopped) dispatcher_.stopRun(lease);
          },
          [this] { endpoints_.refresh(); },
          [this] {
            remover_.step();
            runtimes_.tick(dispatcher_.workersOfTemplates());
          }),
      limiter_(plugins_.create<RateLimiter>(config_.limiter, around_, logFor("limiter." + config_.limiter))),
      rates_(config_.limits,
             {*limiter_, clock_, [this](const EndpointId& endpoint) { return workers(endpoint).running; },
              [this](const EndpointId& endpoint) { return jobs_.counts(endpoint).inQueue; }}),
      waiting_(static_cast<std::uint64_t>(config_.server.threads - kNeverWaitingThreads)),
      bodyMemory_(config_.server.bodyMemory),
      answerMemory_(kAnswerMemory),
      gate_(router_, keys_, endpoints_, rates_, bodyMemory_, log_),
      server_(config_.server, gate_, waiting_, log_) {
  addRoutes();
}

House::~House() { stop(); }

void House::start() {
  keys_.bootstrap(dataDir_.path() / "admin.key");
  endpoints_.checkIds();
  endpoints_.refresh();
  // Before the first claim: jobs of a dead process are counted and go back in line with their old place.
  LostJobs lost(storage_->jobs(), log_);
  for (const EndpointPtr& endpoint : endpoints_.all()) lost.collect(endpoint->id);
  sweeper_.sweepAll();
  lost.report();
  sweeper_.start();
  deadlines_.start();
  courier_.start();
  dispatcher_.start();
  server_.start();
  writePrivateFile(dataDir_.path() / "address", address() + "\n");
}

bool House::stop() {
  if (std::exchange(stopped_, true)) return clean_;
  draining_ = true;
  const Instant end = clock_.now() + config_.server.drain;
  // The door stays open while jobs run to their end: callers want their results, and load balancers a 503.
  server_.sayGoodbye();
  dispatcher_.stop();
  clean_ = executor_.stop(config_.server.drain) == 0;
  deadlines_.stop();
  courier_.stop();
  // Callers who still wait are answered with the present state of their jobs.
  watch_.close();
  server_.stop(std::max(end - clock_.now(), kLastAnswers));
  sweeper_.stop();
  std::error_code ignored;
  std::filesystem::remove(dataDir_.path() / "address", ignored);
  if (!clean_) storage_.reset();
  return clean_;
}

void House::addRoutes() {
  const auto draining = [this] { return draining_.load(); };
  addQueueRoutes(router_, {jobs_,
                           {secrets_, config_.allowPrivateAddresses, transports_.schemes()},
                           [this](const EndpointId& endpoint) { return workers(endpoint); },
                           [this](const LeaseRef& lease) { dispatcher_.stopRun(lease); },
                           draining,
                           [this](const Endpoint& endpoint, bool low) { return dispatcher_.waitReason(endpoint, low); },
                           waiting_,
                           answerMemory_});
  addKeyRoutes(router_, keys_, clock_);
  addPluginRoutes(router_, plugins_,
                  {[this](std::string_view kind, std::string_view name) { return isSelected(kind, name); },
                   [this](std::string_view kind, std::string_view name) { return scripts(kind, name); }});
  addWebhookRoutes(
      router_, {storage_->outbox(), [this] { return webhookSecrets_.serverSecret(); }, [this] { courier_.ring(); }});
  addTemplateRoutes(router_, templateService_, endpoints_,
                    [this](const std::string& id) { return runtimes_.minutes(id); });
  addEndpointRoutes(router_,
                    {endpointService_, endpoints_, [this](const EndpointId& id) { return dispatcher_.view(id); },
                     [this](const std::string& id) { return runtimes_.minutes(id); }});
  addProcessRoutes(router_, *storage_, draining);
}

WorkerCounts House::workers(const EndpointId& endpoint) const {
  WorkerCounts workers = dispatcher_.counts(endpoint);
  return workers += storage_->workers().count(endpoint, node_);
}

NamedTransports House::buildTransports() {
  NamedTransports transports;
  for (const std::string& name : config_.webhookTransports) plugin(transports, name);
  return transports;
}

EndpointParts House::parts() {
  return {[this](const std::string& name) -> HandlerFactory& { return plugin(handlers_, name); },
          [this](const std::string& name) -> const QueuePolicy& {
            return plugin(policies_, name.empty() ? config_.queuePolicy : name);
          },
          [this](const std::string& name) -> FilterPool& { return filter(name); }, config_.filters};
}

FilterPool& House::filter(const std::string& name) {
  const FilterName parsed = parseFilter(name);
  std::unique_ptr<FilterPool> fresh;
  try {
    fresh = std::make_unique<FilterPool>(name, plugin(filterPlugins_, parsed.plugin), parsed.script);
  } catch (const ConfigError& absence) {
    fresh = std::make_unique<FilterPool>(name, absence.what());
  }
  Lock lock(partsMutex_);
  return *filters_.try_emplace(name, std::move(fresh)).first->second;
}

void House::endpointChanged(const EndpointId& id, const EndpointPtr& now) {
  if (now) {
    dispatcher_.setEndpoint(now);
  } else {
    dispatcher_.retire(id);
    watch_.announceSome(id);
  }
}

// One instance a name, however many endpoints use it. Of two threads that make the same one, one throws its own away.
template <class Interface>
Interface& House::plugin(std::map<std::string, std::unique_ptr<Interface>>& made, const std::string& name) {
  {
    Lock lock(partsMutex_);
    const auto found = made.find(name);
    if (found != made.end()) return *found->second;
  }
  auto fresh = plugins_.create<Interface>(name, around_, logFor(std::string(nameOf(Interface::kKind)) + "." + name));
  Lock lock(partsMutex_);
  return *made.try_emplace(name, std::move(fresh)).first->second;
}

template <class Interface>
bool House::isMade(const std::map<std::string, std::unique_ptr<Interface>>& made, std::string_view name) const {
  Lock lock(partsMutex_);
  return made.contains(std::string(name));
}

Log& House::logFor(const std::string& name) {
  Lock lock(partsMutex_);
  return pluginLogs_.emplace_back(log_, name);
}

bool House::isSelected(std::string_view kind, std::string_view name) const {
  if (kind == nameOf(PluginKind::storage)) return name == config_.storage;
  if (kind == nameOf(PluginKind::rateLimiter)) return name == config_.limiter;
  if (kind == nameOf(PluginKind::queuePolicy)) return isMade(policies_, name);
  if (kind == nameOf(PluginKind::webhookTransport)) return isMade(transportPlugins_, name);
  if (kind == nameOf(PluginKind::handler)) return isMade(handlers_, name);
  if (kind == nameOf(PluginKind::admissionFilter)) return isMade(filterPlugins_, name);
  return false;
}

std::vector<ScriptReport> House::scripts(std::string_view kind, std::string_view name) const {
  const Plugin* plugin = nullptr;
  {
    Lock lock(partsMutex_);
    const auto find = [&](const auto& made) {
      const auto found = made.find(std::string(name));
      if (found != made.end()) plugin = found->second.get();
    };
    if (kind == nameOf(PluginKind::handler)) find(handlers_);
    if (kind == nameOf(PluginKind::admissionFilter)) find(filterPlugins_);
  }
  return plugin == nullptr ? std::vector<ScriptReport>{} : plugin->scripts();
}

void House::check(const Config& config, Log& log) {
  const PluginHost host = loadPlugins(config, log);
  const auto need = [&host](const std::string& key, PluginKind kind, const std::string& name) {
    if (!host.has(kind, name)) {
      throw ConfigError(key + " = " + name + ": there is no " + std::string(nameOf(kind)) + " plugin of that name");
    }
    host.checkValues(kind, name);
  };
  const auto needFilters = [&](const std::string& key, const std::vector<std::string>& filters) {
    try {
      checkFilterNames(filters);
    } catch (const ConfigError& error) {
      throw ConfigError(key + ": " + error.what());
    }
    for (const std::string& filter : filters) {
      const FilterName name = parseFilter(filter);
      need(key, PluginKind::admissionFilter, name.plugin);
      if (!name.script.empty()) needScript(key, config.scriptPath / "filters", name.script);
    }
  };
  need("storage", PluginKind::storage, config.storage);
  need("limiter", PluginKind::rateLimiter, config.limiter);
  for (const std::string& name : config.webhookTransports) {
    need("webhook.transports", PluginKind::webhookTransport, name);
  }
  needFilters("filters", config.filters);
  for (const EndpointConfig& endpoint : config.endpoints) {
    const std::string prefix = "endpoint." + endpoint.id;
    need(prefix + ".queuePolicy", PluginKind::queuePolicy, endpoint.queuePolicy);
    if (const auto fault = imageFault(endpoint.image)) throw ConfigError(prefix + ".image " + *fault);
    const Image image = parseImage(endpoint.image);
    if (image.kind == Image::Kind::plugin) need(prefix + ".image", PluginKind::handler, image.name);
    if (image.kind == Image::Kind::lua) {
      need(prefix + ".image", PluginKind::handler, "lua");
      needScript(prefix + ".image = " + endpoint.image, config.scriptPath / "handlers", image.name);
    }
    needFilters(prefix + ".filters", *endpoint.filters);
  }
}

}  // namespace jobq
