#include "core/workers/run/run_context.h"

#include <cstddef>
#include <utility>
#include <vector>

#include "core/base/backoff.h"
#include "core/base/words.h"
#include "core/jobs/deferred_insert.h"
#include "core/jobs/run_reports.h"
#include "core/model/handler_run.h"
#include "core/workers/run/chunk_split.h"

namespace jobq {

void RunContext::emit(std::string_view chunk, std::string_view metrics) {
  const CheckedChunk checked(chunk, metrics);
  outputQuota_.charge(checked);
  std::size_t pieces = 0;
  offer([&] {
    std::vector<Chunk> split = splitChunk(checked);
    pieces = split.size();
    return deps_.reports.append(job_.lease, nextChunk_, std::move(split));
  });
  // A dropped chunk may leave a gap in the numbers. A chunk is dropped only after a stop, for a stale attempt or for a
  // lost job, and then all later chunks are dropped, too.
  nextChunk_ += pieces;
}

void RunContext::progress(std::string_view json) {
  checkProgress(json);
  offer([&] { return deps_.reports.progress(job_.lease, std::string(json)); });
}

void RunContext::log(LogLevel level, std::string_view line) {
  offer([&] {
    // The storage sets the time of the line.
    return deps_.reports.appendLog(job_.lease, nextLine_, LogLine{{}, level, clipped(line, kLongestLine)});
  });
  ++nextLine_;  // also after a dropped line: all later lines are dropped, too, as in emit()
}

const JobId& RunContext::id() const {
  neededInsert_ = true;
  if (!ensureStored()) throw JobFailed("the storage does not take the job");
  return job_.lease.job;
}

// Returns false if the storage has refused the job. The timer of DeferredInserts then wakes the waiting caller and
// stops the run.
bool RunContext::ensureStored() const {
  if (insert_ == nullptr) return true;
  try {
    insert_->store();
    return true;
  } catch (const StorageError&) {
    return false;
  }
}

// A stale report is dropped silently, because the stop token informs the handler (`sdk/include/jobq/job_handler.h`). A
// report after a stop is dropped, too: no caller needs the report, and at the end of the process the storage may no
// longer exist.
void RunContext::offer(const std::function<ReportResult()>& report) {
  neededInsert_ = true;
  if (stop_.stop_requested() || !ensureStored()) return;
  Backoff backoff(deps_.clock, stop_);
  do {
    try {
      (void)report();
      return;
    } catch (const StorageError& error) {
      deps_.log.write(LogLevel::error, "job.unreported",
                      "a report of " + job_.lease.job + " cannot be stored yet: " + error.what());
    }
  } while (backoff.pause());
}

}  // namespace jobq
