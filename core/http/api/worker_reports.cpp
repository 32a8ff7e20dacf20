// The reports of remote workers: job-done and job-stream. A report for a job that has ended is dropped with 200.
#include <utility>
#include <variant>

#include "core/base/output_quota.h"
#include "core/http/api/worker_calls.h"
#include "core/http/api/worker_report.h"
#include "core/workers/remote_workers.h"
#include "jobq/error.h"
#include "jobq/job_handler.h"

namespace jobq {
namespace {

ApiResponse noted() { return {200, "{}"}; }

Failed tooLargeReport() {
  return {"the worker sent a report over the limit of " + std::to_string(kMaxOutput >> 20) +
              " MB: upload large results and return their address",
          ""};
}

/// The job of a report, if its worker has the job.
struct ReportedRun {
  RemoteWorkerKey key;
  RemoteRunPtr run;
};
std::optional<ReportedRun> findReported(const WorkerDeps& deps, ApiRequest& request) {
  auto key = readWorker(request);
  if (!key) return std::nullopt;
  keepOwner(deps, request, *key);
  RemoteRunPtr run = deps.workers.findRun(*key, request.params.at("job"));
  return ReportedRun{*std::move(key), std::move(run)};
}

void end(const WorkerDeps& deps, ApiRequest& request, const ReportedRun& reported, Outcome outcome, bool isLeaving) {
  if (reported.run) (void)reported.run->finish(std::move(outcome));
  deps.workers.noteResult(reported.key, request.params.at("job"), reported.run, isLeaving);
}

}  // namespace

RouteResult reportResult(const WorkerDeps& deps, ApiRequest& request) {
  const auto reported = findReported(deps, request);
  if (!reported) return noted();
  auto report = readWorkerReport(std::move(request.body), kMaxOutput);
  if (auto* progress = std::get_if<WorkerProgress>(&report)) {
    const bool fits = progress->json.size() <= kMaxProgressBytes;
    if (reported->run && fits) (void)reported->run->progress(std::move(progress->json));
    return noted();
  }
  auto& result = std::get<WorkerResult>(report);
  end(deps, request, *reported, std::move(result.outcome), result.isLeaving);
  return noted();
}

RouteResult reportChunk(const WorkerDeps& deps, ApiRequest& request) {
  const auto reported = findReported(deps, request);
  if (!reported || !reported->run) return noted();
  const auto chunk = readWorkerChunk(std::move(request.body));
  try {
    if (!chunk) throw JobFailed("the worker sent a chunk that is not a JSON object with an output");
    (void)reported->run->addChunk(chunk->output, chunk->metrics);
  } catch (const JobFailed& failure) {
    (void)reported->run->finish(Failed{failure.what(), ""});
    deps.workers.runMustEnd(*reported->run);
  }
  return noted();
}

RouteResult refusedResult(const WorkerDeps& deps, ApiRequest& request, ApiResponse refusal) {
  if (refusal.status == 404) return noted();
  if (refusal.status != 413) return refusal;
  if (const auto reported = findReported(deps, request)) end(deps, request, *reported, tooLargeReport(), false);
  return noted();
}

RouteResult refusedChunk(const WorkerDeps& deps, ApiRequest& request, ApiResponse refusal) {
  if (refusal.status == 404) return noted();
  if (refusal.status != 413) return refusal;
  const auto reported = findReported(deps, request);
  if (!reported || !reported->run) return noted();
  (void)reported->run->finish(tooLargeReport());
  deps.workers.runMustEnd(*reported->run);
  return noted();
}

RouteResult refusedPing(const WorkerDeps&, ApiRequest&, ApiResponse refusal) {
  if (refusal.status == 404 || refusal.status == 413) return noted();
  return refusal;
}

}  // namespace jobq
