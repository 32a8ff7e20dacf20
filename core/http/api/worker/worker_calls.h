// The calls of remote workers, one function each. The table of routes is in core/http/api/worker/worker_routes.cpp. Any
// HTTP thread may run a call; StorageError passes through to the pipeline, which answers 503: the worker sends a report
// again.
#pragma once

#include "core/base/result.h"
#include "core/http/api/api_request.h"
#include "core/http/api/routes.h"
#include "core/workers/remote/remote_worker.h"

namespace jobq {

/// Reads the worker named in the path. Moves parameters after a `&` of the last segment to the query. Fails if the id
/// is malformed.
Result<RemoteWorkerKey> readWorker(ApiRequest& request);

/// Makes the connection one of the worker, if the worker is known.
void keepOwner(const WorkerDeps& deps, ApiRequest& request, const RemoteWorkerKey& key, WorkerCall call);

/// Answers a refusal three seconds later, because a refused worker calls again at once. Answers 429 if there is no
/// place for a refused call.
RouteResult refuseLate(const WorkerDeps& deps, ApiRequest& request, ApiResponse refusal);

/// The same for a path without a route that is similar to the path of a call for jobs or stops. The answer names the
/// remedy.
RouteResult refusePathLate(const WorkerDeps& deps, ApiRequest& request, ApiResponse refusal);

// Defined in worker_calls.cpp.
RouteResult awaitJob(const WorkerDeps& deps, ApiRequest& request);
RouteResult awaitJobs(const WorkerDeps& deps, ApiRequest& request);
RouteResult awaitStops(const WorkerDeps& deps, ApiRequest& request);
RouteResult ping(const WorkerDeps& deps, ApiRequest& request);

// Defined in worker_reports.cpp.
RouteResult reportResult(const WorkerDeps& deps, ApiRequest& request);
/// Stores the results of many jobs in a single step of the storage. An unreadable batch changes nothing.
RouteResult reportResults(const WorkerDeps& deps, ApiRequest& request);
RouteResult reportChunk(const WorkerDeps& deps, ApiRequest& request);
/// Answers a report whose request was refused: a result over the limits ends its job as FAILED, and a report for an
/// unknown endpoint is dropped, both with 200, because a worker drops a refused report for ever.
RouteResult refusedResult(const WorkerDeps& deps, ApiRequest& request, ApiResponse refusal);
/// Answers a batch whose request was refused. For an unknown endpoint the batch is dropped, otherwise the batch must
/// come again.
RouteResult refusedResults(const WorkerDeps& deps, ApiRequest& request, ApiResponse refusal);
RouteResult refusedChunk(const WorkerDeps& deps, ApiRequest& request, ApiResponse refusal);
/// Answers a refused ping, whose reply no worker reads.
RouteResult refusedPing(const WorkerDeps& deps, ApiRequest& request, ApiResponse refusal);

}  // namespace jobq
