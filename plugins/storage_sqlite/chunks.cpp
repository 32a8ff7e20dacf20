#include "chunks.h"

#include <limits>

#include "job_rows.h"

namespace jobq::sqlite {
namespace {

/// The chunks of an attempt from number `from` up to number `to`, without `to`.
struct Range {
  std::int64_t from;
  std::int64_t to;
};

constexpr std::size_t kAnyBytes = std::numeric_limits<std::size_t>::max();

/// Returns the chunks of the range, up to `maxBytes` bytes. The first chunk is returned even if larger.
ChunkPage pageOf(Connection& connection, const JobRow& row, const Range& range, std::size_t maxBytes) {
  ChunkPage page;
  page.next = static_cast<std::uint64_t>(range.from);
  page.state = row.state;
  page.attempt = row.attempt;
  Query query = connection.query(
      "SELECT size, partial, metrics, output FROM job_chunk WHERE num = ?1 AND seq >= ?2 AND seq < ?3 ORDER BY seq");
  query.bind(row.num, range.from, range.to);
  std::size_t bytes = 0;
  while (query.next()) {
    bytes += query.size(0);
    if (!page.chunks.empty() && bytes > maxBytes) break;
    page.chunks.push_back({query.text(3), query.text(2), query.flag(1)});
    ++page.next;
  }
  page.more = static_cast<std::int64_t>(page.next) < row.chunks;
  return page;
}

/// A discarded chunk may have the number (`job_rows.h`).
void addChunk(Step& step, const JobRow& row, std::int64_t seq, const Chunk& chunk) {
  step.db
      .query(
          "INSERT OR REPLACE INTO job_chunk (num, seq, partial, size, metrics, output) VALUES (?1, ?2, ?3, ?4, ?5, ?6)")
      .bind(row.num, seq, chunk.partial, chunk.output.size() + chunk.metrics.size(), Bytes{chunk.metrics},
            Bytes{chunk.output})
      .run();
}

/// Throws Error if the store has fewer than `first` pieces: the caller has left some out.
void checkNothingLeftOut(const JobRow& row, const char* pieces, std::uint64_t stored, std::uint64_t first) {
  if (first <= stored) return;
  throw Error("job " + row.id + " has " + std::to_string(stored) + " " + pieces + "; number " + std::to_string(first) +
              " does not follow");
}

/// Returns the next page for a caller and moves `taken`, the number at which the next caller starts.
std::optional<ChunkPage> consumeNow(Step& step, const JobKey& key, std::size_t maxBytes, CallId id) {
  const auto row = findRow(step, key);
  if (!row) return std::nullopt;
  if (row->takenBy == id) return pageOf(step.db, *row, {row->takenFrom, row->taken}, kAnyBytes);
  ChunkPage page = pageOf(step.db, *row, {row->taken, row->chunks}, maxBytes);
  if (!page.chunks.empty()) {
    step.db.query("UPDATE job SET taken = ?2, taken_by = ?3, taken_from = taken WHERE num = ?1")
        .bind(row->num, page.next, id)
        .run();
  }
  return page;
}

}  // namespace

ReportResult Chunks::append(const LeaseRef& lease, std::uint64_t first, std::vector<Chunk> chunks) {
  std::size_t bytes = 0;
  for (const Chunk& chunk : chunks) bytes += chunk.output.size() + chunk.metrics.size();
  const auto appendNow = [&](Step& step) {
    const auto row = findHeld(step, lease);
    if (!row) return ReportResult::staleAttempt;
    const auto stored = static_cast<std::uint64_t>(row->chunks);
    checkNothingLeftOut(*row, "chunks", stored, first);
    std::int64_t seq = row->chunks;
    for (std::size_t i = stored - first; i < chunks.size(); ++i) addChunk(step, *row, seq++, chunks[i]);
    if (seq == row->chunks) return ReportResult::accepted;
    step.db.query("UPDATE job SET chunks = ?2 WHERE num = ?1").bind(row->num, seq).run();
    return ReportResult::accepted;
  };
  return writer_.writeUnsynced(appendNow, bytes);
}

// Callers waiting for a chunk ask often. The writer is involved only when there is a chunk to return.
std::optional<ChunkPage> Chunks::consume(const JobKey& key, std::size_t maxBytes, CallId id) {
  const LocatedId located = numbers_.locate(key.id);
  const auto row =
      readers_.read([&](Connection& connection) { return findRow(connection, located, key.endpoint, clock_.now()); });
  if (!row) return std::nullopt;
  if (row->taken == row->chunks && row->takenBy != id) {
    makeDurable(writer_, key.id);
    return ChunkPage{{}, static_cast<std::uint64_t>(row->taken), false, row->state, row->attempt};
  }
  return writer_.write([&](Step& step) { return consumeNow(step, key, maxBytes, id); });
}

std::optional<ChunkPage> Chunks::read(const JobKey& key, std::uint64_t offset, std::size_t maxBytes) {
  const LocatedId located = numbers_.locate(key.id);
  auto page = readers_.read([&](Connection& connection) -> std::optional<ChunkPage> {
    const Snapshot snapshot(connection);
    const auto row = findRow(connection, located, key.endpoint, clock_.now());
    if (!row) return std::nullopt;
    return pageOf(connection, *row, {static_cast<std::int64_t>(offset), row->chunks}, maxBytes);
  });
  if (page) makeDurable(writer_, key.id);
  return page;
}

ReportResult Chunks::appendLog(const LeaseRef& lease, std::uint64_t first, std::vector<LogLine> lines) {
  constexpr auto kKept = static_cast<std::int64_t>(kMaxLogLines);
  return writer_.writeUnsynced([&](Step& step) {
    const auto row = findHeld(step, lease);
    if (!row) return ReportResult::staleAttempt;
    const auto stored = static_cast<std::uint64_t>(row->logLines);
    checkNothingLeftOut(*row, "log lines", stored, first);
    if (first + lines.size() <= stored) return ReportResult::accepted;
    const auto after = static_cast<std::int64_t>(first + lines.size());
    std::int64_t seq = row->logLines;
    for (std::size_t i = stored - first; i < lines.size(); ++i) {
      if (seq++ < after - kKept) continue;
      step.db.query("INSERT INTO job_log (num, seq, at, level, text) VALUES (?1, ?2, ?3, ?4, ?5)")
          .bind(row->num, seq, step.now, static_cast<int>(lines[i].level), lines[i].text)
          .run();
    }
    step.db.query("DELETE FROM job_log WHERE num = ?1 AND seq <= ?2").bind(row->num, after - kKept).run();
    step.db.query("UPDATE job SET log_lines = ?2 WHERE num = ?1").bind(row->num, after).run();
    return ReportResult::accepted;
  });
}

std::optional<LogPart> Chunks::readLog(const JobKey& key, const LogPosition& from, std::uint64_t maxBytes) {
  const LocatedId located = numbers_.locate(key.id);
  auto read = readers_.read([&](Connection& connection) -> std::optional<LogPart> {
    const Snapshot snapshot(connection);
    const auto row = findRow(connection, located, key.endpoint, clock_.now());
    if (!row) return std::nullopt;
    Query query = connection.query("SELECT at, level, text FROM job_log WHERE num = ?1 AND at >= ?2 ORDER BY seq");
    query.bind(row->num, from.at);
    LogPartBuilder builder(from, maxBytes);
    while (query.next()) {
      if (!builder.add({query.instant(0), static_cast<LogLevel>(query.integer(1)), query.text(2)})) break;
    }
    return std::move(builder).finish();
  });
  if (read) makeDurable(writer_, key.id);
  return read;
}

}  // namespace jobq::sqlite
