// The store of chunks and log lines of jobs. Contract: `sdk/include/jobq/chunk_store.h`.
#pragma once

#include <cstddef>
#include <cstdint>
#include <optional>
#include <vector>

#include "jobq/call_id.h"
#include "jobq/job.h"
#include "jobq/storage.h"
#include "jobq/time.h"
#include "reads/job_listing.h"
#include "reads/readers.h"
#include "writes/writer.h"

namespace jobq::sqlite {

/// Any thread may call the methods. All constructor arguments outlive the store.
class Chunks final : public ChunkStore {
 public:
  Chunks(Writer& writer, Readers& readers, const JobNumbers& numbers, Clock& clock)
      : writer_(writer), readers_(readers), numbers_(numbers), clock_(clock) {}

  ReportResult append(const LeaseRef& lease, std::uint64_t first, std::vector<Chunk> chunks) override;
  std::optional<ChunkPage> consume(const JobKey& key, std::size_t maxBytes, CallId id) override;
  std::optional<ChunkPage> read(const JobKey& key, std::uint64_t offset, std::size_t maxBytes) override;
  ReportResult appendLog(const LeaseRef& lease, std::uint64_t first, std::vector<LogLine> lines) override;
  std::optional<LogPart> readLog(const JobKey& key, const LogPosition& from, std::uint64_t maxBytes) override;

 private:
  Writer& writer_;
  Readers& readers_;
  const JobNumbers& numbers_;
  Clock& clock_;
};

}  // namespace jobq::sqlite
