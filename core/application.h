// The composition root. Members are built in the order of their declaration and destroyed in reverse. Each member is
// given only to later members, with three exceptions, all registered before any thread starts: the Dispatcher's
// constructor calls ClaimerSlot::bind, and the constructor of Application sets the listeners of EndpointRegistry
// and Sweeper.
#pragma once

#include <atomic>
#include <filesystem>
#include <functional>
#include <memory>
#include <string>
#include <vector>

#include "core/adapters.h"
#include "core/auth/api_keys.h"
#include "core/auth/process_keys.h"
#include "core/base/call_timer.h"
#include "core/base/clock.h"
#include "core/base/data_dir.h"
#include "core/base/repeated_records.h"
#include "core/base/secret_box.h"
#include "core/config/config.h"
#include "core/endpoints/endpoint_registry.h"
#include "core/endpoints/endpoint_service.h"
#include "core/endpoints/runtime_meter.h"
#include "core/endpoints/template_service.h"
#include "core/http/api/body_memory.h"
#include "core/http/api/cors.h"
#include "core/http/api/management/backups.h"
#include "core/http/api/request_pipeline.h"
#include "core/http/api/router.h"
#include "core/http/transport/budget.h"
#include "core/http/transport/server.h"
#include "core/jobs/change_poller.h"
#include "core/jobs/claimer.h"
#include "core/jobs/completion_notifier.h"
#include "core/jobs/job_service.h"
#include "core/jobs/later_submission.h"
#include "core/jobs/queue_signal.h"
#include "core/jobs/run_reports.h"
#include "core/limits/rate_limit_gate.h"
#include "core/maintenance/endpoint_remover.h"
#include "core/maintenance/outbox_cleaner.h"
#include "core/maintenance/sweeper.h"
#include "core/plugin/plugin_host.h"
#include "core/plugin_instances.h"
#include "core/webhooks/curl_receiver_names.h"
#include "core/webhooks/dispatcher.h"
#include "core/webhooks/transports.h"
#include "core/webhooks/webhook_secrets.h"
#include "core/workers/deferred_inserts.h"
#include "core/workers/dispatcher.h"
#include "core/workers/executor_choice.h"
#include "core/workers/launched/launched_workers.h"
#include "core/workers/lease_keeper.h"
#include "core/workers/node/node_drains.h"
#include "core/workers/node/node_life.h"
#include "core/workers/pool/worker_pools.h"
#include "core/workers/pool/worker_supervisor.h"
#include "core/workers/remote/foreign_reports.h"
#include "core/workers/remote/remote_exchange.h"
#include "core/workers/remote/remote_workers.h"
#include "core/workers/run/deadline_timer.h"
#include "core/workers/run/running_jobs.h"
#include "core/workers/thread_executor.h"
#include "jobq/log.h"
#include "jobq/rate_limiter.h"
#include "jobq/storage.h"
#include "jobq/time.h"
#include "jobq/worker_launcher.h"

namespace jobq {

class StorageWait;

/// Returns the storage, possibly inside a decorator. The product uses `unwrapped`; tests add a decorator with faults.
using StorageWrap = std::function<std::unique_ptr<Storage>(std::unique_ptr<Storage>)>;
/// Returns `storage` unchanged.
inline std::unique_ptr<Storage> unwrapped(std::unique_ptr<Storage> storage) { return storage; }

/// The server as one object. One thread builds, starts, reloads and stops the server. `clock` and `log` outlive the
/// object.
class Application {
 public:
  /// Opens the storage and builds all parts without starting a thread. Throws ConfigError or StorageError. `wall` gives
  /// the time of day and outlives the object; with null, `clock` gives the time of day too, as in tests on one manual
  /// clock. `wait` waits for a storage that cannot be reached; with null, the construction throws at once.
  Application(Config config, Clock& clock, Log& log, const StorageWrap& around = unwrapped,
              const WallClock* wall = nullptr, StorageWait* wait = nullptr);
  /// Calls stop().
  ~Application();

  /// Recovers the jobs of a dead process, then starts all threads and accepts connections. Throws ConfigError if the
  /// address is taken.
  void start();

  /// Refuses new jobs, lets running jobs finish within `server.drain`, returns the other jobs to their queues and
  /// closes the connections. Returns false if a handler ignored its stop token: the handler's thread still runs, so the
  /// process has to end with `_exit`. A second call has no effect and returns the same result.
  bool stop();

