// Adapters between stages that do not include each other. Each class implements the interfaces of its callers by calls
// of other stages; the calls between such stages are all in this file, core/plugin_instances.h and
// core/application.cpp. The adapters have no state. Any thread may call, unless the interface says otherwise. The
// referenced objects outlive the adapters.
#pragma once

#include <cstddef>
#include <cstdint>
#include <map>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "core/endpoints/endpoint.h"
#include "core/endpoints/endpoint_registry.h"
#include "core/endpoints/worker_pool_view.h"
#include "core/http/api/routes.h"
#include "core/jobs/run_stopper.h"
#include "core/limits/rate_limit_gate.h"
#include "core/maintenance/endpoint_remover.h"
#include "core/maintenance/sweeper.h"
#include "core/model/webhook_backoff.h"
#include "core/webhooks/webhook_secrets.h"
#include "core/workers/launched/launched_workers.h"
#include "core/workers/pool/pool_status.h"
#include "jobq/job.h"
#include "jobq/lease_store.h"
#include "jobq/node_store.h"
#include "jobq/storage.h"

namespace jobq {

class ApiKeys;
class CompletionNotifier;
class EndpointService;
class NodeDrains;
class NodeLife;
class OutboxCleaner;
class RunReports;
class RuntimeMeter;
class ProcessKeys;
class RemoteWorkers;
class ThreadExecutor;
class WebhookDispatcher;
class WorkerPools;
class WorkerSupervisor;

/// Webhook delivery asks for the secrets of endpoints, and for their attempts.
class EndpointKeys final : public WebhookPolicy {
 public:
  /// `others` is for endpoints that are unknown, such as deleted ones. `endpoints` outlives the object.
  EndpointKeys(const EndpointRegistry& endpoints, const WebhookBackoff& others)
      : endpoints_(endpoints), others_(others) {}
  WebhookBackoff webhookRetries(const EndpointId& endpoint) const override;
  std::string webhookKey(const EndpointId& endpoint) const override;

 private:
  const EndpointRegistry& endpoints_;
  const WebhookBackoff others_;
};

/// Launched workers get keys from authentication.
class LaunchKeys final : public LaunchKeyring {
 public:
  explicit LaunchKeys(ProcessKeys& keys) : keys_(keys) {}
  std::string keyFor(const EndpointId& endpoint) override;
  void forgetKey(const EndpointId& endpoint) override;

 private:
  ProcessKeys& keys_;
};

/// Routes and rate limiting ask for the workers of an endpoint, and routes and sweeps stop runs.
class NodeWorkers final : public WorkerStatus, public RunStopper, public EndpointLoad {
 public:
  struct Deps {
    WorkerPools& pools;
    WorkerSupervisor& supervisor;
    ThreadExecutor& executor;
    RemoteWorkers& remote;
    const LaunchedWorkers& launched;
    Storage& storage;
    const NodeLife& node;
  };
  explicit NodeWorkers(const Deps& deps) : deps_(deps) {}

  WorkerCounts counts(const EndpointId& endpoint) const override;
  /// Returns true if no node has a worker of the endpoint that may run a job. Throws StorageError.
  bool hasNoActiveWorkers(const EndpointId& endpoint) const;
  WorkerPoolView view(const EndpointId& endpoint) const override;
  std::string_view waitReason(const Endpoint& endpoint, bool lowPriority) const override;
  std::optional<std::string> advice(const Endpoint& endpoint, AdviceReader reader) const override;
  void stopRun(const LeaseRef& lease) override;

  /// Stops the runs on this node whose attempt has ended in the storage. Throws StorageError.
  void stopEndedRuns();

  std::uint32_t nodes() const override;
  std::uint32_t running(const EndpointId& endpoint) const override { return counts(endpoint).running; }
  std::uint64_t waiting(const EndpointId& endpoint) const override;

  /// Returns the number of workers of each template on this node.
  std::map<std::string, std::size_t> workersOfTemplates() const;

 private:
  PoolStatus statusOfAllNodes(const EndpointId& endpoint) const;

  const Deps deps_;
};

/// Routes order the drains of nodes.
class DrainOrders final : public NodeDraining {
 public:
  DrainOrders(NodeDrains& drains, const NodeLife& node) : drains_(drains), node_(node) {}
  void beginDrain(const std::string& node) override;
  void endDrain(const std::string& node) override;
  bool isDrained(const std::string& node) const override;

 private:
  NodeDrains& drains_;
  const NodeLife& node_;
};

/// The registry reports changes of endpoints, and the remover asks for the remains of deleted endpoints.
class EndpointLifecycle final : public EndpointListener, public LeavingEndpoints, public EndpointActivity {
 public:
  struct Deps {
    EndpointRegistry& registry;
    EndpointService& service;
    const NodeWorkers& workers;
    WorkerPools& pools;
    CompletionNotifier& completions;
  };
  explicit EndpointLifecycle(const Deps& deps) : deps_(deps) {}

  void endpointChanged(const EndpointId& id, const EndpointPtr& now) override;

  std::vector<EndpointId> leaving() const override;
  bool isInUse(const EndpointId& endpoint) const override;
  void forget(const EndpointId& endpoint) override;
  bool hasNoActiveWorkers(const EndpointId& endpoint) const override;
  void announceRemoved(const EndpointId& endpoint) override;

 private:
  const Deps deps_;
};

/// The sweeper reports its results and performs the other tasks of every second.
class SweepTasks final : public SweepListener {
 public:
  struct Deps {
    EndpointRegistry& endpoints;
    NodeDrains& drains;
    RunReports& reports;
    NodeWorkers& workers;
    OutboxCleaner& outboxCleaner;
    EndpointRemover& remover;
    ApiKeys& keys;
    RuntimeMeter& runtimes;
    WebhookDispatcher& webhooks;
  };
  explicit SweepTasks(const Deps& deps) : deps_(deps) {}

  void beforeSweep() override;
  void swept(const SweepResult& result) override;
  void sweepUnanswered() override;
  void afterSweep() override;

 private:
  const Deps deps_;
};

}  // namespace jobq
