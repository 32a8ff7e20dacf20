// The reports of remote workers: job-done, job-done-batch and job-stream. A report for a job that has ended is dropped
// with 200. On a shared storage a report may be about a job that another node has handed out
// (core/workers/remote/foreign_reports.h).
#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <utility>
#include <variant>
#include <vector>

#include "core/http/api/error_response.h"
#include "core/http/api/query_parameters.h"
#include "core/http/api/worker/worker_calls.h"
#include "core/http/api/worker/worker_report.h"
#include "core/model/output_quota.h"
#include "core/workers/remote/foreign_reports.h"
#include "core/workers/remote/remote_workers.h"
#include "jobq/error.h"
#include "jobq/job_handler.h"
#include "jobq/json_writer.h"

namespace jobq {
namespace {

/// Greatest number of a chunk.
constexpr std::int64_t kMostChunks = 1'000'000'000'000;

ApiResponse noted() { return {200, "{}"}; }

ApiResponse counted(std::uint64_t next) {
  return {200, json::object([next](json::ObjectWriter& out) { out.member("next", next); })};
}

// Returns true for the refusal of a report that a repetition by the worker would not mend: the job fails.
bool isFinal(const ApiResponse& refusal) { return refusal.status == 413 || refusal.status == 415; }

Failed unreadReport(const ApiResponse& refusal) {
  if (refusal.status == 415) {
    return {
        "the worker sent a report with a Content-Encoding, or as a multipart form, and neither is read: send JSON "
        "without Content-Encoding",
        ""};
  }
  return {"the worker sent a report over the limit of " + std::to_string(kMaxReport >> 20) +
              " MB; its output may have " + std::to_string(kMaxOutput >> 20) +
              " MB: upload large results and return their address",
          ""};
}

/// The job of a report.
struct ReportedRun {
  RemoteWorkerKey key;
  RemoteRunPtr run;           ///< null unless this node has handed out the job
  AttemptReportsPtr reports;  ///< null unless the worker has the job
};
std::optional<ReportedRun> findReported(const WorkerDeps& deps, ApiRequest& request) {
  auto key = readWorker(request);
  if (!key) return std::nullopt;
  const JobId& job = request.params.at("job");
  RemoteRunPtr run = deps.workers.findRuns(*key, {&job, 1}).front();
  AttemptReportsPtr reports = run ? run : deps.foreign.find(*key, job);
  keepOwner(deps, request, *key, WorkerCall::report);
  return ReportedRun{*std::move(key), std::move(run), std::move(reports)};
}

// Ends a job whose report breaks the rules, and has the worker stop the job.
void failRun(const WorkerDeps& deps, const ReportedRun& reported, Failed failure) {
  (void)reported.reports->finish(std::move(failure));
  if (reported.run) {
    deps.workers.runMustEnd(*reported.run);
  } else {
    deps.foreign.stopJob(reported.key, reported.reports->lease());
  }
}

// A leaving worker is known before the result is: the caller may submit the next job at once.
void end(const WorkerDeps& deps, ApiRequest& request, const ReportedRun& reported, Outcome outcome, bool isLeaving) {
  if (isLeaving) deps.workers.noteResults(reported.key, {}, true);
  if (reported.reports) (void)reported.reports->finish(std::move(outcome));
  const RemoteWorkers::Reported ended{request.params.at("job"), reported.reports};
  deps.workers.noteResults(reported.key, {&ended, 1}, false);
}

bool isFromLeavingWorker(const BatchedReport& report) {
  const auto* result = std::get_if<WorkerResult>(&report.report);
  return result != nullptr && result->isLeaving;
}

// The jobs go back to the queue as losses. A job without a run at the worker is skipped.
void loseJobs(const WorkerDeps& deps, const RemoteWorkerKey& key, const std::vector<JobId>& jobs) {
  const std::vector<RemoteRunPtr> runs = deps.workers.findRuns(key, jobs);
  std::vector<RemoteWorkers::Reported> lost;
  for (std::size_t i = 0; i < runs.size(); ++i) {
    AttemptReportsPtr run = runs[i] ? runs[i] : deps.foreign.find(key, jobs[i]);
    if (!runs[i] && run) deps.foreign.loseJob(run->lease());
    lost.push_back({jobs[i], std::move(run), true});
  }
  deps.workers.noteResults(key, lost, false);
}

}  // namespace

RouteResult reportResult(const WorkerDeps& deps, ApiRequest& request) {
  const auto reported = findReported(deps, request);
  if (!reported) return noted();
  auto report = readWorkerReport(std::move(request.body), kMaxOutput);
  if (auto* progress = std::get_if<WorkerProgress>(&report)) {
    const bool fits = progress->json.size() <= kMaxProgressBytes;
    if (reported->reports && fits) (void)reported->reports->progress(std::move(progress->json));
    return noted();
  }
  auto& result = std::get<WorkerResult>(report);
  end(deps, request, *reported, std::move(result.outcome), result.isLeaving);
  return noted();
}

// An exception leaves the runs where they are, so that the repeated batch finds them.
RouteResult reportResults(const WorkerDeps& deps, ApiRequest& request) {
  const auto key = readWorker(request);
  if (!key) return noted();
  keepOwner(deps, request, *key, WorkerCall::report);
  auto batch = readWorkerBatch(std::move(request.body), kMaxOutput);
  if (!batch) return badRequest(request, batch.failure());
  if (!batch->lost.empty()) loseJobs(deps, *key, batch->lost);
  std::vector<BatchedReport>& reports = batch->reports;
  std::vector<JobId> jobs;
  for (const BatchedReport& each : reports) jobs.push_back(each.job);
  const std::vector<RemoteRunPtr> runs = deps.workers.findRuns(*key, jobs);
  std::vector<EndedRun> ends;
  std::vector<RemoteWorkers::Reported> ended;
  if (std::ranges::any_of(reports, isFromLeavingWorker)) deps.workers.noteResults(*key, {}, true);
  for (std::size_t i = 0; i < runs.size(); ++i) {
    AttemptReportsPtr run = runs[i] ? runs[i] : deps.foreign.find(*key, jobs[i]);
    if (auto* progress = std::get_if<WorkerProgress>(&reports[i].report)) {
      const bool fits = progress->json.size() <= kMaxProgressBytes;
      if (run && fits) (void)run->progress(std::move(progress->json));
      continue;
    }
    auto& result = std::get<WorkerResult>(reports[i].report);
    if (runs[i]) {
      ends.push_back({runs[i], std::move(result.outcome)});
    } else if (run) {
      (void)run->finish(std::move(result.outcome));
    }
    ended.push_back({std::move(jobs[i]), std::move(run)});
  }
  RemoteRun::finishAll(std::move(ends));
  deps.workers.noteResults(*key, ended, false);
  return noted();
}

RouteResult reportChunk(const WorkerDeps& deps, ApiRequest& request) {
  const auto reported = findReported(deps, request);
  if (!reported || !reported->reports) return noted();
  const auto chunk = readWorkerChunk(std::move(request.body));
  const auto first = readNumber(request, "first", {0, kMostChunks}, OutOfRange::refuse, -1);
  try {
    if (!chunk) throw JobFailed(chunk.failure().message());
    if (first && *first >= 0) {
      return counted(reported->reports->addChunkAt(static_cast<std::uint64_t>(*first), chunk->output, chunk->metrics));
    }
    (void)reported->reports->addChunk(chunk->output, chunk->metrics);
  } catch (const JobFailed& failure) {
    failRun(deps, *reported, Failed{failure.what(), ""});
  }
  return noted();
}

RouteResult refusedResult(const WorkerDeps& deps, ApiRequest& request, ApiResponse refusal) {
  if (refusal.status == 404) return noted();
  if (!isFinal(refusal)) return refusal;
  if (const auto reported = findReported(deps, request)) end(deps, request, *reported, unreadReport(refusal), false);
  return noted();
}

RouteResult refusedResults(const WorkerDeps&, ApiRequest&, ApiResponse refusal) {
  if (refusal.status == 404) return noted();
  if (refusal.status == 415) refusal.status = 400;  // the jobs of the unread results are not known
  return refusal;
}

RouteResult refusedChunk(const WorkerDeps& deps, ApiRequest& request, ApiResponse refusal) {
  if (refusal.status == 404) return noted();
  if (!isFinal(refusal)) return refusal;
  const auto reported = findReported(deps, request);
  if (!reported || !reported->reports) return noted();
  failRun(deps, *reported, unreadReport(refusal));
  return noted();
}

RouteResult refusedPing(const WorkerDeps&, ApiRequest&, ApiResponse refusal) {
  if (refusal.status == 404 || refusal.status == 413) return noted();
  return refusal;
}

}  // namespace jobq
