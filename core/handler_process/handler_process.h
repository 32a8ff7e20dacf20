// Handlers in separate processes, a process for each handler thread of jobq-worker (--isolation process). A handler
// that crashes, corrupts its memory or never returns harms only its own job.
//
// The process loads the plugin and runs one job after the other. The thread in the worker hands over jobs and stops,
// and passes on chunks, progress, log lines and the outcome. A process that dies, or sends bytes that are not a
// message, is replaced after a pause, and the current job is lost. A process is killed if the handler does not obey a
// stop.
#pragma once

#include <memory>
#include <optional>
#include <stop_token>
#include <string>
#include <string_view>
#include <utility>

#include "core/base/backoff.h"
#include "core/handler_process/child_link.h"
#include "core/handler_process/handler_messages.h"
#include "core/handler_process/job_runner.h"
#include "core/handler_process/local_handler.h"
#include "core/handler_process/wake_descriptor.h"
#include "jobq/job.h"
#include "jobq/job_handler.h"
#include "jobq/log.h"
#include "jobq/time.h"

namespace jobq::worker {

class HandlerProcess final : public JobRunner {
 public:
  /// The referenced objects outlive the object.
  HandlerProcess(const HandlerSetup& setup, Clock& clock, Log& log) : setup_(setup), clock_(clock), log_(log) {}

  /// Starts a process unless a process is running. Tries again, with pauses of a Backoff, if the process dies during
  /// the start. Throws std::runtime_error if the first process reports why the process can make no handler.
  bool prepare(const std::stop_token& end) override;
  std::optional<Outcome> run(std::string_view input, JobContext& context) override;

 private:
  std::optional<std::string> start(const std::stop_token& end);
  std::optional<Outcome> exchange(std::string_view input, JobContext& context);
  void report(Message message, JobContext& context);
  std::string endProcess();

  const HandlerSetup& setup_;
  Clock& clock_;
  Log& log_;
  const WakeDescriptor wake_;
  std::optional<ChildLink> link_;  // empty without a process
  std::optional<Backoff> pauses_;  // since the last finished run
  bool mustPause_ = false;         // the last process has died
  bool hasBeenReady_ = false;      // a process was
};

class HandlerProcesses final : public JobRunners {
 public:
  /// `clock` and `log` outlive the object.
  HandlerProcesses(HandlerSetup setup, Clock& clock, Log& log) : setup_(std::move(setup)), clock_(clock), log_(log) {}

  std::unique_ptr<JobRunner> make() override { return std::make_unique<HandlerProcess>(setup_, clock_, log_); }

 private:
  const HandlerSetup setup_;
  Clock& clock_;
  Log& log_;
};

}  // namespace jobq::worker
