#include "chunks.h"

#include <limits>

#include "job_rows.h"

namespace jobq::mysql {
namespace {

/// The chunks of an attempt from number `from` up to number `to`, without `to`.
struct Range {
  std::int64_t from;
  std::int64_t to;
};

constexpr std::size_t kAnyBytes = std::numeric_limits<std::size_t>::max();

/// Returns the number after the last chunk of the range within `maxBytes` bytes. The first chunk fits always. Only
/// sizes are read: a range may have more bytes than the memory.
std::int64_t endWithin(Connection& connection, const JobRow& row, const Range& range, std::size_t maxBytes) {
  if (maxBytes == kAnyBytes) return range.to;
  Query query = connection.query("SELECT size FROM job_chunk WHERE num = ? AND seq >= ? AND seq < ? ORDER BY seq");
  query.bind(row.num, range.from, range.to);
  std::int64_t end = range.from;
  for (std::size_t bytes = 0; query.next(); ++end) {
    bytes += query.size(0);
    if (end > range.from && bytes > maxBytes) break;
  }
  return end;
}

/// Returns the chunks of the range, up to `maxBytes` bytes.
ChunkPage pageOf(Connection& connection, const JobRow& row, const Range& range, std::size_t maxBytes) {
  ChunkPage page;
  page.next = static_cast<std::uint64_t>(range.from);
  page.state = row.state;
  page.attempt = row.attempt;
  if (range.from < range.to) {
    const std::int64_t end = endWithin(connection, row, range, maxBytes);
    Query query = connection.query(
        "SELECT partial_output, metrics, output FROM job_chunk WHERE num = ? AND seq >= ? AND seq < ? ORDER BY seq");
    query.bind(row.num, range.from, end);
    while (query.next()) {
      page.chunks.push_back({query.text(2), query.text(1), query.flag(0)});
      ++page.next;
    }
  }
  page.more = static_cast<std::int64_t>(page.next) < row.chunks;
  return page;
}

/// A discarded chunk may have the number (`job_rows.h`).
void addChunk(Step& step, const JobRow& row, std::int64_t seq, const Chunk& chunk) {
  step.db.later("REPLACE INTO job_chunk (num, seq, partial_output, size, metrics, output) VALUES (?, ?, ?, ?, ?, ?)")
      .add(row.num, seq, chunk.partial, chunk.output.size() + chunk.metrics.size(), Lent{chunk.metrics},
           Lent{chunk.output});
}

/// Throws Error if the store has fewer than `first` pieces: the caller has left some out.
void checkNothingLeftOut(const JobRow& row, const char* pieces, std::uint64_t stored, std::uint64_t first) {
  if (first <= stored) return;
  throw Error("job " + row.id + " has " + std::to_string(stored) + " " + pieces + "; number " + std::to_string(first) +
              " does not follow");
}

/// Returns the next page for a caller and moves `taken`, the first number for the next caller.
std::optional<ChunkPage> consumeNow(Step& step, const JobKey& key, std::size_t maxBytes, CallId id) {
  const auto row = lockRow(step, key);
  if (!row) return std::nullopt;
  if (row->takenBy == id) return pageOf(step.db, *row, {row->takenFrom, row->taken}, kAnyBytes);
  ChunkPage page = pageOf(step.db, *row, {row->taken, row->chunks}, maxBytes);
  if (!page.chunks.empty()) {
    step.db.query("UPDATE job SET taken_from = taken, taken = ?, taken_by = ? WHERE num = ?")
        .bind(page.next, id, row->num)
        .run();
  }
  return page;
}

void addLine(Step& step, const JobRow& row, std::int64_t seq, const LogLine& line) {
  step.db.later("INSERT INTO job_log (num, seq, written_at, log_level, line) VALUES (?, ?, ?, ?, ?)")
      .add(row.num, seq, step.now, line.level, Lent{line.text});
}

}  // namespace

ReportResult Chunks::append(const LeaseRef& lease, std::uint64_t first, std::vector<Chunk> chunks) {
  std::size_t bytes = 0;
  for (const Chunk& chunk : chunks) bytes += chunk.output.size() + chunk.metrics.size();
  const auto appendNow = [&](Step& step) {
    const auto row = lockHeld(step, lease);
    if (!row) return ReportResult::staleAttempt;
    const auto stored = static_cast<std::uint64_t>(row->chunks);
    checkNothingLeftOut(*row, "chunks", stored, first);
    std::int64_t seq = row->chunks;
    for (std::size_t i = stored - first; i < chunks.size(); ++i) addChunk(step, *row, seq++, chunks[i]);
    if (seq == row->chunks) return ReportResult::accepted;
    step.db.later("UPDATE job SET chunks = ? WHERE num = ?").add(seq, row->num);
    return ReportResult::accepted;
  };
  return writer_.write(appendNow, {.bytes = bytes, .job = lease.job});
}

// Callers waiting for a chunk ask often. The writer is involved only when there is a chunk to return.
std::optional<ChunkPage> Chunks::consume(const JobKey& key, std::size_t maxBytes, CallId id) {
  const auto row = readers_.read([&](Connection& connection) { return findRow(connection, key, clock_.now()); });
  if (!row) return std::nullopt;
  if (row->taken == row->chunks && row->takenBy != id) {
    return ChunkPage{{}, static_cast<std::uint64_t>(row->taken), false, row->state, row->attempt};
  }
  return writer_.write([&](Step& step) { return consumeNow(step, key, maxBytes, id); });
}

std::optional<ChunkPage> Chunks::read(const JobKey& key, std::uint64_t offset, std::size_t maxBytes) {
  return readers_.read([&](Connection& connection) -> std::optional<ChunkPage> {
    const Snapshot snapshot(connection);
    const auto row = findRow(connection, key, clock_.now());
    if (!row) return std::nullopt;
    return pageOf(connection, *row, {static_cast<std::int64_t>(offset), row->chunks}, maxBytes);
  });
}

ReportResult Chunks::appendLog(const LeaseRef& lease, std::uint64_t first, std::vector<LogLine> lines) {
  constexpr auto kKept = static_cast<std::int64_t>(kMaxLogLines);
  const auto appendNow = [&](Step& step) {
    const auto row = lockHeld(step, lease);
    if (!row) return ReportResult::staleAttempt;
    const auto stored = static_cast<std::uint64_t>(row->logLines);
    checkNothingLeftOut(*row, "log lines", stored, first);
    if (first + lines.size() <= stored) return ReportResult::accepted;
    const auto after = static_cast<std::int64_t>(first + lines.size());
    std::int64_t seq = row->logLines;
    for (std::size_t i = stored - first; i < lines.size(); ++i) {
      if (seq++ >= after - kKept) addLine(step, *row, seq, lines[i]);
    }
    if (after > kKept) step.db.later("DELETE FROM job_log WHERE num = ? AND seq <= ?").add(row->num, after - kKept);
    step.db.later("UPDATE job SET log_lines = ? WHERE num = ?").add(after, row->num);
    return ReportResult::accepted;
  };
  return writer_.write(appendNow, {.job = lease.job});
}

// The client library keeps all rows of a statement in memory, so each statement reads few lines.
std::optional<LogPart> Chunks::readLog(const JobKey& key, const LogPosition& from, std::uint64_t maxBytes) {
  constexpr std::size_t kTogether = 32;
  return readers_.read([&](Connection& connection) -> std::optional<LogPart> {
    const Snapshot snapshot(connection);
    const auto row = findRow(connection, key, clock_.now());
    if (!row) return std::nullopt;
    LogPartBuilder builder(from, maxBytes);
    std::int64_t seq = -1;
    for (std::size_t read = kTogether; read == kTogether;) {
      Query query = connection.query(
          "SELECT written_at, log_level, line, seq FROM job_log WHERE num = ? AND seq > ? AND written_at >= ? "
          "ORDER BY seq LIMIT ?");
      query.bind(row->num, seq, from.at, kTogether);
      for (read = 0; query.next(); ++read) {
        seq = query.integer(3);
        if (!builder.add({query.instant(0), static_cast<LogLevel>(query.integer(1)), query.text(2)})) break;
      }
    }
    return std::move(builder).finish();
  });
}

}  // namespace jobq::mysql
