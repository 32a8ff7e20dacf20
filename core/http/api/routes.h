// The tables of routes, one function for each topic, and the interfaces that routes call in other stages. Each function
// adds its rows to the router. Objects passed by reference outlive the router. Routes run on all HTTP threads.
#pragma once

#include <atomic>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "core/auth/api_keys.h"
#include "core/base/clock.h"
#include "core/endpoints/endpoint.h"
#include "core/endpoints/worker_pool_view.h"
#include "core/http/api/router.h"
#include "core/http/transport/budget.h"
#include "core/jobs/run_stopper.h"
#include "core/jobs/submission.h"
#include "jobq/job.h"
#include "jobq/node_store.h"
#include "jobq/plugin.h"
#include "jobq/time.h"

namespace jobq {

class Backups;
class CallTimer;
class DeliveryNotifier;
class EndpointRegistry;
class EndpointService;
class JobService;
class LaterSubmissions;
class OutboxStore;
class OutputReader;
class PluginHost;
class RuntimeMeter;
class Storage;
class ForeignReports;
class RemoteWorkers;
class TemplateService;
class WebhookSecrets;

/// The workers of an endpoint, as callers see them. Any thread may call the functions.
class WorkerStatus {
 public:
  virtual ~WorkerStatus() = default;

  /// Returns the numbers of workers of all nodes by state. Throws StorageError.
  virtual WorkerCounts counts(const EndpointId& endpoint) const = 0;

  /// Returns each worker of this node and the progress of the endpoint's release.
  virtual WorkerPoolView view(const EndpointId& endpoint) const = 0;

  /// Returns the reason why a job of the endpoint waits here: no_workers, workers_busy, starting, no_gpu,
  /// worker_crashing, paused or draining.
  virtual std::string_view waitReason(const Endpoint& endpoint, bool lowPriority) const = 0;

  /// Returns a sentence that says what to do, if the endpoint needs a remote worker and none is connected.
  virtual std::optional<std::string> advice(const Endpoint& endpoint, AdviceReader reader) const = 0;
};

/// Routes about jobs under /v2/{endpoint} and /sdk/v2/{endpoint}.
struct QueueDeps {
  JobService& jobs;
  LaterSubmissions& later;
  SubmissionRules rules;
  const WorkerStatus& workers;
  RunStopper& runs;
  const std::atomic<bool>& draining;  ///< true: new jobs are refused
  Budget& waiting;                    ///< places for waiting calls
  Millis streamSilence{15'000};       ///< longest silence of an event stream
  bool hasOtherNodes = false;         ///< their runs report progress and log lines, which is not announced here
};
void addQueueRoutes(Router& router, const QueueDeps& deps);

/// Routes of remote workers under /v2/{endpoint} and /sdk/v2/{endpoint}.
struct WorkerDeps {
  RemoteWorkers& workers;
  ForeignReports& foreign;
  CallTimer& lateCalls;  ///< of refused calls
  const Clock& clock;
  const std::atomic<bool>& draining;  ///< true: no job is handed out
  Budget& waiting;                    ///< places for parked calls
  Budget& refused;                    ///< the part of these places for refused calls
};
void addWorkerRoutes(Router& router, const WorkerDeps& deps);

/// Routes under /v1/keys, and /v1/me.
void addKeyRoutes(Router& router, ApiKeys& keys, const WallClock& wall);

/// The use of installed plugins by this server. Any thread may call the functions.
class PluginUse {
 public:
  virtual ~PluginUse() = default;

  /// Returns true if the server uses the entry of the kind (nameOf(PluginKind)) and name.
  virtual bool isSelected(std::string_view kind, std::string_view name) const = 0;

  /// Returns the scripts of the entry and their faults; empty if the entry is unused or runs no scripts.
  virtual std::vector<ScriptReport> scripts(std::string_view kind, std::string_view name) const = 0;
};

/// Routes under /v1/plugins.
void addPluginRoutes(Router& router, const PluginHost& plugins, const PluginUse& use);

/// Routes under /v1/webhooks.
struct WebhookDeps {
  OutboxStore& outbox;
  WebhookSecrets& secrets;
  DeliveryNotifier& deliveries;  ///< notified after a replay
};
void addWebhookRoutes(Router& router, const WebhookDeps& deps);

/// Routes under /v1/templates. `runtimes` has the worker minutes of the templates.
void addTemplateRoutes(Router& router, TemplateService& service, const EndpointRegistry& registry,
                       const RuntimeMeter& runtimes);

/// Routes under /v1/endpoints.
struct EndpointDeps {
  EndpointService& service;
  const EndpointRegistry& registry;
  const WorkerStatus& workers;
  const RuntimeMeter& runtimes;
  std::string queuePolicy;  ///< default for endpoints without a policy
  std::string node{};       ///< name of this node, whose workers the answers show
};
void addEndpointRoutes(Router& router, const EndpointDeps& deps);

/// Route of the output of launched workers, under /v1/endpoints/{id}/workers.
struct WorkerLogDeps {
  const OutputReader& logs;
  const EndpointRegistry& endpoints;
  CallTimer& timer;  ///< of streams that wait for lines
  const Clock& clock;
  Budget& waiting;  ///< places for streams
  Millis streamSilence;
};
void addWorkerLogRoutes(Router& router, const WorkerLogDeps& deps);

/// Route /v1/health.
struct HealthDeps {
  Storage& storage;
  const EndpointRegistry& endpoints;
  const WorkerStatus& workers;
};
void addHealthRoute(Router& router, const HealthDeps& deps);

/// Drains of nodes (`core/workers/node/node_drains.h`). Any thread.
class NodeDraining {
 public:
  virtual ~NodeDraining() = default;

  /// Orders and ends the drain of a node. Throw StorageError.
  virtual void beginDrain(const std::string& node) = 0;
  virtual void endDrain(const std::string& node) = 0;
  /// Returns whether the node drains, as of the last second.
  virtual bool isDrained(const std::string& node) const = 0;
};

/// Routes under /v1/nodes.
struct NodeDeps {
  Storage& storage;
  NodeDraining& draining;
  std::string self;  ///< name of this node
};
void addNodeRoutes(Router& router, const NodeDeps& deps);

/// Route /v1/backup.
struct BackupDependencies {
  Backups& backups;
  std::string storageName;            ///< value of the setting `storage`
  const std::atomic<bool>& draining;  ///< true: no backup may begin
};
void addBackupRoutes(Router& router, const BackupDependencies& with);

/// Reasons for which /readyz answers 503 although the storage takes writes.
struct UnreadyReasons {
  const std::atomic<bool>& draining;   ///< the server is shutting down
  const std::atomic<bool>& isFenced;   ///< the node may have lost its life in the storage
  const std::atomic<bool>& isDrained;  ///< an administrator lets the node drain
};
/// Routes /, /docs, /openapi.json, /healthz and /readyz, without a key. `waiting` has the places for waiting calls.
void addProcessRoutes(Router& router, Storage& storage, Clock& clock, const UnreadyReasons& reasons, Budget& waiting);

}  // namespace jobq
