// The store of chunks and log lines of jobs. Contract: `sdk/include/jobq/chunk_store.h`.
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
inline void checkNothingLeftOut(const JobRow& row, const char* pieces, std::int64_t stored, std::uint64_t first) {
  if (first <= static_cast<std::uint64_t>(stored)) return;
  throw Error("job " + row.id + " has " + std::to_string(stored) + " " + pieces + "; number " + std::to_string(first) +
              " does not follow");
}

/// The store of chunks and log lines, over the statements of a storage: `Rows` is the ChunkRows of the storage, and
/// lockRow() and lockHeld() are functions of `job_rows.h`. Any thread may call the methods.
template <class Rows>
class Chunks final : public ChunkStore {
 public:
  explicit Chunks(const Rows& rows) : rows_(rows) {}

  ReportResult append(const LeaseRef& lease, std::uint64_t first, std::vector<Chunk> chunks) override {
    return rows_.report(lease, bytesOf(chunks), [&](auto& step) {
      const auto row = lockHeld(step, lease);
      if (!row) return ReportResult::staleAttempt;
      checkNothingLeftOut(*row, "chunks", row->chunks, first);
      std::int64_t seq = row->chunks;
      for (std::size_t i = static_cast<std::size_t>(seq) - first; i < chunks.size(); ++i) {
        rows_.addChunk(step, *row, seq++, chunks[i]);
      }
      if (seq != row->chunks) rows_.setChunks(step, *row, seq);
      return ReportResult::accepted;
    });
  }

  // Callers waiting for a chunk ask often. The writer is involved only when there is a chunk to return.
  std::optional<ChunkPage> consume(const JobKey& key, std::size_t maxBytes, CallId id) override {
    const auto row = rows_.find(key);
    if (!row) return std::nullopt;
    if (row->taken == row->chunks && row->takenBy != id) {
      rows_.awaitDisk(key);
      return pageOf(*row, row->taken, {});
    }
    return rows_.write([&](auto& step) { return consumeNow(step, key, maxBytes, id); });
  }

  std::optional<ChunkPage> read(const JobKey& key, std::uint64_t offset, std::size_t maxBytes) override {
    return rows_.read(key, [&](auto& connection, const auto& row) {
      const auto from = static_cast<std::int64_t>(offset);
      return pageOf(row, from, rows_.chunks(connection, row, {from, row.chunks}, maxBytes));
    });
  }

  ReportResult appendLog(const LeaseRef& lease, std::uint64_t first, std::vector<LogLine> lines) override {
    return rows_.report(lease, 0, [&](auto& step) {
      const auto row = lockHeld(step, lease);
      if (!row) return ReportResult::staleAttempt;
      checkNothingLeftOut(*row, "log lines", row->logLines, first);
      const auto after = static_cast<std::int64_t>(first + lines.size());
      if (after <= row->logLines) return ReportResult::accepted;
      const std::int64_t dropped = after - static_cast<std::int64_t>(kMaxLogLines);
      std::int64_t seq = row->logLines;
      for (std::size_t i = static_cast<std::size_t>(seq) - first; i < lines.size(); ++i) {
        if (seq++ >= dropped) rows_.addLine(step, *row, seq, lines[i]);
      }
      if (dropped > 0) rows_.dropLines(step, *row, dropped);
      rows_.setLines(step, *row, after);
      return ReportResult::accepted;
    });
  }

  std::optional<LogPart> readLog(const JobKey& key, const LogPosition& from, std::uint64_t maxBytes) override {
    return rows_.read(key, [&](auto& connection, const auto& row) {
      LogPartBuilder builder(from, maxBytes);
      rows_.readLines(connection, row, from, builder);
      return std::move(builder).finish();
    });
  }

 private:
  /// Returns the next page for a caller, and moves the first number for the next caller. A repeated call gets the page
  /// of the call before.
  template <class Step>
  std::optional<ChunkPage> consumeNow(Step& step, const JobKey& key, std::size_t maxBytes, CallId id) {
    const auto row = lockRow(step, key);
    if (!row) return std::nullopt;
    if (row->takenBy == id) {
      return pageOf(*row, row->takenFrom, rows_.chunks(step.db, *row, {row->takenFrom, row->taken}, kAnyBytes));
    }
    ChunkPage page = pageOf(*row, row->taken, rows_.chunks(step.db, *row, {row->taken, row->chunks}, maxBytes));
    if (!page.chunks.empty()) rows_.setTaken(step, *row, page.next, id);
    return page;
  }

  const Rows rows_;
};

}  // namespace jobq::sql
