#include "core/worker/handler_loop.h"

#include <exception>
#include <string>

#include "core/base/handler_run.h"
#include "core/worker/remote_context.h"
#include "core/worker/report_text.h"

namespace jobq::worker {
namespace {

// A stopped job has ended at the server, which drops the report: one try tells the server that the handler has ended.
void reportResult(const CallDeps& deps, ReportSender& reports, const JobInHand& job, const Outcome& outcome,
                  Instant deadline) {
  if (job.isAbandoned) return;
  reports.post(deps.addresses.result(job.job.id), resultText(outcome), job.stop.get_token(), deadline);
}

void runJob(const CallDeps& deps, JobHandler& handler, ReportSender& reports, const JobInHand& job) {
  RemoteContext context(deps, reports, job);
  Outcome outcome = Failed{"the job was stopped before its start", ""};
  if (!job.stop.stop_requested()) outcome = runHandler(handler, job.job.input, context);
  reportResult(deps, reports, job, outcome, context.deadline());
}

}  // namespace

void runHandlerLoop(const CallDeps& deps, HandlerFactory& handlers, const HandlerEnv& env, JobsInHand& jobs) noexcept {
  try {
    const auto handler = handlers.make(env);
    ReportSender reports(deps);
    jobs.addHandler();
    while (const JobPtr job = jobs.awaitJob()) {
      runJob(deps, *handler, reports, *job);
      jobs.remove(job);
    }
  } catch (const std::exception& error) {
    deps.end.fail(std::string("a handler cannot run: ") + error.what());
  } catch (...) {
    deps.end.fail("a handler cannot run: it threw an exception that is not a std::exception");
  }
}

}  // namespace jobq::worker
