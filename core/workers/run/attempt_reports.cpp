#include "core/workers/run/attempt_reports.h"

#include <algorithm>
#include <functional>
#include <utility>
#include <vector>

#include "core/jobs/run_reports.h"
#include "core/workers/run/chunk_split.h"
#include "jobq/error.h"
#include "jobq/job_handler.h"

namespace jobq {

AttemptReports::AttemptReports(RunReports& reports, Storage& storage, EndpointId endpoint, LeaseRef lease,
                               bool owesWebhook)
    : reports_(reports),
      storage_(storage),
      endpoint_(std::move(endpoint)),
      lease_(std::move(lease)),
      owesWebhook_(owesWebhook),
      isShared_(storage.leaseLife().has_value()) {}

ReportResult AttemptReports::finish(Outcome outcome) {
  return reports_.finish(lease_, std::move(outcome), owesWebhook_);
}

ReportResult AttemptReports::progress(std::string json) { return reports_.progress(lease_, std::move(json)); }

std::optional<std::uint64_t> AttemptReports::countChunks() const {
  const JobKey key{endpoint_, lease_.job};
  const auto summary = storage_.jobs().summaries({&key, 1}).at(0);
  if (!summary || summary->state != JobState::inProgress || summary->attempt != lease_.attempt) return std::nullopt;
  return summary->chunks;
}

void AttemptReports::resumeChunks() {
  Lock lock(mutex_);
  isResumed_ = true;
}

// Charges the stored chunks that others have added, if there may be any before the chunk `until`: the bound on the
// chunks of an attempt holds across processes and nodes.
void AttemptReports::countStored(std::uint64_t until) {
  if (!isResumed_ && until <= nextChunk_) return;
  for (bool hasMore = true; hasMore;) {
    const auto page = storage_.chunks().read({endpoint_, lease_.job}, nextChunk_, kMaxChunk);
    if (!page || page->attempt != lease_.attempt) break;
    std::size_t bytes = 0;
    for (const Chunk& chunk : page->chunks) bytes += chunk.output.size() + chunk.metrics.size();
    try {
      outputQuota_.charge(page->chunks.size(), bytes);
    } catch (const JobFailed&) {  // the bound is reached, and the next chunk is refused
    }
    nextChunk_ += page->chunks.size();
    hasMore = page->more;
  }
  isResumed_ = false;
}

// The storage numbers the chunks of an attempt from 0 without a gap, and skips a number that it has. On a shared
// storage the chunks before may have reached another node, so the storage is asked, except for a repeated chunk.
ReportResult AttemptReports::addChunk(std::string_view output, std::string_view metrics) {
  const CheckedChunk chunk(output, metrics);
  Lock lock(mutex_);
  countStored(0);
  const std::size_t hash = std::hash<std::string_view>()(output) * 31 + std::hash<std::string_view>()(metrics);
  if (isShared_ && unanswered_ != hash) {
    const auto count = countChunks();
    if (!count) return ReportResult::staleAttempt;
    if (*count < nextChunk_) {
      nextChunk_ = *count;
    } else {
      countStored(*count);
    }
  }
  OutputQuota charged = outputQuota_;
  charged.charge(chunk);
  std::vector<Chunk> pieces = splitChunk(chunk);
  const std::size_t count = pieces.size();
  unanswered_ = hash;
  const ReportResult result = reports_.append(lease_, nextChunk_, std::move(pieces));
  unanswered_.reset();
  outputQuota_ = charged;
  nextChunk_ += count;
  return result;
}

// The storage skips the pieces whose numbers it has, so only the pieces behind them are charged: all of a chunk that is
// new, none of a chunk that comes again.
std::uint64_t AttemptReports::addChunkAt(std::uint64_t first, std::string_view output, std::string_view metrics) {
  const CheckedChunk chunk(output, metrics);
  std::vector<Chunk> pieces = splitChunk(chunk);
  const std::uint64_t next = first + pieces.size();
  Lock lock(mutex_);
  countStored(first);
  OutputQuota charged = outputQuota_;
  for (std::uint64_t at = std::max(first, nextChunk_); at < next; ++at) {
    const Chunk& piece = pieces[at - first];
    charged.charge(1, piece.output.size() + piece.metrics.size());
  }
  try {
    (void)reports_.append(lease_, first, std::move(pieces));
  } catch (const StorageError&) {
    throw;
  } catch (const Error&) {  // chunks before are missing: nothing is stored, and the worker learns the missing number
    return countChunks().value_or(next);
  }
  outputQuota_ = charged;
  nextChunk_ = std::max(nextChunk_, next);
  return next;
}

}  // namespace jobq
