// The reports of a remote worker about one attempt of a job: chunks, progress and the outcome. The storage fences each
// report by the attempt, so any node may store it.
#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <string_view>

#include "core/model/output_quota.h"
#include "jobq/job.h"
#include "jobq/lease_store.h"
#include "jobq/mutex.h"
#include "jobq/storage.h"

namespace jobq {

class RunReports;

/// Any thread. A failing storage is the caller's to report (StorageError): the worker sends the report again, and a
/// repeated report changes nothing.
class AttemptReports {
 public:
  /// `reports` and `storage` outlive the object. With `owesWebhook` the end of the job wakes the webhook delivery.
  AttemptReports(RunReports& reports, Storage& storage, EndpointId endpoint, LeaseRef lease, bool owesWebhook);
  virtual ~AttemptReports() = default;
  AttemptReports(const AttemptReports&) = delete;
  AttemptReports& operator=(const AttemptReports&) = delete;

  const LeaseRef& lease() const noexcept { return lease_; }
  const EndpointId& endpoint() const noexcept { return endpoint_; }

  /// Notes that the attempt began elsewhere, and may have chunks: they are counted before the next one.
  void resumeChunks();

  /// Records the end of the attempt. Returns staleAttempt for an attempt that has ended before. Throws StorageError.
  virtual ReportResult finish(Outcome outcome);
  /// Adds a chunk: `output` is JSON text, `metrics` a JSON object or empty. Throws JobFailed if the attempt has handed
  /// out too much, and StorageError.
  ReportResult addChunk(std::string_view output, std::string_view metrics);
  /// Does the same for a worker that counts its chunks: the first piece of the chunk has the number `first`. A repeated
  /// chunk is stored once, whichever node it reaches. Returns the number behind the last piece.
  std::uint64_t addChunkAt(std::uint64_t first, std::string_view output, std::string_view metrics);
  /// Sets the progress, JSON text. Throws StorageError.
  ReportResult progress(std::string json);

 private:
  /// Returns the number of stored chunks; no value if the attempt has ended.
  std::optional<std::uint64_t> countChunks() const;
  void countStored(std::uint64_t until) JOBQ_REQUIRES(mutex_);

  RunReports& reports_;
  Storage& storage_;
  const EndpointId endpoint_;
  const LeaseRef lease_;
  const bool owesWebhook_;
  const bool isShared_;  // other nodes may add chunks of the attempt

  Mutex mutex_;  // of the chunks: their order is the order of their requests
  OutputQuota outputQuota_ JOBQ_GUARDED_BY(mutex_);
  std::uint64_t nextChunk_ JOBQ_GUARDED_BY(mutex_) = 0;  // the chunks before are charged
  bool isResumed_ JOBQ_GUARDED_BY(mutex_) = false;       // stored chunks are not counted yet
  // Hash of the last chunk while it is unknown whether the storage has it: the worker repeats the chunk.
  std::optional<std::size_t> unanswered_ JOBQ_GUARDED_BY(mutex_);
};

using AttemptReportsPtr = std::shared_ptr<AttemptReports>;

}  // namespace jobq
