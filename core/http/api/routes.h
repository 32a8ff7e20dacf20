// The tables of routes, one function a topic. Each adds its rows to the router.
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

/// /v2/{endpoint} and /sdk/v2/{endpoint}: everything about jobs.
struct QueueDeps {
  JobService& jobs;
  SubmissionRules rules;
  std::function<WorkerCounts(const EndpointId&)> workers;  ///< of all nodes
  std::function<void(const LeaseRef&)> stopRun;            ///< fires the stop token of an attempt that runs here
  std::function<bool()> draining;                          ///< new jobs are refused
  std::function<std::string_view(const Endpoint&, bool lowPriority)> waitReason;  ///< why a job waits here
  Budget& waiting;                                                                ///< places for calls that wait
  Budget& answerMemory;                                                           ///< for large answers
};
void addQueueRoutes(Router& router, const QueueDeps& deps);

/// /v1/keys.
void addKeyRoutes(Router& router, ApiKeys& keys, const WallClock& wall);

/// /v1/plugins. `selected`: whether the configuration uses an entry; `scripts`: what it runs.
struct PluginUse {
  std::function<bool(std::string_view kind, std::string_view name)> selected;
  std::function<std::vector<ScriptReport>(std::string_view kind, std::string_view name)> scripts;
};
void addPluginRoutes(Router& router, const PluginHost& plugins, PluginUse use);

/// /v1/webhooks. `secret` answers the server's secret as receivers are given it; `ring` tells the courier that
/// something is owed.
struct WebhookDeps {
  OutboxStore& outbox;
  std::function<std::string()> secret;
  std::function<void()> ring;
};
void addWebhookRoutes(Router& router, const WebhookDeps& deps);

/// /v1/templates.
void addTemplateRoutes(Router& router, TemplateService& service, const EndpointRegistry& registry,
                       std::function<std::int64_t(const std::string& templateId)> runtimeInMin);

/// /v1/endpoints. `crew` tells of the workers that this node has.
struct EndpointDeps {
  EndpointService& service;
  const EndpointRegistry& registry;
  std::function<WorkerPoolView(const EndpointId&)> workerPool;
  std::function<std::int64_t(const std::string& templateId)> runtimeInMin;
  std::string queuePolicy;  ///< of endpoints that name none
};
void addEndpointRoutes(Router& router, const EndpointDeps& deps);

/// /v1/backup. `storageName`: as `storage` selects it.
struct BackupDependencies {
  Backups& backups;
  std::string storageName;
  std::function<bool()> draining;
};
void addBackupRoutes(Router& router, const BackupDependencies& with);

/// /, /docs, /openapi.json, /healthz and /readyz, without a key.
void addProcessRoutes(Router& router, Storage& storage, Clock& clock, std::function<bool()> draining);

}  // namespace jobq
