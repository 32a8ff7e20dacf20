// The tables of routes, one function a topic. Each adds its rows to the router.
#pragma once

#include <functional>

#include "core/http/router.h"
#include "core/jobs/submission.h"
#include "jobq/worker_store.h"

namespace jobq {

class JobService;
class PluginHost;
class Storage;

/// /v2/{endpoint}: submit, look, wait, health. `workers` answers this node's workers of an endpoint; `draining` whether
/// new jobs are refused.
struct QueueRooms {
  JobService& jobs;
  Storage& storage;
  SubmissionRules rules;
  std::string node;
  std::function<WorkerCounts(const EndpointId&)> workers;
  std::function<void(const LeaseRef&)> stopRun;  ///< fires the stop token of an attempt that runs here
  std::function<bool()> draining;
  Budget& waiting;       ///< places for calls that wait
  Budget& answerMemory;  ///< for large answers
};
void addQueueRoutes(Router& router, const QueueRooms& rooms);

/// /v1/keys.
void addKeyRoutes(Router& router, ApiKeys& keys, Clock& clock);

/// /v1/plugins. `selected` says whether the configuration uses an entry.
void addPluginRoutes(Router& router, const PluginHost& plugins,
                     std::function<bool(std::string_view kind, std::string_view name)> selected);

/// /healthz and /readyz, without a key.
void addProcessRoutes(Router& router, Storage& storage, std::function<bool()> draining);

}  // namespace jobq
