#include "core/worker/handler_loop.h"

#include <exception>
#include <string>

#include "core/base/handler_run.h"
#include "core/worker/remote_context.h"
#include "core/worker/report_text.h"

namespace jobq::worker {
namespace {

// A stopped job has ended at the server, which drops the report, but learns that the handler has ended.
UnsentResult runJob(const CallDeps& deps, JobHandler& handler, ReportSender& reports, const JobPtr& job) {
  RemoteContext context(deps, reports, *job);
  Outcome outcome = Failed{"the job was stopped before its start", ""};
  if (!job->stop.stop_requested()) outcome = runHandler(handler, job->job.input, context);
  return {job, context.deadline(), resultText(outcome)};
}

}  // namespace

void runHandlerLoop(const CallDeps& deps, HandlerFactory& handlers, const HandlerEnv& env, JobsInHand& jobs,
                    ResultQueue& results) noexcept {
  try {
    const auto handler = handlers.make(env);
    ReportSender reports(deps);
    jobs.addHandler();
    for (JobPtr job; (job = jobs.awaitJob(job));) results.add(runJob(deps, *handler, reports, job));
  } catch (const std::exception& error) {
    deps.end.fail(std::string("a handler cannot run: ") + error.what());
  } catch (...) {
    deps.end.fail("a handler cannot run: it threw an exception that is not a std::exception");
  }
}

}  // namespace jobq::worker
