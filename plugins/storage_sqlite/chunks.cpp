#include "chunks.h"

#include "job_rows.h"
#include "storage_sql/chunks.h"

namespace jobq::sqlite {
namespace {

/// Returns the chunks of the range, up to `maxBytes` bytes. The first chunk is returned even if larger.
std::vector<Chunk> chunksOf(Connection& connection, const JobRow& row, const sql::ChunkRange& range,
                            std::size_t maxBytes) {
  Query query = connection.query(
      "SELECT size, partial, metrics, output FROM job_chunk WHERE num = ?1 AND seq >= ?2 AND seq < ?3 ORDER BY seq");
  query.bind(row.num, range.from, range.to);
  std::vector<Chunk> chunks;
  for (std::size_t bytes = 0; query.next();) {
    bytes += query.size(0);
    if (!chunks.empty() && bytes > maxBytes) break;
    chunks.push_back({query.text(3), query.text(2), query.flag(1)});
  }
  return chunks;
}

/// The statements for the steps of `storage_sql/chunks.h`.
struct ChunkStatements {
  Step& step;

  std::optional<JobRow> find(const JobKey& key) const { return findRow(step, key); }
  std::optional<JobRow> findHeld(const LeaseRef& lease) const { return sqlite::findHeld(step, lease); }
  std::vector<Chunk> chunks(const JobRow& row, const sql::ChunkRange& range, std::size_t maxBytes) const {
    return chunksOf(step.db, row, range, maxBytes);
  }
  /// A discarded chunk may have the number (`job_rows.h`).
  void addChunk(const JobRow& row, std::int64_t seq, const Chunk& chunk) const {
    step.db
        .query(
            "INSERT OR REPLACE INTO job_chunk (num, seq, partial, size, metrics, output) "
            "VALUES (?1, ?2, ?3, ?4, ?5, ?6)")
        .bind(row.num, seq, chunk.partial, sql::bytesOf(chunk), Bytes{chunk.metrics}, Bytes{chunk.output})
        .run();
  }
  void setChunks(const JobRow& row, std::int64_t chunks) const {
    step.db.query("UPDATE job SET chunks = ?2 WHERE num = ?1").bind(row.num, chunks).run();
  }
  void setTaken(const JobRow& row, std::uint64_t taken, CallId id) const {
    step.db.query("UPDATE job SET taken = ?2, taken_by = ?3, taken_from = taken WHERE num = ?1")
        .bind(row.num, taken, id)
        .run();
  }
  void addLine(const JobRow& row, std::int64_t seq, const LogLine& line) const {
    step.db.query("INSERT INTO job_log (num, seq, at, level, text) VALUES (?1, ?2, ?3, ?4, ?5)")
        .bind(row.num, seq, step.now, static_cast<int>(line.level), line.text)
        .run();
  }
  void dropLines(const JobRow& row, std::int64_t last) const {
    step.db.query("DELETE FROM job_log WHERE num = ?1 AND seq <= ?2").bind(row.num, last).run();
  }
  void setLines(const JobRow& row, std::int64_t lines) const {
    step.db.query("UPDATE job SET log_lines = ?2 WHERE num = ?1").bind(row.num, lines).run();
  }
};

}  // namespace

ReportResult Chunks::append(const LeaseRef& lease, std::uint64_t first, std::vector<Chunk> chunks) {
  const auto appendNow = [&](Step& step) { return sql::appendChunks(ChunkStatements{step}, lease, first, chunks); };
  return writer_.writeUnsynced(appendNow, sql::bytesOf(chunks));
}

// Callers waiting for a chunk ask often. The writer is involved only when there is a chunk to return.
std::optional<ChunkPage> Chunks::consume(const JobKey& key, std::size_t maxBytes, CallId id) {
  const LocatedId located = numbers_.locate(key.id);
  const auto row =
      readers_.read([&](Connection& connection) { return findRow(connection, located, key.endpoint, clock_.now()); });
  if (!row) return std::nullopt;
  if (row->taken == row->chunks && row->takenBy != id) {
    makeDurable(writer_, key.id);
    return sql::pageOf(*row, row->taken, {});
  }
  return writer_.write([&](Step& step) { return sql::consumeChunks(ChunkStatements{step}, key, maxBytes, id); });
}

std::optional<ChunkPage> Chunks::read(const JobKey& key, std::uint64_t offset, std::size_t maxBytes) {
  const LocatedId located = numbers_.locate(key.id);
  auto page = readers_.read([&](Connection& connection) -> std::optional<ChunkPage> {
    const Snapshot snapshot(connection);
    const auto row = findRow(connection, located, key.endpoint, clock_.now());
    if (!row) return std::nullopt;
    const auto from = static_cast<std::int64_t>(offset);
    return sql::pageOf(*row, from, chunksOf(connection, *row, {from, row->chunks}, maxBytes));
  });
  if (page) makeDurable(writer_, key.id);
  return page;
}

ReportResult Chunks::appendLog(const LeaseRef& lease, std::uint64_t first, std::vector<LogLine> lines) {
  return writer_.writeUnsynced(
      [&](Step& step) { return sql::appendLines(ChunkStatements{step}, lease, first, lines); });
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
