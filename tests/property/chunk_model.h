// The model of the chunk store: streams and logs of jobs.
#pragma once

#include <cstddef>
#include <cstdint>
#include <optional>
#include <vector>

#include "jobq/call_id.h"
#include "jobq/chunk_store.h"
#include "jobq/job.h"
#include "jobq/lease_store.h"
#include "model_state.h"

namespace jobq::model {

/// Each operation matches the operation of the same name of ChunkStore.
class ChunkModel {
 public:
  /// The state must outlive the model.
  explicit ChunkModel(ModelState& state) : state_(state) {}

  /// The caller leaves no gap: `first` is at most the number of chunks.
  ReportResult append(const LeaseRef& lease, std::uint64_t first, const std::vector<Chunk>& chunks);
  std::optional<ChunkPage> consume(const JobKey& key, std::size_t maxBytes, CallId id);
  std::optional<ChunkPage> read(const JobKey& key, std::uint64_t offset, std::size_t maxBytes) const;
  /// The caller leaves no gap: `first` is at most the number of lines.
  ReportResult appendLog(const LeaseRef& lease, std::uint64_t first, const std::vector<LogLine>& lines);
  std::optional<LogPart> readLog(const JobKey& key) const;

 private:
  static ChunkPage consumedAgain(const Entry& entry);

  ModelState& state_;
};

}  // namespace jobq::model
