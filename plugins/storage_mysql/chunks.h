// The store of chunks and log lines of jobs. Contract: `sdk/include/jobq/chunk_store.h`.
#pragma once

#include <cstddef>
#include <cstdint>
#include <optional>
#include <vector>

#include "connection/database_clock.h"
#include "jobq/call_id.h"
#include "jobq/job.h"
#include "jobq/storage.h"
#include "jobq/time.h"
#include "reads/readers.h"
#include "writes/writer.h"

namespace jobq::mysql {

/// Any thread may call the methods. The writer, the readers and the clock outlive the store.
class Chunks final : public ChunkStore {
 public:
  Chunks(Writer& writer, Readers& readers, const DatabaseClock& clock)
      : writer_(writer), readers_(readers), clock_(clock) {}

  ReportResult append(const LeaseRef& lease, std::uint64_t first, std::vector<Chunk> chunks) override;
  std::optional<ChunkPage> consume(const JobKey& key, std::size_t maxBytes, CallId id) override;
  std::optional<ChunkPage> read(const JobKey& key, std::uint64_t offset, std::size_t maxBytes) override;
  ReportResult appendLog(const LeaseRef& lease, std::uint64_t first, std::vector<LogLine> lines) override;
  std::optional<LogPart> readLog(const JobKey& key, const LogPosition& from, std::uint64_t maxBytes) override;

 private:
  Writer& writer_;
  Readers& readers_;
  const DatabaseClock& clock_;
};

}  // namespace jobq::mysql
