#include "core/application.h"

#include <unistd.h>

#include <algorithm>
#include <cstdlib>
#include <cstring>
#include <optional>

#include "core/base/clock.h"
#include "core/base/ids.h"
#include "core/config/filter_name.h"
#include "core/http/api/routes.h"
#include "core/maintenance/lost_jobs.h"
#include "core/process/descriptors.h"
#include "core/process/node_name.h"
#include "core/process/shutdown_deadline.h"
#include "core/start_check.h"
#include "core/storage_wait.h"

namespace jobq {
namespace {

// Time after which every node of a shared storage knows of a deleted endpoint: twice the time of a refresh, and the
// time of a beat.
constexpr Millis kEndpointsSettle{3'000};

// Loads the installed plugins. Adds a mistake for each missing plugin of the configuration, and for each value that a
// plugin refuses.
PluginHost loadPlugins(const Config& config, Log& log, Mistakes& mistakes) {
  PluginHost host(config.pluginSettings, log);
  host.load(config.pluginPath);
  mistakes.collect([&] { host.checkSettings(); });
  for (const std::string& name : config.pluginsRequired) {
    bool there = false;
    for (const PluginHost::Library& library : host.libraries()) {
      for (const PluginHost::Entry& entry : library.entries) there = there || entry.name == name;
    }
    if (!there) mistakes.add("plugins.required names " + name + ", which is not installed or was rejected");
  }
  checkNames(config, host, mistakes);
  mistakes.collect([&] { checkOrigins(config); });
  return host;
}

PluginHost loadPlugins(const Config& config, Log& log) {
  Mistakes mistakes(config.places);
  PluginHost host = loadPlugins(config, log, mistakes);
  mistakes.throwAny();
  return host;
}

// Time for launched workers without a job to end at shutdown.
constexpr Millis kWorkersEnd{5'000};

// Time for webhook transports to end after their stop token is set.
constexpr Millis kTransportsEnd{15'000};

}  // namespace

Application::Application(Config config, Clock& clock, Log& log, const StorageWrap& around, const WallClock* wall,
                         StorageWait* wait)
    : config_(std::move(config)),
      clock_(clock),
      sameTime_(clock),
      wall_(wall == nullptr ? sameTime_ : *wall),
      log_(log),
      workerPrefix_(newName(14)),
      dataDir_(config_.dataDir),
      secrets_(config_.secretKeyFile),
      plugins_(loadPlugins(config_, log_)),
      instances_(config_, plugins_,
                 {clock_, dataDir_.path(), config_.scriptPath / "handlers", config_.scriptPath / "filters",
                  config_.allowPrivateAddresses, &receiverNames_},
                 log_),
      storage_(around(wait == nullptr ? instances_.makeStorage() : wait->open(config_, instances_))),
      records_(storage_->records()),
      transports_(instances_.makeTransports()),
      endpoints_({records_, secrets_, instances_, log_, toIso8601(clock_.now())}, config_.endpoints),
      endpointKeys_(endpoints_, config_.endpointDefaults.webhookRetries),
      webhookSecrets_(config_.webhookKey, endpointKeys_, records_, secrets_),
      webhooks_({storage_->outbox(), transports_, webhookSecrets_, clock_, log_, wall_}, descriptorsForCalls()),
      templateService_(records_, secrets_, endpoints_),
      endpointService_(records_, secrets_, endpoints_, wall_),
      runtimes_(records_, clock_),
      keys_(records_, clock_, wall_, log_, &processKeys_),
      queueSignal_({}),
      claimer_(queueSignal_),
      completions_(clock_),
      changes_({*storage_, completions_, queueSignal_, clock_, log_}),
      jobs_(*storage_, queueSignal_, claimer_, completions_, webhooks_),
      later_(*storage_, queueSignal_),
      reports_(*storage_, queueSignal_, claimer_, completions_, webhooks_),
      sweeper_(*storage_, clock_, log_),
      deadlines_(clock_, log_, sweeper_),
      inserts_(*storage_, completions_, clock_, log_),
      executor_({reports_, *storage_, running_, deadlines_, secrets_, inserts_, clock_, log_}),
      workerPools_({queueSignal_, clock_, log_}, endpoints_.all()),
      remote_({{reports_, *storage_, running_, deadlines_, secrets_, clock_}, workerPools_, draining_, log_}),
      foreign_({reports_, *storage_, remote_, clock_}),
      lateCalls_(clock_, log_),
      executors_(executor_, remote_, completions_),
      node_(*storage_, nodeName(config_.nodeName, dataDir_.path())),
      exchange_({*storage_, records_, node_, remote_, clock_, log_}),
      drains_({records_, node_, queueSignal_, log_}),
      drainOrders_(drains_, node_),
      launchKeys_(processKeys_),
      launcher_(instances_.makeLauncher()),
      launched_({.launcher = launcher_.get(),
                 .pools = workerPools_,
                 .remote = remote_,
                 .storage = *storage_,
                 .queueSignal = queueSignal_,
                 .keys = launchKeys_,
                 .node = node_,
                 .clock = clock_,
                 .log = log_,
                 .gpus = config_.launcherGpus},
                workerPrefix_),
      supervisor_({workerPools_, *storage_, queueSignal_, executors_, running_, node_, log_}, workerPrefix_),
      leaseKeeper_({node_, *storage_, workerPools_, supervisor_, running_, queueSignal_, clock_, log_}),
      dispatcher_({workerPools_, supervisor_, *storage_, queueSignal_, claimer_, executors_, running_, inserts_, node_,
                   clock_, log_}),
      workers_({workerPools_, supervisor_, executor_, remote_, launched_, *storage_, node_}),
      lifecycle_({endpoints_, endpointService_, workers_, workerPools_, completions_}),
      remover_({storage_->jobs(), lifecycle_, lifecycle_, clock_},
               storage_->leaseLife() ? kEndpointsSettle : Millis(0)),
      outboxCleaner_(storage_->outbox(), {config_.webhookMaxAge, config_.webhookMaxOwed}, clock_, log_),
      sweepTasks_({endpoints_, drains_, reports_, workers_, outboxCleaner_, remover_, keys_, runtimes_, webhooks_}),
      backups_(*storage_, dataDir_.path()),
      limiter_(instances_.makeLimiter()),
      rates_(config_.limits, {*limiter_, clock_, workers_}),
      waiting_(config_.server.places()),
      refusedCalls_(std::max<std::uint64_t>(config_.server.places() / 8, 1)),
      bodyMemory_(config_.server.bodyMemory),
      answerMemory_(kAnswerMemory),
      cors_(config_.server.corsOrigins),
      pipeline_(router_, keys_, endpoints_, rates_, bodyMemory_, answerMemory_, cors_, later_, log_),
      server_(config_.server, pipeline_, waiting_, log_) {
  endpoints_.setListener(lifecycle_);
  inserts_.setStopper(workers_);
  sweeper_.setListener(sweepTasks_);
  addRoutes();
}

Application::~Application() {
  if (stopped_ || stop()) return;
  // The thread of a handler still runs in code about to be torn down.
  log_.write(LogLevel::error, "server.stopped", "a handler ignores its stop: the process ends without waiting for it");
  _exit(EXIT_FAILURE);
}

void Application::start() {
  if (const auto exposure = exposureOf(config_)) log_.write(LogLevel::warning, "net.allowPrivate", *exposure);
  std::vector<std::string> opened = dataDir_.restrictToOwner();
  if (auto sentence = restrictToOwner(config_.secretKeyFile)) opened.push_back(std::move(*sentence));
  for (const std::string& sentence : opened) log_.write(LogLevel::warning, "data.modes", sentence);
  server_.open();  // a taken address ends the start before a job begins
  checkSecretKey(records_, secrets_, config_.secretKeyFile);
  keys_.bootstrap(adminKeyFile());
  endpoints_.checkIds();
  endpoints_.refresh();
  // Before the first claim the jobs of a dead process are counted and return to their old position in the queue. On a
  // shared storage any node takes them back.
  LostJobs lost(storage_->jobs(), log_);
  if (!storage_->leaseLife()) {
    for (const EndpointPtr& endpoint : endpoints_.all()) lost.collect(endpoint->spec.id);
  }
  drains_.end(node_.name());  // a node that starts is meant to work
  drains_.refresh();
  leaseKeeper_.join();
  leaseKeeper_.start();
  if (storage_->capabilities().has(Capability::adopt)) remote_.adopt(storage_->leases().adopt(node_.holder()));
  if (sweeper_.endOverdue()) {
    log_.write(LogLevel::information, "start.expired",
               "the storage holds expired jobs, which are removed while the server runs");
  }
  lost.report();
  backups_.removeLeftover();
  sweeper_.start();
  deadlines_.start();
  inserts_.start();
  remote_.start();
  exchange_.start();
  lateCalls_.start();
  webhooks_.start();
  dispatcher_.start();
  changes_.start();
  server_.start();
  launched_.setServerUrl(urlForWorkers());
  launched_.start();
  writePrivateFile(dataDir_.path() / "address", address() + "\n");
}

bool Application::stop() {
  if (std::exchange(stopped_, true)) return clean_;
  draining_ = true;
  const Instant end = clock_.now() + config_.server.drain;
  // The server stays open while jobs run to the end: callers want results, and load balancers want a 503.
  server_.announceClose();
  launched_.stop();
  dispatcher_.stop();
  clean_ = executor_.stop(config_.server.drain) == 0;
  drainRemoteWorkers(end);
  exchange_.stop();
  deadlines_.stop();
  inserts_.stop();
  // Waiting callers are answered with the current state of their jobs.
  completions_.close();
  remote_.stop();
  lateCalls_.stop();
  leaveStorage();
  // A backup still being written would outlast the drain; a backup being sent is a request in flight.
  backups_.stop();
  server_.stop(std::max(end - clock_.now(), Millis(0)));
  changes_.stop();
  outboxCleaner_.stop();
  sweeper_.stop();
  std::error_code ignored;
  std::filesystem::remove(dataDir_.path() / "address", ignored);
  {
    const ShutdownDeadline deadline(kTransportsEnd, "a webhook transport ignores its stop token", log_);
    webhooks_.stop();
  }
  // An abandoned handler may be inside a call of the storage, so the process ends with _exit and leaves the storage
  // open. The storage survives such an end like any other end of the process.
  return clean_;
}

// Launched workers end with the server. The other workers go on with their jobs, unless another node may run the jobs
// at once.
void Application::drainRemoteWorkers(Instant end) {
  const RemoteSelection ending = storage_->leaseLife() ? RemoteSelection() : RemoteSelection(launched_.keys());
  remote_.drain(std::max(end - clock_.now(), Millis(0)), ending);
  launched_.endWorkers(kWorkersEnd);
}

std::string Application::urlForWorkers() const {
  std::string url = config_.launcherUrl.empty() ? address() : config_.launcherUrl;
  while (url.ends_with('/')) url.pop_back();
  // No worker can connect to "every address".
  for (const auto& [any, loopback] : {std::pair("//0.0.0.0:", "//127.0.0.1:"), std::pair("//[::]:", "//[::1]:")}) {
    if (const std::size_t at = url.find(any); at != std::string::npos) url.replace(at, std::strlen(any), loopback);
  }
  return url;
}

// On a shared storage the other nodes take over at once. A storage for a single process ends the life at the next
// start.
void Application::leaveStorage() {
  leaseKeeper_.stop();
  try {
    leaseKeeper_.leave();
  } catch (const StorageError& error) {
    log_.write(
        LogLevel::warning, "node.leave",
        std::string("this node could not return its jobs, or not end its life, and other nodes may take over later: ") +
            error.what());
  }
}

void Application::addRoutes() {
  addQueueRoutes(router_, {jobs_,
                           later_,
                           {secrets_, config_.allowPrivateAddresses, transports_.schemes()},
                           workers_,
                           workers_,
                           draining_,
                           waiting_,
                           config_.server.streamSilence,
                           storage_->leaseLife().has_value()});
  addWorkerRoutes(router_, {remote_, foreign_, lateCalls_, clock_, draining_, waiting_, refusedCalls_});
  addKeyRoutes(router_, keys_, wall_);
  addPluginRoutes(router_, plugins_, instances_);
  addNodeRoutes(router_, {*storage_, drainOrders_, node_.name()});
  addBackupRoutes(router_, {backups_, config_.storage, draining_});
  addWebhookRoutes(router_, {storage_->outbox(), webhookSecrets_, webhooks_});
  addTemplateRoutes(router_, templateService_, endpoints_, runtimes_);
  addWorkerLogRoutes(router_, {.logs = launched_.logs(),
                               .endpoints = endpoints_,
                               .timer = lateCalls_,
                               .clock = clock_,
                               .waiting = waiting_,
                               .streamSilence = config_.server.streamSilence});
  addEndpointRoutes(router_, {endpointService_, endpoints_, workers_, runtimes_, config_.queuePolicy, node_.name()});
  addHealthRoute(router_, {*storage_, endpoints_, workers_});
  addProcessRoutes(router_, *storage_, clock_, {draining_, node_.isFenced(), node_.isDrained()}, waiting_);
}

void Application::check(const Config& config, Log& log) {
  Mistakes mistakes(config.places);
  (void)loadPlugins(config, log, mistakes);
  checkFiles(config, mistakes);
  mistakes.throwAny();
}

}  // namespace jobq
