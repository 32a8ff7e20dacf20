// Store of chunks and log lines of running jobs. Chunks belong to an attempt: when a job goes back to the queue, the
// store discards the chunks and the cursor starts again. Log lines stay. The rules for every store are in storage.h.
#pragma once

#include <cstddef>
#include <cstdint>
#include <optional>
#include <span>
#include <string>
#include <utility>
#include <vector>

#include "jobq/abi_version.h"
#include "jobq/call_id.h"
#include "jobq/error.h"
#include "jobq/job.h"
#include "jobq/lease_store.h"
#include "jobq/log.h"
#include "jobq/time.h"

namespace jobq {

/// A piece of output from a running job.
struct Chunk {
  std::string output;    ///< JSON text
  std::string metrics;   ///< JSON object text; empty for none
  bool partial = false;  ///< a piece of a larger output that was split
};

/// Result of consume() and read().
struct ChunkPage {
  std::vector<Chunk> chunks;
  std::uint64_t next = 0;              ///< number of the first chunk after this page
  bool more = false;                   ///< further chunks are in the store already
  JobState state = JobState::inQueue;  ///< state of the job, read in the same step as the chunks
  std::uint32_t attempt = 0;
};

/// A line of a job's log.
struct LogLine {
  Instant at{};  ///< set by the store
  LogLevel level = LogLevel::information;
  std::string text;
};

/// A place in the log of a job: behind all lines before `at`, and behind `skipped` lines of that time.
struct LogPosition {
  Instant at{};
  std::uint64_t skipped = 0;
};

/// Result of readLog().
struct LogPart {
  std::vector<LogLine> lines;
  bool more = false;  ///< further lines are in the store already
};

/// Makes a LogPart of the lines of a log, which come in their order. One thread.
class LogPartBuilder {
 public:
  LogPartBuilder(const LogPosition& from, std::uint64_t maxBytes) : from_(from), maxBytes_(maxBytes) {}

  /// Adds the line if it belongs to the part. Returns false if the part is full: the line begins the next part.
  bool add(LogLine line) {
    if (line.at < from_.at || (line.at == from_.at && skipped_++ < from_.skipped)) return true;
    bytes_ += line.text.size();
    part_.more = bytes_ > maxBytes_ && !part_.lines.empty();
    if (!part_.more) part_.lines.push_back(std::move(line));
    return !part_.more;
  }
  LogPart finish() && { return std::move(part_); }

 private:
  const LogPosition from_;
  const std::uint64_t maxBytes_;
  std::uint64_t skipped_ = 0;
  std::uint64_t bytes_ = 0;
  LogPart part_;
};

/// Operations on chunks and log lines. The storage owns the store.
class JOBQ_VISIBLE ChunkStore : public abi::Versioned {
 public:
  virtual ~ChunkStore() = default;

  /// Adds chunks in their order, all or none. `first` is the number of the first of `chunks`, counted from 0 in each
  /// attempt. Returns accepted, or staleAttempt if the job is not IN_PROGRESS under the attempt. Throws Error if the
  /// attempt is right and the store has fewer than `first` chunks of it: the caller has left chunks out. Repeatable:
  /// skips the chunks whose numbers the store has already, without a comparison of their content. Unsynced.
  [[nodiscard]] virtual ReportResult append(const LeaseRef& lease, std::uint64_t first, std::vector<Chunk> chunks) = 0;

  /// Returns the next chunks that no call has consumed, in their order, and moves the cursor behind the page. The page
  /// has at least one chunk if there is one; further chunks follow while the outputs and metrics of the page stay
  /// within `maxBytes`. The cursor is in the store: each chunk goes to a single caller, also with many callers at once.
  /// Returns an empty optional if the job is absent. `id` is the id of the call. Repeatable while no other call has
  /// consumed a chunk of the attempt: the store keeps the id of the last call, and returns all chunks of that call
  /// again, whatever `maxBytes`. Without chunks the call leaves no trace, and a repeated call may return the chunks
  /// that were added since.
  [[nodiscard]] virtual std::optional<ChunkPage> consume(const JobKey& key, std::size_t maxBytes, CallId id) = 0;

  /// Returns the chunks from number `offset` on, within the bounds of consume(), and leaves the cursor alone. Returns
  /// an empty optional if the job is absent.
  [[nodiscard]] virtual std::optional<ChunkPage> read(const JobKey& key, std::uint64_t offset,
                                                      std::size_t maxBytes) = 0;

  /// Adds log lines and sets their time. A job keeps the last kMaxLogLines of all attempts. `first` is the number of
  /// the first of `lines`, counted from 0 over all attempts; an attempt begins at ClaimedJob::logLines. Returns
  /// accepted, or staleAttempt if the job is not IN_PROGRESS under the attempt. Throws Error if the attempt is right
  /// and the store has counted fewer than `first` lines: the caller has left lines out. Repeatable: skips the lines
  /// whose numbers the store has counted already, without a comparison of their content. Unsynced.
  [[nodiscard]] virtual ReportResult appendLog(const LeaseRef& lease, std::uint64_t first,
                                               std::vector<LogLine> lines) = 0;

  /// Returns the lines of the log of the job after `from`, oldest line first, or an empty optional if the job is
  /// absent. The part has at least one line if there is one; further lines follow while their texts stay within
  /// `maxBytes`.
  [[nodiscard]] virtual std::optional<LogPart> readLog(const JobKey& key, const LogPosition& from = {},
                                                       std::uint64_t maxBytes = kAnyBytes) = 0;
};

/// Greatest number of log lines of a job.
inline constexpr std::size_t kMaxLogLines = 1'000;

}  // namespace jobq
