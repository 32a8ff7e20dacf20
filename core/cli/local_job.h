// A job that runs inside jobqctl without a server: reports of its handler go to a stream, and its time is limited.
#pragma once

#include <cstdint>
#include <ostream>
#include <stop_token>
#include <string>
#include <string_view>
#include <thread>

#include "core/model/output_quota.h"
#include "jobq/job.h"
#include "jobq/job_handler.h"
#include "jobq/log.h"
#include "jobq/time.h"

namespace jobq::cli {

/// Context of a local run. Made and used on one thread.
class LocalJob final : public JobContext {
 public:
  /// `clock` and `reports` outlive the object. `timeout` is the execution timeout in milliseconds. Chunks, progress and
  /// log lines are written to `reports`, one a line.
  LocalJob(Clock& clock, Millis timeout, std::ostream& reports);
  ~LocalJob() override;

  const JobId& id() const override { return id_; }
  std::uint32_t attempt() const override { return 1; }
  std::stop_token stopToken() const override { return stop_.get_token(); }
  Instant deadline() const override { return deadline_; }
  std::string_view s3Config() const override { return {}; }
  void emit(std::string_view chunk, std::string_view metrics) override;
  void progress(std::string_view json) override;
  void log(LogLevel level, std::string_view line) override;

 private:
  void awaitDeadline(const std::stop_token& ended);

  Clock& clock_;
  const JobId id_ = "local-job";
  const Instant deadline_;
  std::ostream& reports_;
  OutputQuota outputQuota_;
  std::stop_source stop_;
  std::jthread timer_;
};

}  // namespace jobq::cli
