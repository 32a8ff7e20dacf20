// The bodies that remote workers send: results, progress and chunks (core/decisions/remote_workers.md). The bodies are
// JSON whatever their content type says, with the tokens NaN and Infinity of Python's encoder.
#pragma once

#include <cstddef>
#include <optional>
#include <string>
#include <variant>
#include <vector>

#include "core/base/result.h"
#include "jobq/job.h"

namespace jobq {

/// A result that ends a job.
struct WorkerResult {
  Outcome outcome;
  bool isLeaving = false;  ///< the worker asks to be replaced (`stopPod`)
};
/// A progress, as JSON text.
struct WorkerProgress {
  std::string json;
};

/// Returns the content of a job-done body. A body that is not a JSON object is the result FAILED with the reason, and
/// so is an output over `maxOutput` bytes. An `error` other than a string is kept as its JSON text, and NaN or Infinity
/// as that word; null, false, 0 and "" are no error. Pure; any thread.
std::variant<WorkerResult, WorkerProgress> readWorkerReport(std::string body, std::size_t maxOutput);

/// Most bytes of the body of a report, a batch or a chunk. The output inside is bounded by kMaxOutput, so a larger one
/// still ends its job with a reason.
inline constexpr std::size_t kMaxReport = 24UL << 20;

/// Most reports of a batch.
inline constexpr std::size_t kMostReports = 1'000;

/// A report of a batch.
struct BatchedReport {
  JobId job;
  std::variant<WorkerResult, WorkerProgress> report;
};
/// A batch: results and progress, or the lost jobs of the worker.
struct WorkerBatch {
  std::vector<BatchedReport> reports;
  std::vector<JobId> lost;
};
/// Returns the content of a job-done-batch body: an array of reports, each read by the rules of readWorkerReport(), or
/// an object whose member `lost` is an array of ids. Fails, and names the element, if an element is not an object with
/// the id of a job, or is not an id. Fails also if the body has neither form, or has more than kMostReports elements.
/// Pure; any thread.
Result<WorkerBatch> readWorkerBatch(std::string body, std::size_t maxOutput);

/// A chunk.
struct WorkerChunk {
  std::string output;   ///< JSON text
  std::string metrics;  ///< JSON object text; empty for none
};
/// Returns the chunk of the body of a job-stream call. Fails with the reason, a sentence about the worker, if the body
/// is not JSON or not an object with an output. Pure; any thread.
Result<WorkerChunk> readWorkerChunk(std::string body);

}  // namespace jobq
