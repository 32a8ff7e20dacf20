// The statements of the store of chunks (`storage_sql/chunks.h`).
#pragma once

#include <cstddef>
#include <cstdint>
#include <optional>
#include <type_traits>
#include <vector>

#include "connection.h"
#include "job_rows.h"
#include "jobq/call_id.h"
#include "jobq/chunk_store.h"
#include "jobq/job.h"
#include "jobq/log.h"
#include "jobq/time.h"
#include "reads/job_listing.h"
#include "reads/readers.h"
#include "statement.h"
#include "storage_sql/chunks.h"
#include "writes/step.h"
#include "writes/writer.h"

namespace jobq::sqlite {

/// Everything here outlives the store.
struct ChunkRows {
  Writer& writer;
  Readers& readers;
  const JobNumbers& numbers;
  Clock& clock;

  /// Runs the step of a report under the lease, which writes `bytes` bytes.
  template <class Operation>
  auto report(const LeaseRef&, std::size_t bytes, Operation&& operation) const {
    return writer.writeUnsynced(operation, bytes);
  }

  /// Runs a step of a caller.
  template <class Operation>
  auto write(Operation&& operation) const {
    return writer.write(operation);
  }

  /// Calls `operation(Connection&, const JobRow&)` in a snapshot, unless the job is absent.
  template <class Operation>
  auto read(const JobKey& key, Operation&& operation) const {
    const LocatedId located = numbers.locate(key.id);
    auto result = readers.read([&](Connection& connection) {
      const Snapshot snapshot(connection);
      const auto row = findRow(connection, located, key.endpoint, clock.now());
      return row ? std::optional(operation(connection, *row)) : std::nullopt;
    });
    if (result) awaitDisk(key);
    return result;
  }

  /// Blocks until the job is on disk.
  void awaitDisk(const JobKey& key) const { makeDurable(writer, key.id); }

  std::optional<JobRow> find(const JobKey& key) const {
    const LocatedId located = numbers.locate(key.id);
    return readers.read(
        [&](Connection& connection) { return findRow(connection, located, key.endpoint, clock.now()); });
  }

  /// Returns the chunks of the range, up to `maxBytes` bytes. The first chunk is returned even if larger.
  std::vector<Chunk> chunks(Connection& connection, const JobRow& row, const sql::ChunkRange& range,
                            std::size_t maxBytes) const {
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

  /// Adds the lines from the position on, up to the bound of the builder.
  void readLines(Connection& connection, const JobRow& row, const LogPosition& from, LogPartBuilder& builder) const {
    Query query = connection.query("SELECT at, level, text FROM job_log WHERE num = ?1 AND at >= ?2 ORDER BY seq");
    query.bind(row.num, from.at);
    while (query.next()) {
      if (!builder.add({query.instant(0), static_cast<LogLevel>(query.integer(1)), query.text(2)})) return;
    }
  }

  /// A discarded chunk may have the number (`job_rows.h`).
  void addChunk(Step& step, const JobRow& row, std::int64_t seq, const Chunk& chunk) const {
    step.db
        .query(
            "INSERT OR REPLACE INTO job_chunk (num, seq, partial, size, metrics, output) "
            "VALUES (?1, ?2, ?3, ?4, ?5, ?6)")
        .bind(row.num, seq, chunk.partial, sql::bytesOf(chunk), Bytes{chunk.metrics}, Bytes{chunk.output})
        .run();
  }
  void setChunks(Step& step, const JobRow& row, std::int64_t chunks) const {
    step.db.query("UPDATE job SET chunks = ?2 WHERE num = ?1").bind(row.num, chunks).run();
  }
  void setTaken(Step& step, const JobRow& row, std::uint64_t taken, CallId id) const {
    step.db.query("UPDATE job SET taken = ?2, taken_by = ?3, taken_from = taken WHERE num = ?1")
        .bind(row.num, taken, id)
        .run();
  }
  void addLine(Step& step, const JobRow& row, std::int64_t seq, const LogLine& line) const {
    step.db.query("INSERT INTO job_log (num, seq, at, level, text) VALUES (?1, ?2, ?3, ?4, ?5)")
        .bind(row.num, seq, step.now, static_cast<int>(line.level), line.text)
        .run();
  }
  void dropLines(Step& step, const JobRow& row, std::int64_t last) const {
    step.db.query("DELETE FROM job_log WHERE num = ?1 AND seq <= ?2").bind(row.num, last).run();
  }
  void setLines(Step& step, const JobRow& row, std::int64_t lines) const {
    step.db.query("UPDATE job SET log_lines = ?2 WHERE num = ?1").bind(row.num, lines).run();
  }
};

}  // namespace jobq::sqlite