  /// Serves `jobqd --reset-admin-key`; replaces start(). Makes an admin key, writes the key to `<data>/admin.key` and
  /// revokes the former key of the file. Throws StorageError or Error.
  void resetAdminKey() { keys_.resetAdminKey(adminKeyFile()); }

  /// Reads the settings again that may change while the server runs: the certificate and the key of the certificate.
  void reload() { server_.reloadCertificate(); }

  /// Returns the base URL of the server, such as "http://127.0.0.1:8000".
  std::string address() const { return server_.address(); }

  /// Returns all routes with their scopes.
  std::vector<Router::Row> routes() const { return router_.rows(); }

  /// Serves `jobqd --check`: checks a configuration as far as possible without opening the data. Throws ConfigError.
  static void check(const Config& config, Log& log);

 private:
  std::filesystem::path adminKeyFile() const { return dataDir_.path() / "admin.key"; }
  void drainRemoteWorkers(Instant end);
  void leaveStorage();
  std::string urlForWorkers() const;
  void addRoutes();

  const Config config_;
  Clock& clock_;
  const ClockAsWallClock sameTime_;
  const WallClock& wall_;
  Log& log_;
  const std::string workerPrefix_;  // begins the ids of workers
  std::atomic<bool> draining_ = false;
  bool stopped_ = false;
  bool clean_ = true;

  DataDir dataDir_;                        // locks the data directory
  SecretBox secrets_;                      // seals secrets at rest
  const CurlReceiverNames receiverNames_;  // lent to the storage
  PluginHost plugins_;
  PluginInstances instances_;
  std::unique_ptr<Storage> storage_;  // stage: storage
  RepeatedRecords records_;           // of the storage
  Transports transports_;
  EndpointRegistry endpoints_;
  EndpointKeys endpointKeys_;
  WebhookSecrets webhookSecrets_;
  WebhookDispatcher webhooks_;  // stage: webhook delivery
  TemplateService templateService_;
  EndpointService endpointService_;
  RuntimeMeter runtimes_;
  ProcessKeys processKeys_;         // of launched workers
  ApiKeys keys_;                    // stage: authentication
  QueueSignal queueSignal_;         // from storage to dispatch
  ClaimerSlot claimer_;             // claims of callers and workers
  CompletionNotifier completions_;  // stage: completion, waiting callers
  ChangePoller changes_;            // changes by other nodes
  JobService jobs_;                 // stage: submission
  LaterSubmissions later_;          // stage: submission, without a thread
  RunReports reports_;              // stage: completion, reports of workers
  Sweeper sweeper_;
  DeadlineTimer deadlines_;
  RunningJobs running_;
  DeferredInserts inserts_;
  ThreadExecutor executor_;  // stage: execution
  WorkerPools workerPools_;
  RemoteWorkers remote_;    // stage: execution, on other machines
  ForeignReports foreign_;  // reports about jobs of other nodes
  CallTimer lateCalls_;     // refused calls of remote workers, followed outputs
  ExecutorChoice executors_;
  NodeLife node_;            // the node's life in the storage
  RemoteExchange exchange_;  // news about remote workers between nodes
  NodeDrains drains_;        // nodes with an order to drain
  DrainOrders drainOrders_;
  LaunchKeys launchKeys_;
  std::unique_ptr<WorkerLauncher> launcher_;  // null without the setting
  LaunchedWorkers launched_;                  // starts and stops remote workers
  WorkerSupervisor supervisor_;               // starts and stops workers
  LeaseKeeper leaseKeeper_;                   // beats on a shared storage
  Dispatcher dispatcher_;                     // stage: dispatch
  NodeWorkers workers_;
  EndpointLifecycle lifecycle_;
  EndpointRemover remover_;
  OutboxCleaner outboxCleaner_;
  SweepTasks sweepTasks_;
  Backups backups_;
  std::unique_ptr<RateLimiter> limiter_;
  RateLimitGate rates_;  // stage: rate limiting
  Router router_;
  Budget waiting_;           // places for waiting callers
  Budget refusedCalls_;      // the part of waiting_ for refused calls of remote workers
  BodyMemory bodyMemory_;    // memory for large bodies
  BodyMemory answerMemory_;  // memory for large answers
  const CorsPolicy cors_;
  RequestPipeline pipeline_;  // stage: routing
  HttpServer server_;
};

}  // namespace jobq
