// Storage, face 3: what a running job hands out piece by piece, and what it logs. Chunks belong to an attempt: when a
// job goes back in line they are discarded and the cursor starts again. The general rules are in storage.h.
#pragma once

#include <cstddef>
#include <cstdint>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include "jobq/abi_version.h"
#include "jobq/error.h"
#include "jobq/job.h"
#include "jobq/lease_store.h"
#include "jobq/log.h"
#include "jobq/time.h"

namespace jobq {

struct Chunk {
  std::string output;    ///< JSON text
  std::string metrics;   ///< JSON object text; empty for none
  bool partial = false;  ///< one piece of a larger output that was split
};

struct ChunkPage {
  std::vector<Chunk> chunks;
  std::uint64_t next = 0;              ///< number of the first chunk after this page
  bool more = false;                   ///< further chunks are there already
  JobState state = JobState::inQueue;  ///< read in the same step as the chunks
  std::uint32_t attempt = 0;
};

struct LogLine {
  Instant at{};
  LogLevel level = LogLevel::information;
  std::string text;
};

class JOBQ_VISIBLE ChunkStore : public abi::Versioned {
 public:
  virtual ~ChunkStore() = default;

  /// Adds chunks in order, all or none.
  [[nodiscard]] virtual ReportResult append(const LeaseRef& lease, std::vector<Chunk> chunks) = 0;

  /// Hands out chunks that were not handed out before, in order, at least one if there is one, and no further one that
  /// would bring the page's outputs and metrics over `maxBytes`. The cursor is in the store: however many callers ask
  /// at once, each chunk goes to one of them. Nothing when the job is absent.
  [[nodiscard]] virtual std::optional<ChunkPage> take(const JobKey& key, std::size_t maxBytes) = 0;

  /// The chunks from number `offset` on, without moving the cursor; same bounds.
  [[nodiscard]] virtual std::optional<ChunkPage> read(const JobKey& key, std::uint64_t offset,
                                                      std::size_t maxBytes) = 0;

  /// Adds log lines; the store sets their time. A job keeps its last kMaxLogLines, over all attempts.
  [[nodiscard]] virtual ReportResult appendLog(const LeaseRef& lease, std::vector<LogLine> lines) = 0;

  /// Oldest first; nothing when the job is absent.
  [[nodiscard]] virtual std::optional<std::vector<LogLine>> readLog(const JobKey& key) = 0;
};

inline constexpr std::size_t kMaxLogLines = 1'000;

}  // namespace jobq
