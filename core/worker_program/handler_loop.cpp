#include "core/worker_program/handler_loop.h"

#include <exception>
#include <memory>
#include <optional>
#include <string>

#include "core/worker_program/remote_context.h"
#include "core/worker_program/report_text.h"

namespace jobq::worker {
namespace {

constexpr Millis kLossTime{10'000};  ///< later the server notices the loss by the pings

class HandlerLoop {
 public:
  HandlerLoop(const CallDeps& deps, JobRunner& runner, JobsInHand& jobs, ResultQueue& results)
      : deps_(deps), runner_(runner), jobs_(jobs), results_(results), reports_(deps) {}

  void run(const std::stop_token& end) {
    if (!runner_.prepare(end)) return;
    jobs_.addHandler();
    for (JobPtr job; (job = jobs_.awaitJob(job));) {
      if (!runner_.prepare(end)) return loseJob(job);
      // The handler counts as busy until its successor is ready.
      if (!runJob(job) && !runner_.prepare(end)) return;
    }
  }

 private:
  // Returns false if the handler has died. The report of a stopped job must not count as a result: behind a load
  // balancer a node may send a stop once more when the job has come again, and the report names no attempt. A loss
  // changes nothing for a job that has ended, shows the server that the handler has ended, and returns a job to the
  // queue that was stopped by mistake.
  bool runJob(const JobPtr& job) {
    RemoteContext context(deps_, reports_, *job);
    std::optional<Outcome> outcome = Failed{"the job was stopped before its start", ""};
    if (!job->stop.stop_requested()) outcome = runner_.run(job->job.input, context);
    const bool isAlive = outcome.has_value();
    const bool isStopped = job->stop.stop_requested();
    if (!isStopped && isAlive) {
      results_.add({job, context.deadline(), resultText(*outcome)});
    } else if (isStopped && deps_.addresses.results().empty()) {
      results_.add({job, context.deadline(), resultText(outcome.value_or(Failed{"the job was stopped", ""}))});
    } else {
      loseJob(job);
    }
    return isAlive;
  }

  // The job stays in hand until the server has the report: a call for jobs shows that the worker has jobs, as long as
  // the loss is under way.
  void loseJob(const JobPtr& job) {
    job->isLost = true;
    reports_.postLoss(job->job.id, job->stop.get_token(), deps_.clock.now() + kLossTime);
    jobs_.remove({&job, 1});
  }

  const CallDeps deps_;
  JobRunner& runner_;
  JobsInHand& jobs_;
  ResultQueue& results_;
  ReportSender reports_;
};

}  // namespace

void runHandlerLoop(const CallDeps& deps, JobRunners& runners, JobsInHand& jobs, ResultQueue& results,
                    const std::stop_token& end) noexcept {
  try {
    const std::unique_ptr<JobRunner> runner = runners.make();
    HandlerLoop(deps, *runner, jobs, results).run(end);
  } catch (const std::exception& error) {
    deps.end.fail(std::string("a handler cannot run: ") + error.what());
  } catch (...) {
    deps.end.fail("a handler cannot run: it threw an exception that is not a std::exception");
  }
}

}  // namespace jobq::worker
