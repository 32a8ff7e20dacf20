// A handler's view of its job.
#pragma once

#include <cstddef>
#include <cstdint>
#include <functional>
#include <stop_token>
#include <string>
#include <string_view>
#include <utility>

#include "core/model/output_quota.h"
#include "jobq/job.h"
#include "jobq/job_handler.h"
#include "jobq/lease_store.h"
#include "jobq/log.h"
#include "jobq/time.h"

namespace jobq {

class DeferredInsert;
class RunReports;

/// Used on the worker thread of the job. A failing storage does not fail the job: a report is offered until it is
/// stored or stale, or until the job is told to stop. A report after the stop is dropped. The storage gets a job whose
/// insert was deferred before the first report, and before the handler reads the id; the reports of a lost job are
/// dropped.
class RunContext final : public JobContext {
 public:
  struct Deps {
    RunReports& reports;
    Clock& clock;
    Log& log;
  };
  /// `job` and `insert`, which is null if the storage has the job, outlive the context. `deadline` is the end of the
  /// attempt on the clock of `deps`. `s3Config` is the opened text, empty without one. `stop` is the job's stop token.
  RunContext(const Deps& deps, const ClaimedJob& job, DeferredInsert* insert, Instant deadline, std::string s3Config,
             std::stop_token stop)
      : deps_(deps),
        job_(job),
        insert_(insert),
        deadline_(deadline),
        s3Config_(std::move(s3Config)),
        stop_(std::move(stop)),
        nextLine_(job.logLines) {}

  const JobId& id() const override;
  std::uint32_t attempt() const override { return job_.lease.attempt; }
  std::stop_token stopToken() const override { return stop_; }
  Instant deadline() const override { return deadline_; }
  std::string_view s3Config() const override { return s3Config_; }
  void emit(std::string_view chunk, std::string_view metrics) override;
  void progress(std::string_view json) override;
  void log(LogLevel level, std::string_view line) override;

  /// Returns true if the handler has reported or has read the id. Such a run is not brief
  /// (`core/workers/deferred_inserts.h`).
  bool neededInsert() const noexcept { return neededInsert_; }

 private:
  void offer(const std::function<ReportResult()>& report);
  bool ensureStored() const;

  const Deps deps_;
  const ClaimedJob& job_;
  DeferredInsert* const insert_;
  const Instant deadline_;
  const std::string s3Config_;
  const std::stop_token stop_;
  OutputQuota outputQuota_;
  std::uint64_t nextChunk_ = 0;  // number of the next chunk of the attempt
  std::uint64_t nextLine_;       // number of the next log line of the job
  mutable bool neededInsert_ = false;
};

}  // namespace jobq
