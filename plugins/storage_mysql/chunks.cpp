#include "chunks.h"

#include "job_rows.h"
#include "storage_sql/chunks.h"

namespace jobq::mysql {
namespace {

/// Returns the number after the last chunk of the range within `maxBytes` bytes. The first chunk fits always. Only
/// sizes are read: a range may have more bytes than the memory.
std::int64_t endWithin(Connection& connection, const JobRow& row, const sql::ChunkRange& range, std::size_t maxBytes) {
  if (maxBytes == sql::kAnyBytes) return range.to;
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
std::vector<Chunk> chunksOf(Connection& connection, const JobRow& row, const sql::ChunkRange& range,
                            std::size_t maxBytes) {
  std::vector<Chunk> chunks;
  if (range.from >= range.to) return chunks;
  const std::int64_t end = endWithin(connection, row, range, maxBytes);
  Query query = connection.query(
      "SELECT partial_output, metrics, output FROM job_chunk WHERE num = ? AND seq >= ? AND seq < ? ORDER BY seq");
  query.bind(row.num, range.from, end);
  while (query.next()) chunks.push_back({query.text(2), query.text(1), query.flag(0)});
  return chunks;
}

/// The statements for the steps of `storage_sql/chunks.h`.
struct ChunkStatements {
  Step& step;

  std::optional<JobRow> find(const JobKey& key) const { return lockRow(step, key); }
  std::optional<JobRow> findHeld(const LeaseRef& lease) const { return lockHeld(step, lease); }
  std::vector<Chunk> chunks(const JobRow& row, const sql::ChunkRange& range, std::size_t maxBytes) const {
    return chunksOf(step.db, row, range, maxBytes);
  }
  /// A discarded chunk may have the number (`job_rows.h`).
  void addChunk(const JobRow& row, std::int64_t seq, const Chunk& chunk) const {
    step.db.later("REPLACE INTO job_chunk (num, seq, partial_output, size, metrics, output) VALUES (?, ?, ?, ?, ?, ?)")
        .add(row.num, seq, chunk.partial, sql::bytesOf(chunk), Lent{chunk.metrics}, Lent{chunk.output});
  }
  void setChunks(const JobRow& row, std::int64_t chunks) const {
    step.db.later("UPDATE job SET chunks = ? WHERE num = ?").add(chunks, row.num);
  }
  void setTaken(const JobRow& row, std::uint64_t taken, CallId id) const {
    step.db.query("UPDATE job SET taken_from = taken, taken = ?, taken_by = ? WHERE num = ?")
        .bind(taken, id, row.num)
        .run();
  }
  void addLine(const JobRow& row, std::int64_t seq, const LogLine& line) const {
    step.db.later("INSERT INTO job_log (num, seq, written_at, log_level, line) VALUES (?, ?, ?, ?, ?)")
        .add(row.num, seq, step.now, line.level, Lent{line.text});
  }
  void dropLines(const JobRow& row, std::int64_t last) const {
    step.db.later("DELETE FROM job_log WHERE num = ? AND seq <= ?").add(row.num, last);
  }
  void setLines(const JobRow& row, std::int64_t lines) const {
    step.db.later("UPDATE job SET log_lines = ? WHERE num = ?").add(lines, row.num);
  }
};

}  // namespace

ReportResult Chunks::append(const LeaseRef& lease, std::uint64_t first, std::vector<Chunk> chunks) {
  const auto appendNow = [&](Step& step) { return sql::appendChunks(ChunkStatements{step}, lease, first, chunks); };
  return writer_.write(appendNow, {.bytes = sql::bytesOf(chunks), .job = lease.job});
}

// Callers waiting for a chunk ask often. The writer is involved only when there is a chunk to return.
std::optional<ChunkPage> Chunks::consume(const JobKey& key, std::size_t maxBytes, CallId id) {
  const auto row = readers_.read([&](Connection& connection) { return findRow(connection, key, clock_.now()); });
  if (!row) return std::nullopt;
  if (row->taken == row->chunks && row->takenBy != id) {
    return sql::pageOf(*row, row->taken, {});
  }
  return writer_.write([&](Step& step) { return sql::consumeChunks(ChunkStatements{step}, key, maxBytes, id); });
}

std::optional<ChunkPage> Chunks::read(const JobKey& key, std::uint64_t offset, std::size_t maxBytes) {
  return readers_.read([&](Connection& connection) -> std::optional<ChunkPage> {
    const Snapshot snapshot(connection);
    const auto row = findRow(connection, key, clock_.now());
    if (!row) return std::nullopt;
    const auto from = static_cast<std::int64_t>(offset);
    return sql::pageOf(*row, from, chunksOf(connection, *row, {from, row->chunks}, maxBytes));
  });
}

ReportResult Chunks::appendLog(const LeaseRef& lease, std::uint64_t first, std::vector<LogLine> lines) {
  const auto appendNow = [&](Step& step) { return sql::appendLines(ChunkStatements{step}, lease, first, lines); };
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
