// A handler's view of a job of jobq-worker.
#pragma once

#include <cstdint>
#include <optional>
#include <stop_token>
#include <string>
#include <string_view>

#include "core/model/output_quota.h"
#include "core/worker_program/jobs_in_hand.h"
#include "core/worker_program/report_sender.h"
#include "jobq/job.h"
#include "jobq/job_handler.h"
#include "jobq/log.h"
#include "jobq/time.h"

namespace jobq::worker {

/// Used on the thread of the handler. A report is repeated until the server has the report or the job is stopped; a
/// report after the stop is dropped. Log lines go to the log of the worker, because no call of workers takes them.
class RemoteContext final : public JobContext {
 public:
  /// The referenced objects outlive the context.
  RemoteContext(const CallDeps& deps, ReportSender& reports, const JobInHand& job);

  const JobId& id() const override { return job_.job.id; }
  /// Returns 1: the server does not send the number of the attempt to a worker.
  std::uint32_t attempt() const override { return 1; }
  std::stop_token stopToken() const override { return job_.stop.get_token(); }
  /// Returns the end of the execution timeout in the policy of the job. Without a timeout there is no known end: the
  /// server stops the job.
  Instant deadline() const override { return deadline_; }
  std::string_view s3Config() const override { return job_.job.s3Config; }
  void emit(std::string_view chunk, std::string_view metrics) override;
  void progress(std::string_view json) override;
  void log(LogLevel level, std::string_view line) override;

 private:
  const CallDeps deps_;
  ReportSender& reports_;
  const JobInHand& job_;
  const Instant deadline_;
  OutputQuota outputQuota_;
  // Number of the first piece of the next chunk; no value if the last answer of the server had no number.
  std::optional<std::uint64_t> nextChunk_ = 0;
};

}  // namespace jobq::worker
