// The tables of routes, one function for each topic. Each function adds its rows to the router. Objects passed by
// reference outlive the router.
#pragma once

#include <cstdint>
#include <functional>
#include <string>
#include <string_view>
#include <vector>

#include "core/auth/api_keys.h"
#include "core/base/clock.h"
#include "core/endpoints/endpoint.h"
#include "core/endpoints/worker_pool_view.h"
#include "core/http/api/router.h"
#include "core/http/transport/budget.h"
#include "core/jobs/submission.h"
#include "jobq/job.h"
#include "jobq/plugin.h"
#include "jobq/time.h"
#include "jobq/worker_store.h"

namespace jobq {

class Backups;
class EndpointRegistry;
class EndpointService;
class JobService;
class OutboxStore;
class PluginHost;
class Storage;
class TemplateService;

/// Routes about jobs under /v2/{endpoint} and /sdk/v2/{endpoint}.
struct QueueDeps {
  JobService& jobs;
  SubmissionRules rules;
  std::function<WorkerCounts(const EndpointId&)> workers;  ///< workers of all nodes
  std::function<void(const LeaseRef&)> stopRun;  ///< fires the stop token of an attempt that runs on this node
  std::function<bool()> draining;                ///< returns true if new jobs are refused
  std::function<std::string_view(const Endpoint&, bool lowPriority)> waitReason;  ///< reason why a job waits here
  Budget& waiting;                                                                ///< places for waiting calls
  Budget& answerMemory;                                                           ///< bytes for large answers
};
void addQueueRoutes(Router& router, const QueueDeps& deps);

/// Routes under /v1/keys.
void addKeyRoutes(Router& router, ApiKeys& keys, const WallClock& wall);

/// Routes under /v1/plugins. `selected` returns whether the configuration uses an entry; `scripts` returns the scripts
/// of an entry and their faults.
struct PluginUse {
  std::function<bool(std::string_view kind, std::string_view name)> selected;
  std::function<std::vector<ScriptReport>(std::string_view kind, std::string_view name)> scripts;
};
void addPluginRoutes(Router& router, const PluginHost& plugins, PluginUse use);

/// Routes under /v1/webhooks. `secret` returns the server's secret in the form given to receivers; `ring` notifies the
/// WebhookDispatcher that a delivery may be owed.
struct WebhookDeps {
  OutboxStore& outbox;
  std::function<std::string()> secret;
  std::function<void()> notify;
};
void addWebhookRoutes(Router& router, const WebhookDeps& deps);

/// Routes under /v1/templates. `runtimeInMin` returns the worker minutes of a template.
void addTemplateRoutes(Router& router, TemplateService& service, const EndpointRegistry& registry,
                       std::function<std::int64_t(const std::string& templateId)> runtimeInMin);

/// Routes under /v1/endpoints. `workerPool` returns the workers of an endpoint on this node; `runtimeInMin`
/// returns the worker minutes of a template.
struct EndpointDeps {
  EndpointService& service;
  const EndpointRegistry& registry;
  std::function<WorkerPoolView(const EndpointId&)> workerPool;
  std::function<std::int64_t(const std::string& templateId)> runtimeInMin;
  std::string queuePolicy;  ///< default for endpoints without a policy
};
void addEndpointRoutes(Router& router, const EndpointDeps& deps);

/// Route /v1/backup. `storageName` is the value of the setting `storage`; `draining` returns true if no
/// backup may begin.
struct BackupDependencies {
  Backups& backups;
  std::string storageName;
  std::function<bool()> draining;
};
void addBackupRoutes(Router& router, const BackupDependencies& with);

/// Routes /, /docs, /openapi.json, /healthz and /readyz, without a key. While `draining` returns true /readyz answers
/// 503.
void addProcessRoutes(Router& router, Storage& storage, Clock& clock, std::function<bool()> draining);

}  // namespace jobq
