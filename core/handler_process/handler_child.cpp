#include "core/handler_process/handler_child.h"

#include <signal.h>
#include <sys/prctl.h>

#include <cstdint>
#include <exception>
#include <fstream>
#include <memory>
#include <stop_token>
#include <string_view>
#include <utility>
#include <vector>

#include "core/base/clock.h"
#include "core/base/logger.h"
#include "core/base/words.h"
#include "core/handler_process/child_process.h"
#include "core/handler_process/handler_messages.h"
#include "core/handler_process/local_handler.h"
#include "core/handler_process/parent_link.h"
#include "core/model/handler_run.h"
#include "core/model/output_quota.h"
#include "core/process/process_signals.h"
#include "jobq/error.h"

namespace jobq::worker {
namespace {

/// A handler's view of a job. The rules of RemoteContext hold: a report returns when the server has the report, and is
/// dropped after a stop.
class ChildContext final : public JobContext {
 public:
  /// `link` and `job` outlive the object.
  ChildContext(ParentLink& link, const HandedJob& job, Instant deadline)
      : link_(link), job_(job), deadline_(deadline), stop_(link.stopToken()) {}

  const JobId& id() const override { return job_.id; }
  std::uint32_t attempt() const override { return job_.attempt; }
  std::stop_token stopToken() const override { return stop_; }
  Instant deadline() const override { return deadline_; }
  std::string_view s3Config() const override { return job_.s3Config; }

  void emit(std::string_view chunk, std::string_view metrics) override {
    outputQuota_.charge({chunk, metrics});
    checkChunk(chunk);
    report(MessageKind::chunk, {chunk, metrics});
  }
  void progress(std::string_view json) override {
    checkProgress(json);
    report(MessageKind::progress, {json});
  }
  void log(LogLevel level, std::string_view line) override {
    link_.send(writeLine(level, clipped(line, kLongestLine)));
  }

 private:
  void report(MessageKind kind, const std::vector<std::string_view>& fields) {
    if (stop_.stop_requested()) return;
    link_.send(encodeMessage(kind, fields));
    const Message answer = link_.awaitAnswer();
    if (answer.kind == MessageKind::refused && !answer.fields.empty()) throw JobFailed(answer.fields[0]);
  }

  ParentLink& link_;
  const HandedJob& job_;
  const Instant deadline_;
  const std::stop_token stop_;
  OutputQuota outputQuota_;
};

void runJob(JobHandler& handler, ParentLink& link, const Clock& clock, Message message) {
  const HandedJob job = readJob(std::move(message));
  ChildContext context(link, job, job.time ? clock.now() + *job.time : Instant::max());
  link.send(writeOutcome(runHandler(handler, job.input, context)));
}

void runJobs(ParentLink& link, const HandlerSetup& setup) {
  Logger log(LogLevel::debug, LogFormat::text);
  SystemClock clock;
  const LocalHandler local(setup, clock, log);
  const std::unique_ptr<JobHandler> handler = local.make();
  link.send(encodeMessage(MessageKind::ready));
  while (auto job = link.awaitWork()) runJob(*handler, link, clock, *std::move(job));
}

// A system without memory kills the process of the largest handler rather than the worker.
void volunteerForKill() { std::ofstream("/proc/self/oom_score_adj") << "500"; }

}  // namespace

int runHandlerChild() {
  // The end of the socket shows the end of a worker before the call.
  ::prctl(PR_SET_PDEATHSIG, SIGKILL);
  surviveSignals();  // a terminal or a supervisor may signal all processes
  volunteerForKill();
  ParentLink link(kHandlerSocket);
  try {
    if (auto setup = link.awaitWork()) runJobs(link, readSetup(*std::move(setup)));
    return 0;
  } catch (const std::exception& error) {
    link.send(encodeMessage(MessageKind::fault, {error.what()}));
  } catch (...) {
    link.send(encodeMessage(MessageKind::fault, {"the handler threw an exception that is not a std::exception"}));
  }
  return 1;
}

}  // namespace jobq::worker
