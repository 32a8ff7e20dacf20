// The steps of the store of chunks. `Statements` has the statements of a storage: ChunkStatements in its `chunks.cpp`.
#pragma once

#include <cstddef>
#include <cstdint>
#include <limits>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "jobq/call_id.h"
#include "jobq/chunk_store.h"
#include "jobq/error.h"
#include "jobq/job.h"
#include "jobq/lease_store.h"
#include "storage_sql/rows.h"

namespace jobq::sql {

/// The chunks of an attempt from number `from` up to number `to`, without `to`.
struct ChunkRange {
  std::int64_t from;
  std::int64_t to;
};

inline constexpr std::size_t kAnyBytes = std::numeric_limits<std::size_t>::max();

inline std::size_t bytesOf(const Chunk& chunk) { return chunk.output.size() + chunk.metrics.size(); }

inline std::size_t bytesOf(const std::vector<Chunk>& chunks) {
  std::size_t bytes = 0;
  for (const Chunk& chunk : chunks) bytes += bytesOf(chunk);
  return bytes;
}

/// Returns the page of the chunks from number `from` on.
inline ChunkPage pageOf(const JobRow& row, std::int64_t from, std::vector<Chunk> chunks) {
  const std::int64_t next = from + static_cast<std::int64_t>(chunks.size());
  return {std::move(chunks), static_cast<std::uint64_t>(next), next < row.chunks, row.state, row.attempt};
}

/// Throws Error if the store has fewer than `first` pieces: the caller has left some out.
inline void checkNothingLeftOut(const JobRow& row, const char* pieces, std::uint64_t stored, std::uint64_t first) {
  if (first <= stored) return;
  throw Error("job " + row.id + " has " + std::to_string(stored) + " " + pieces + "; number " + std::to_string(first) +
              " does not follow");
}

/// The step of append(). A repeated call adds the chunks that are not stored so far.
template <class Statements>
ReportResult appendChunks(Statements statements, const LeaseRef& lease, std::uint64_t first,
                          const std::vector<Chunk>& chunks) {
  const auto row = statements.findHeld(lease);
  if (!row) return ReportResult::staleAttempt;
  const auto stored = static_cast<std::uint64_t>(row->chunks);
  checkNothingLeftOut(*row, "chunks", stored, first);
  std::int64_t seq = row->chunks;
  for (std::size_t i = stored - first; i < chunks.size(); ++i) statements.addChunk(*row, seq++, chunks[i]);
  if (seq != row->chunks) statements.setChunks(*row, seq);
  return ReportResult::accepted;
}

/// The step of consume(): returns the next page for a caller, and moves the first number for the next caller. A
/// repeated call gets the page of the call before.
template <class Statements>
std::optional<ChunkPage> consumeChunks(Statements statements, const JobKey& key, std::size_t maxBytes, CallId id) {
  const auto row = statements.find(key);
  if (!row) return std::nullopt;
  const bool isRepeated = row->takenBy == id;
  const ChunkRange range = isRepeated ? ChunkRange{row->takenFrom, row->taken} : ChunkRange{row->taken, row->chunks};
  ChunkPage page = pageOf(*row, range.from, statements.chunks(*row, range, isRepeated ? kAnyBytes : maxBytes));
  if (!isRepeated && !page.chunks.empty()) statements.setTaken(*row, page.next, id);
  return page;
}

/// The step of appendLog(). The log keeps the last kMaxLogLines lines.
template <class Statements>
ReportResult appendLines(Statements statements, const LeaseRef& lease, std::uint64_t first,
                         const std::vector<LogLine>& lines) {
  constexpr auto kKept = static_cast<std::int64_t>(kMaxLogLines);
  const auto row = statements.findHeld(lease);
  if (!row) return ReportResult::staleAttempt;
  const auto stored = static_cast<std::uint64_t>(row->logLines);
  checkNothingLeftOut(*row, "log lines", stored, first);
  if (first + lines.size() <= stored) return ReportResult::accepted;
  const auto after = static_cast<std::int64_t>(first + lines.size());
  std::int64_t seq = row->logLines;
  for (std::size_t i = stored - first; i < lines.size(); ++i) {
    if (seq++ >= after - kKept) statements.addLine(*row, seq, lines[i]);
  }
  if (after > kKept) statements.dropLines(*row, after - kKept);
  statements.setLines(*row, after);
  return ReportResult::accepted;
}

}  // namespace jobq::sql
