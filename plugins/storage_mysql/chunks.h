// The statements of the store of chunks (`storage_sql/chunks.h`).
#pragma once

#include <cstddef>
#include <cstdint>
#include <optional>
#include <type_traits>
#include <vector>

#include "connection/connection.h"
#include "connection/database_clock.h"
#include "connection/row_batch.h"
#include "connection/statement.h"
#include "job_row.h"
#include "job_rows.h"
#include "jobq/call_id.h"
#include "jobq/chunk_store.h"
#include "jobq/job.h"
#include "jobq/log.h"
#include "reads/readers.h"
#include "storage_sql/chunks.h"
#include "writes/writer.h"

namespace jobq::mysql {

/// Everything here outlives the store.
struct ChunkRows {
  Writer& writer;
  Readers& readers;
  const DatabaseClock& clock;

  /// Runs the step of a report under the lease, which writes `bytes` bytes.
  template <class Operation>
  auto report(const LeaseRef& lease, std::size_t bytes, Operation&& operation) const {
    return writer.write(operation, {.bytes = bytes, .job = lease.job});
  }

  /// Runs a step of a caller.
  template <class Operation>
  auto write(Operation&& operation) const {
    return writer.write(operation);
  }

  /// Calls `operation(Connection&, const JobRow&)` in a snapshot, unless the job is absent.
  template <class Operation>
  auto read(const JobKey& key, Operation&& operation) const {
    return readers.read([&](Connection& connection) {
      const Snapshot snapshot(connection);
      const auto row = findRow(connection, key, clock.now());
      return row ? std::optional(operation(connection, *row)) : std::nullopt;
    });
  }

  /// Returns at once: a read shows committed rows only.
  void awaitDisk(const JobKey&) const {}

  std::optional<JobRow> find(const JobKey& key) const {
    return readers.read([&](Connection& connection) { return findRow(connection, key, clock.now()); });
  }

  /// Returns the number after the last chunk of the range within `maxBytes` bytes. The first chunk fits always. Only
  /// sizes are read: a range may have more bytes than the memory.
  std::int64_t endWithin(Connection& connection, const JobRow& row, const sql::ChunkRange& range,
                         std::size_t maxBytes) const {
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

  /// Returns the chunks of the range, up to `maxBytes` bytes. The first chunk is returned even if larger.
  std::vector<Chunk> chunks(Connection& connection, const JobRow& row, const sql::ChunkRange& range,
                            std::size_t maxBytes) const {
    std::vector<Chunk> chunks;
    if (range.from >= range.to) return chunks;
    const std::int64_t end = endWithin(connection, row, range, maxBytes);
    Query query = connection.query(
        "SELECT partial_output, metrics, output FROM job_chunk WHERE num = ? AND seq >= ? AND seq < ? ORDER BY seq");
    query.bind(row.num, range.from, end);
    while (query.next()) chunks.push_back({query.text(2), query.text(1), query.flag(0)});
    return chunks;
  }

  /// Adds the lines from the position on, up to the bound of the builder. The client library keeps all rows of a
  /// statement in memory, so each statement reads few lines.
  void readLines(Connection& connection, const JobRow& row, const LogPosition& from, LogPartBuilder& builder) const {
    constexpr std::size_t kTogether = 32;
    std::int64_t seq = -1;
    for (std::size_t read = kTogether; read == kTogether;) {
      Query query = connection.query(
          "SELECT written_at, log_level, line, seq FROM job_log WHERE num = ? AND seq > ? AND written_at >= ? "
          "ORDER BY seq LIMIT ?");
      query.bind(row.num, seq, from.at, kTogether);
      for (read = 0; query.next(); ++read) {
        seq = query.integer(3);
        if (!builder.add({query.instant(0), static_cast<LogLevel>(query.integer(1)), query.text(2)})) return;
      }
    }
  }

  /// A discarded chunk may have the number (`job_rows.h`).
  void addChunk(Step& step, const JobRow& row, std::int64_t seq, const Chunk& chunk) const {
    step.db.later("REPLACE INTO job_chunk (num, seq, partial_output, size, metrics, output) VALUES (?, ?, ?, ?, ?, ?)")
        .add(row.num, seq, chunk.partial, sql::bytesOf(chunk), Lent{chunk.metrics}, Lent{chunk.output});
  }
  void setChunks(Step& step, const JobRow& row, std::int64_t chunks) const {
    step.db.later("UPDATE job SET chunks = ? WHERE num = ?").add(chunks, row.num);
  }
  void setTaken(Step& step, const JobRow& row, std::uint64_t taken, CallId id) const {
    step.db.query("UPDATE job SET taken_from = taken, taken = ?, taken_by = ? WHERE num = ?")
        .bind(taken, id, row.num)
        .run();
  }
  void addLine(Step& step, const JobRow& row, std::int64_t seq, const LogLine& line) const {
    step.db.later("INSERT INTO job_log (num, seq, written_at, log_level, line) VALUES (?, ?, ?, ?, ?)")
        .add(row.num, seq, step.now, line.level, Lent{line.text});
  }
  void dropLines(Step& step, const JobRow& row, std::int64_t last) const {
    step.db.later("DELETE FROM job_log WHERE num = ? AND seq <= ?").add(row.num, last);
  }
  void setLines(Step& step, const JobRow& row, std::int64_t lines) const {
    step.db.later("UPDATE job SET log_lines = ? WHERE num = ?").add(lines, row.num);
  }
};

}  // namespace jobq::mysql
