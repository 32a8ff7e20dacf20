#include "core/worker_program/remote_context.h"

#include "core/base/words.h"
#include "core/model/handler_run.h"
#include "core/worker_program/report_text.h"
#include "core/worker_program/taken_job.h"
#include "jobq/error.h"

namespace jobq::worker {
namespace {

Instant deadlineOf(const JobInHand& job, const Clock& clock) {
  return job.job.executionTimeout ? clock.now() + *job.job.executionTimeout : Instant::max();
}

}  // namespace

RemoteContext::RemoteContext(const CallDeps& deps, ReportSender& reports, const JobInHand& job)
    : deps_(deps), reports_(reports), job_(job), deadline_(deadlineOf(job, deps.clock)) {}

void RemoteContext::emit(std::string_view chunk, std::string_view metrics) {
  outputQuota_.charge({chunk, metrics});
  checkChunk(chunk);
  if (stopToken().stop_requested()) return;
  const auto sent = nextChunk_;
  nextChunk_ = readNextChunk(
      reports_.post(deps_.addresses.chunk(id(), sent), chunkText(chunk, metrics), stopToken(), deadline_));
  if (sent && nextChunk_ && *nextChunk_ <= *sent) {
    throw JobFailed("the server has " + std::to_string(*nextChunk_) + " of " + std::to_string(*sent) +
                    " chunks after a loss of power: retry the job");
  }
}

void RemoteContext::progress(std::string_view json) {
  checkProgress(json);
  if (stopToken().stop_requested()) return;
  reports_.post(deps_.addresses.result(id()), progressText(json), stopToken(), deadline_);
}

void RemoteContext::log(LogLevel level, std::string_view line) {
  deps_.log.write(level, "job.log", id() + ": " + clipped(line, kLongestLine));
}

}  // namespace jobq::worker
