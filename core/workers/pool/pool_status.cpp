#include "core/workers/pool/pool_status.h"

namespace jobq {

bool hasNoActiveWorkers(const PoolStatus& status) noexcept {
  return status.counts.initializing + status.counts.idle + status.counts.running == 0;
}

std::string_view waitReason(const PoolStatus& status, const Endpoint& endpoint, bool lowPriority) noexcept {
  if (endpoint.spec.paused) return "paused";
  if (!status.exists || endpoint.spec.workersMax == 0) return "no_workers";
  if (status.isDrained) return "draining";
  const WorkerCounts& counts = status.counts;
  // An idle worker is about to claim: the job waits only for the jobs before it.
  if (counts.running + counts.idle > 0) return "workers_busy";
  if (counts.initializing > 0) return "starting";
  if (status.lacksGpu) return "no_gpu";
  if (counts.throttled > 0 || counts.unhealthy > 0) return "worker_crashing";
  // No worker exists yet. The scaler starts one for a normal job, never for a low-priority job, and a remote worker
  // only with a launcher.
  const bool isRemote = endpoint.release && endpoint.release->isRemote;
  return lowPriority || (isRemote && !status.isLaunched) ? "no_workers" : "starting";
}

std::optional<std::string> workerAdvice(const PoolStatus& status, const Endpoint& endpoint, bool hasServed,
                                        AdviceReader reader) {
  const bool isRemote = endpoint.release && endpoint.release->isRemote && endpoint.spec.workersMax > 0;
  if (!isRemote || !hasNoActiveWorkers(status)) return std::nullopt;
  const std::string fault = reader == AdviceReader::administrator || !status.launchFault
                                ? status.launchFault.value_or("")
                                : "an administrator finds the reason in GET /v1/endpoints/" + endpoint.spec.id;
  if (status.isLaunched) {
    if (status.lacksGpu) {
      return "all GPUs of launcher.gpus are in use: wait for the end of another worker, lower idleTimeout or "
             "workersMin "
             "of other endpoints, or name more GPUs";
    }
    if (!status.launchFault) return std::nullopt;
    return "the last worker that was launched failed: " + fault;
  }
  return std::string(hasServed ? "no worker is connected now" : "no worker has ever connected") +
         ": run `jobqctl worker env " + endpoint.spec.id + "` and start a worker with the printed variables" +
         (status.launchFault ? "; the launcher starts none: " + fault : "");
}

}  // namespace jobq
