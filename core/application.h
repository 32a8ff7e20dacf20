// The composition root: the one place that knows everyone. One member a room, built in the order of the members,
// stopped in reverse.
#pragma once

#include <atomic>
#include <filesystem>
#include <functional>
#include <list>
#include <map>
#include <memory>
#include <string>
#include <string_view>
#include <vector>

#include "core/auth/api_keys.h"
#include "core/base/clock.h"
#include "core/base/data_dir.h"
#include "core/base/logger.h"
#include "core/base/secret_box.h"
#include "core/config/config.h"
#include "core/endpoints/endpoint.h"
#include "core/endpoints/endpoint_maker.h"
#include "core/endpoints/endpoint_registry.h"
#include "core/endpoints/endpoint_service.h"
#include "core/endpoints/filter_pool.h"
#include "core/endpoints/runtime_meter.h"
#include "core/endpoints/template_service.h"
#include "core/http/api/backups.h"
#include "core/http/api/body_memory.h"
#include "core/http/api/cors.h"
#include "core/http/api/request_pipeline.h"
#include "core/http/api/router.h"
#include "core/http/transport/budget.h"
#include "core/http/transport/server.h"
#include "core/jobs/completion_notifier.h"
#include "core/jobs/job_service.h"
#include "core/jobs/queue_signal.h"
#include "core/limits/rate_limit_gate.h"
#include "core/maintenance/endpoint_remover.h"
#include "core/maintenance/outbox_cleaner.h"
#include "core/maintenance/sweeper.h"
#include "core/plugin/plugin_host.h"
#include "core/webhooks/dispatcher.h"
#include "core/webhooks/transports.h"
#include "core/webhooks/webhook_secrets.h"
#include "core/workers/deadline_timer.h"
#include "core/workers/dispatcher.h"
#include "core/workers/running_jobs.h"
#include "core/workers/thread_executor.h"
#include "jobq/admission_filter.h"
#include "jobq/job.h"
#include "jobq/job_handler.h"
#include "jobq/log.h"
#include "jobq/mutex.h"
#include "jobq/plugin.h"
#include "jobq/queue_policy.h"
#include "jobq/rate_limiter.h"
#include "jobq/storage.h"
#include "jobq/time.h"

namespace jobq {

/// What stands between the storage and everybody else: nothing, but for tests that make it fail.
using StorageWrap = std::function<std::unique_ptr<Storage>(std::unique_ptr<Storage>)>;
inline std::unique_ptr<Storage> unwrapped(std::unique_ptr<Storage> storage) { return storage; }

/// One thread builds, starts and stops it. `clock` and `log` outlive it.
class Application {
 public:
  /// Opens the storage and builds the rooms; nothing runs yet. Throws ConfigError or StorageError.
  /// `wall` is the time of day and outlives the server; null: `clock` has it too, as in tests on one manual clock.
  Application(Config config, Clock& clock, Log& log, const StorageWrap& around = unwrapped,
              const WallClock* wall = nullptr);
  ~Application();

  /// Recovers what a dead process left, then opens the door. Throws ConfigError when the address is taken.
  void start();

  /// Refuses new jobs, lets running ones finish within server.drain, puts the rest back in line, closes the door.
  /// False: a handler ignored its stop token; the process has to end with _exit, because its thread still runs.
  bool stop();

  /// `jobqd --reset-admin-key`, instead of start(): makes an admin key, writes it to `<data>/admin.key`, and revokes
  /// the one that was there. Throws StorageError or Error.
  void resetAdminKey() { keys_.resetAdminKey(adminKeyFile()); }

  /// Reads again what may change while the server runs: the certificate and its key.
  void reload() { server_.reloadCertificate(); }

  /// "http://127.0.0.1:8000".
  std::string address() const { return server_.address(); }

  /// What it answers: "GET /v1/keys".
  std::vector<std::string> routes() const { return router_.list(); }

  /// `jobqd --check`: everything that can be said about a configuration without opening its data. Throws ConfigError.
  static void check(const Config& config, Log& log);

 private:
  std::filesystem::path adminKeyFile() const { return dataDir_.path() / "admin.key"; }
  PluginResolver resolver();
  void stopRun(const LeaseRef& lease);
  void endpointChanged(const EndpointId& id, const EndpointPtr& now);
  WorkerCounts workers(const EndpointId& endpoint) const;
  NamedTransports buildTransports();
  template <class Interface>
  Interface& plugin(std::map<std::string, std::unique_ptr<Interface>>& made, const std::string& name);
  template <class Interface>
  bool isMade(const std::map<std::string, std::unique_ptr<Interface>>& made, std::string_view name) const;
  Log& logFor(const std::string& name);
  bool isSelected(std::string_view kind, std::string_view name) const;
  std::vector<ScriptReport> scripts(std::string_view kind, std::string_view name) const;
  FilterPool& filter(const std::string& name);
  void addRoutes();

  const Config config_;
  Clock& clock_;
  const SameTime sameTime_;
  const WallClock& wall_;
  Log& log_;
  const std::string node_;
  std::atomic<bool> draining_ = false;
  bool stopped_ = false;
  bool clean_ = true;

  DataDir dataDir_;    // locks the data
  SecretBox secrets_;  // seals what is kept
  mutable Mutex partsMutex_;
  std::list<PrefixedLog> pluginLogs_ JOBQ_GUARDED_BY(partsMutex_);  // lent to plugins
  PluginHost plugins_;
  const PluginHost::Deps around_;
  std::unique_ptr<Storage> storage_;  // room 6
  // What was made so far, under partsMutex_: an endpoint that is created later may need another one.
  std::map<std::string, std::unique_ptr<QueuePolicy>> policies_;
  std::map<std::string, std::unique_ptr<HandlerFactory>> handlers_;  // room 9
  std::map<std::string, std::unique_ptr<AdmissionFilterFactory>> filterPlugins_;
  std::map<std::string, std::unique_ptr<FilterPool>> filters_;  // room 4, by their names
  NamedTransports transportPlugins_;
  Transports transports_;
  WebhookSecrets webhookSecrets_;
  WebhookDispatcher webhooks_;  // room 11
  EndpointRegistry endpoints_;
  TemplateService templateService_;
  EndpointService endpointService_;
  RuntimeMeter runtimes_;
  ApiKeys keys_;                    // room 2
  QueueSignal queueSignal_;         // between 6 and 7
  CompletionNotifier completions_;  // room 10, who waits
  JobService jobs_;                 // rooms 5 and 10
  RunningJobs running_;
  DeadlineTimer deadlines_;
  ThreadExecutor executor_;  // room 8
  Dispatcher dispatcher_;    // room 7
  EndpointRemover remover_;
  OutboxCleaner outboxCleaner_;
  Sweeper sweeper_;
  Backups backups_;
  std::unique_ptr<RateLimiter> limiter_;
  RateLimitGate rates_;  // room 3
  Router router_;
  Budget waiting_;         // places to wait in
  BodyMemory bodyMemory_;  // for large bodies
  Budget answerMemory_;    // for large answers
  const CorsPolicy cors_;
  RequestPipeline pipeline_;  // room 1
  HttpServer server_;
};

}  // namespace jobq
