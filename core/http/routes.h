// The tables of routes, one function a topic. Each adds its rows to the router.
#pragma once

#include <functional>

#include "core/http/router.h"
#include "core/jobs/submission.h"
#include "jobq/worker_store.h"

namespace jobq {

class JobService;
class OutboxStore;
class PluginHost;
class Storage;

/// /v2/{endpoint} and /sdk/v2/{endpoint}: everything about jobs.
struct QueueRooms {
  JobService& jobs;
  SubmissionRules rules;
  std::function<WorkerCounts(const EndpointId&)> workers;  ///< of all nodes
  std::function<void(const LeaseRef&)> stopRun;            ///< fires the stop token of an attempt that runs here
  std::function<bool()> draining;                          ///< new jobs are refused
  Budget& waiting;                                         ///< places for calls that wait
  Budget& answerMemory;                                    ///< for large answers
};
void addQueueRoutes(Router& router, const QueueRooms& rooms);

/// /v1/keys.
void addKeyRoutes(Router& router, ApiKeys& keys, Clock& clock);

/// /v1/plugins. `selected` says whether the configuration uses an entry.
void addPluginRoutes(Router& router, const PluginHost& plugins,
                     std::function<bool(std::string_view kind, std::string_view name)> selected);

/// /v1/webhooks. `secret` answers the server's secret as receivers are given it; `ring` tells the courier that
/// something is owed.
struct WebhookRooms {
  OutboxStore& outbox;
  std::function<std::string()> secret;
  std::function<void()> ring;
};
void addWebhookRoutes(Router& router, const WebhookRooms& rooms);

/// /healthz and /readyz, without a key.
void addProcessRoutes(Router& router, Storage& storage, std::function<bool()> draining);

}  // namespace jobq
