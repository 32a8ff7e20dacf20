#include "core/work/run_context.h"

#include "jobq/json.h"

namespace jobq {

// A stale report is dropped without a word: the stop token tells the handler (job_handler.h).

void RunContext::emit(std::string_view chunk, std::string_view metrics) {
  if (!json::valid(chunk) || (!metrics.empty() && !json::valid(metrics))) {
    throw JobFailed("the handler emitted a chunk that is not JSON");
  }
  chunkBytes_ += chunk.size() + metrics.size();
  if (chunkBytes_ > kMaxChunkTotal) throw JobFailed("the job's chunks exceed 256 MB in all: emit less");
  (void)storage_.chunks().append(job_.lease, {Chunk{std::string(chunk), std::string(metrics), false}});
}

void RunContext::progress(std::string_view json) {
  if (!json::valid(json)) throw JobFailed("the handler reported a progress that is not JSON");
  (void)storage_.leases().progress(job_.lease, std::string(json));
}

void RunContext::log(LogLevel level, std::string_view line) {
  (void)storage_.chunks().appendLog(job_.lease, {LogLine{{}, level, std::string(line)}});
}

}  // namespace jobq
