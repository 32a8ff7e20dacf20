#include "core/application.h"

#include "core/base/clock.h"
#include "core/base/ids.h"
#include "core/base/shutdown_deadline.h"
#include "core/http/api/routes.h"
#include "core/maintenance/lost_jobs.h"
#include "core/start_check.h"
#include "core/workers/pool_status.h"

namespace jobq {
namespace {

// Time for the answers to waiting callers, however long the jobs took before.
constexpr Millis kLastAnswers{1'000};

// Loads the installed plugins. Throws ConfigError if a plugin named by the configuration is missing.
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
  checkNames(config, host);
  return host;
}

// Time for webhook transports to end after their stop token is set.
constexpr Millis kTransportsEnd{15'000};

}  // namespace

Application::Application(Config config, Clock& clock, Log& log, const StorageWrap& around, const WallClock* wall)
    : config_(std::move(config)),
      clock_(clock),
      sameTime_(clock),
      wall_(wall == nullptr ? sameTime_ : *wall),
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
      webhooks_({storage_->outbox(), transports_, webhookSecrets_, clock_, log_, wall_}),
      endpoints_({storage_->records(), secrets_, resolver(), log_}, config_.endpoints,
                 [this](const EndpointId& id, const EndpointPtr& now) { endpointChanged(id, now); }),
      templateService_(storage_->records(), secrets_, endpoints_),
      endpointService_(storage_->records(), secrets_, endpoints_, wall_),
      runtimes_(storage_->records(), clock_),
      keys_(storage_->records(), clock_, wall_, log_),
      queueSignal_({}),
      completions_(clock_),
      jobs_(*storage_, queueSignal_, completions_, [this] { webhooks_.notify(); }),
      deadlines_(clock_, log_, [this] { (void)sweeper_.endOverdue(); }),
      executor_({jobs_, *storage_, running_, deadlines_, secrets_, clock_, log_}),
      workerPools_({queueSignal_, clock_, log_}, endpoints_.all()),
      supervisor_({workerPools_, *storage_, queueSignal_, executor_, running_, log_}, node_),
      dispatcher_({workerPools_, supervisor_, *storage_, queueSignal_, executor_, running_, clock_, log_}, node_),
      remover_({storage_->jobs(), [this] { return endpoints_.leaving(); },
                [this](const EndpointId& id) { return hasLeft(workerPools_.status(id)); },
                [this](const EndpointId& id) { return endpoints_.isInUse(id); },
                [this](const EndpointId& id) { completions_.announceSome(id); },
                [this](const EndpointId& id) { endpointService_.forget(id); }}),
      outboxCleaner_(storage_->outbox(), {config_.webhookMaxAge, config_.webhookMaxOwed}, clock_, log_),
      sweeper_(
          *storage_, clock_, log_,
          [this](const SweepResult& swept) {
            jobs_.announce(swept);
            for (const LeaseRef& lease : swept.stopped) stopRun(lease);
          },
          [this] { endpoints_.refresh(); },
          [this] {
            outboxCleaner_.step();
            remover_.step();
            keys_.storeUses();
            runtimes_.tick(workerPools_.workersOfTemplates());
          }),
      backups_(*storage_, dataDir_.path()),
      limiter_(plugins_.create<RateLimiter>(config_.limiter, around_, logFor("limiter." + config_.limiter))),
      rates_(config_.limits,
             {*limiter_, clock_, [this](const EndpointId& endpoint) { return workers(endpoint).running; },
              [this](const EndpointId& endpoint) { return jobs_.counts(endpoint).inQueue; }}),
      waiting_(static_cast<std::uint64_t>(config_.server.threads - kNeverWaitingThreads)),
      bodyMemory_(config_.server.bodyMemory),
      answerMemory_(kAnswerMemory),
      cors_(config_.server.corsOrigins),
      pipeline_(router_, keys_, endpoints_, rates_, bodyMemory_, answerMemory_, cors_, log_),
      server_(config_.server, pipeline_, waiting_, log_) {
  addRoutes();
}

Application::~Application() { stop(); }

void Application::start() {
  const std::string exposure = exposureOf(config_);
  if (!exposure.empty()) log_.write(LogLevel::warning, "net.allowPrivate", exposure);
  std::vector<std::string> opened = dataDir_.closeToOthers();
  opened.push_back(closeToOthers(config_.secretKeyFile));
  for (const std::string& sentence : opened) {
    if (!sentence.empty()) log_.write(LogLevel::warning, "data.modes", sentence);
  }
  keys_.bootstrap(adminKeyFile());
  endpoints_.checkIds();
  endpoints_.refresh();
  // The recovery runs before the first claim: jobs of a dead process are counted and return to their old position in
  // the queue.
  LostJobs lost(storage_->jobs(), log_);
  for (const EndpointPtr& endpoint : endpoints_.all()) lost.collect(endpoint->id);
  if (sweeper_.endOverdue()) {
    log_.write(LogLevel::information, "start.expired",
               "the storage holds expired jobs, which are removed while the server runs");
  }
  lost.report();
  backups_.removeLeftover();
  sweeper_.start();
  deadlines_.start();
  webhooks_.start();
  dispatcher_.start();
  server_.start();
  writePrivateFile(dataDir_.path() / "address", address() + "\n");
}

bool Application::stop() {
  if (std::exchange(stopped_, true)) return clean_;
  draining_ = true;
  const Instant end = clock_.now() + config_.server.drain;
  // The server stays open while jobs run to their end: callers want their results, and load balancers want a 503.
  server_.announceClose();
  dispatcher_.stop();
  clean_ = executor_.stop(config_.server.drain) == 0;
  deadlines_.stop();
  // Callers still waiting are answered with the present state of their jobs.
  completions_.close();
  // A backup still being written would outlast the drain; a backup being sent is a request in flight.
  backups_.stop();
  server_.stop(std::max(end - clock_.now(), kLastAnswers));
  sweeper_.stop();
  std::error_code ignored;
  std::filesystem::remove(dataDir_.path() / "address", ignored);
  {
    const ShutdownDeadline deadline(kTransportsEnd, "a webhook transport ignores its stop token", log_);
    webhooks_.stop();
  }
  if (!clean_) storage_.reset();
  return clean_;
}

void Application::addRoutes() {
  const auto draining = [this] { return draining_.load(); };
  addQueueRoutes(router_, {jobs_,
                           {secrets_, config_.allowPrivateAddresses, transports_.schemes()},
                           [this](const EndpointId& endpoint) { return workers(endpoint); },
                           [this](const LeaseRef& lease) { stopRun(lease); },
                           draining,
                           [this](const Endpoint& endpoint, bool low) {
                             return waitReason(workerPools_.status(endpoint.id), endpoint, low);
                           },
                           waiting_,
                           answerMemory_});
  addKeyRoutes(router_, keys_, wall_);
  addPluginRoutes(router_, plugins_,
                  {[this](std::string_view kind, std::string_view name) { return isSelected(kind, name); },
                   [this](std::string_view kind, std::string_view name) { return scripts(kind, name); }});
  addBackupRoutes(router_, {backups_, config_.storage, draining});
  addWebhookRoutes(
      router_, {storage_->outbox(), [this] { return webhookSecrets_.serverSecret(); }, [this] { webhooks_.notify(); }});
  addTemplateRoutes(router_, templateService_, endpoints_,
                    [this](const std::string& id) { return runtimes_.minutes(id); });
  addEndpointRoutes(router_,
                    {endpointService_, endpoints_, [this](const EndpointId& id) { return workerPools_.view(id); },
                     [this](const std::string& id) { return runtimes_.minutes(id); }, config_.queuePolicy});
  addProcessRoutes(router_, *storage_, clock_, draining);
}

WorkerCounts Application::workers(const EndpointId& endpoint) const {
  WorkerCounts workers = workerPools_.status(endpoint).counts;
  return workers += storage_->workers().count(endpoint, node_);
}

void Application::stopRun(const LeaseRef& lease) {
  supervisor_.stopRun(lease);
  executor_.noticeStopped();
}

NamedTransports Application::buildTransports() {
  NamedTransports transports;
  for (const std::string& name : config_.webhookTransports) plugin(transports, name);
  return transports;
}

PluginResolver Application::resolver() {
  return {[this](const std::string& name) -> HandlerFactory& { return plugin(handlers_, name); },
          [this](const std::string& name) -> const QueuePolicy& {
            return plugin(policies_, name.empty() ? config_.queuePolicy : name);
          },
          [this](const std::string& name) -> FilterPool& { return filter(name); }, config_.filters,
          toIso8601(clock_.now())};
}

FilterPool& Application::filter(const std::string& name) {
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

void Application::endpointChanged(const EndpointId& id, const EndpointPtr& now) {
  if (now) {
    workerPools_.setEndpoint(now);
  } else {
    workerPools_.retire(id);
    completions_.announceSome(id);
  }
}

// Returns the one instance of the name, shared by all endpoints. If two threads make an instance of the same name at
// the same time, the second instance is destroyed.
template <class Interface>
Interface& Application::plugin(std::map<std::string, std::unique_ptr<Interface>>& made, const std::string& name) {
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
bool Application::isMade(const std::map<std::string, std::unique_ptr<Interface>>& made, std::string_view name) const {
  Lock lock(partsMutex_);
  return made.contains(std::string(name));
}

Log& Application::logFor(const std::string& name) {
  Lock lock(partsMutex_);
  return pluginLogs_.emplace_back(log_, name);
}

bool Application::isSelected(std::string_view kind, std::string_view name) const {
  if (kind == nameOf(PluginKind::storage)) return name == config_.storage;
  if (kind == nameOf(PluginKind::rateLimiter)) return name == config_.limiter;
  if (kind == nameOf(PluginKind::queuePolicy)) return isMade(policies_, name);
  if (kind == nameOf(PluginKind::webhookTransport)) return isMade(transportPlugins_, name);
  if (kind == nameOf(PluginKind::handler)) return isMade(handlers_, name);
  if (kind == nameOf(PluginKind::admissionFilter)) return isMade(filterPlugins_, name);
  return false;
}

std::vector<ScriptReport> Application::scripts(std::string_view kind, std::string_view name) const {
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

void Application::check(const Config& config, Log& log) {
  (void)loadPlugins(config, log);
  checkFiles(config);
}

}  // namespace jobq
