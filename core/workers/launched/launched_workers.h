// The remote workers that the node runs with a launcher. The class starts workers by the rule of the scaler, and ends
// workers that are idle, outdated or stuck. LaunchPool decides (core/workers/launched/launch_pool.h); the launcher
// carries the decisions out (sdk/include/jobq/worker_launcher.h). Without a launcher the object does nothing.
#pragma once

#include <atomic>
#include <cstdint>
#include <map>
#include <memory>
#include <optional>
#include <set>
#include <string>
#include <utility>
#include <vector>

#include "core/base/periodic.h"
#include "core/base/service.h"
#include "core/endpoints/endpoint.h"
#include "core/endpoints/worker_pool_view.h"
#include "core/workers/launched/gpu_pool.h"
#include "core/workers/launched/launch_pool.h"
#include "core/workers/launched/output_log.h"
#include "core/workers/launched/remote_launches.h"
#include "core/workers/pool/worker_pools.h"
#include "core/workers/remote/remote_pools.h"
#include "core/workers/remote/remote_worker.h"
#include "core/workers/remote/remote_workers.h"
#include "jobq/job.h"
#include "jobq/job_store.h"
#include "jobq/log.h"
#include "jobq/mutex.h"
#include "jobq/storage.h"
#include "jobq/time.h"
#include "jobq/worker_launcher.h"

namespace jobq {

class NodeLife;
class QueueSignal;

/// Gives keys to launched workers.
class LaunchKeyring {
 public:
  virtual ~LaunchKeyring() = default;
  /// Returns the key with which workers of the endpoint take jobs; the same key until forgetKey().
  virtual std::string keyFor(const EndpointId& endpoint) = 0;
  /// Makes the key of the endpoint invalid.
  virtual void forgetKey(const EndpointId& endpoint) = 0;
};

/// A copy of the launcher's state for an endpoint.
struct LaunchView {
  bool isLaunched = false;           ///< the launcher starts workers of the endpoint
  bool isThrottled = false;          ///< the launcher waits after a failed start
  bool lacksGpu = false;             ///< a worker would start with more free GPUs
  std::optional<std::string> fault;  ///< why no worker starts, or why the last start failed
  std::map<WorkerId, LaunchedWorker> workers;
};

/// Any thread, except as noted. The launcher is called without the lock.
class LaunchedWorkers final : public Service, private PeriodicTask {
 public:
  /// All members outlive the object.
  struct Deps {
    WorkerLauncher* launcher;  ///< null: no worker is launched
    WorkerPools& pools;
    RemoteWorkers& remote;
    Storage& storage;
    QueueSignal& queueSignal;
    LaunchKeyring& keys;
    const NodeLife& node;
    Clock& clock;
    Log& log;
    std::vector<std::string> gpus{};  ///< ids of the GPUs for the workers; empty: GPUs are not counted
  };
  /// `prefix` begins the ids of the workers.
  LaunchedWorkers(const Deps& deps, std::string prefix);
  ~LaunchedWorkers() override { stop(); }

  /// Sets the address under which workers reach the server, without a slash at the end. Called before start().
  void setServerUrl(std::string url) { serverUrl_ = std::move(url); }
  /// Starts the thread that checks the workers four times a second.
  void start() override;
  /// Ends the thread. The workers go on until endWorkers().
  void stop() override { periodic_.stop(); }

  /// Looks at each endpoint. Called by the thread, and by tests.
  void run() override;

  /// Returns the workers that the launcher runs now. Called after stop().
  std::set<RemoteWorkerKey> keys() const;
  /// Asks all workers to end, and kills the workers that are still running after `grace`. Called after stop().
  void endWorkers(Millis grace);

  /// The newest lines that the workers have written.
  const OutputLog& logs() const noexcept { return logs_; }

  /// Returns the launcher's state for the endpoint.
  LaunchView view(const EndpointId& endpoint) const;

 private:
  void collectEvents();
  void recordExit(const WorkerExit& exit);
  void serveEndpoint(const EndpointId& endpoint, const RemotePool* pool);
  LaunchSituation situationOf(const EndpointId& endpoint, const RemotePool* pool) const;
  EndpointCounts countJobs(const EndpointId& endpoint) const;
  void launchWorker(const Endpoint& endpoint, const ReleasePtr& release);
  std::optional<std::string> launchFault(const RemotePool& pool) const;
  /// Returns a sentence if the GPUs of this machine are not enough for a single worker.
  std::optional<std::string> gpuFault(const Endpoint& endpoint) const;

  const Deps deps_;
  const std::string prefix_;
  std::string serverUrl_;
  RemotePools pools_;
  RemoteLaunches remote_;
  std::uint64_t workersStarted_ = 0;  // used by the thread only
  mutable Mutex mutex_;
  std::map<EndpointId, LaunchPool> launches_ JOBQ_GUARDED_BY(mutex_);
  GpuPool gpus_ JOBQ_GUARDED_BY(mutex_);
  OutputLog logs_;
  Periodic periodic_;
};

}  // namespace jobq
