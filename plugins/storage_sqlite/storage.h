// The default storage: one SQLite file, `<data.dir>/jobq.db`, for one server process.
//
// A verb that changes something returns when its change is on disk (WAL, synchronous=FULL; writer.h); a question is
// answered from a snapshot that holds everything acknowledged before it was asked (readers.h).
//
// Time is the host's clock, stored as milliseconds since the epoch. It never goes back while the process lives. When
// the wall clock was set back between two runs, what was written before lies in the future by that much: jobs, leases
// and owed webhooks end or fall due that much later, and a duration across the restart may come out negative. Nothing
// is lost or run twice: the line's order and `list` follow the order of arrival, leases of the former process end in
// any case, and fencing knows attempts, not times.
#pragma once

#include <cstddef>
#include <cstdint>
#include <filesystem>
#include <stop_token>

#include "chunks.h"
#include "connection.h"
#include "counters.h"
#include "jobq/config.h"
#include "jobq/plugin.h"
#include "jobq/storage.h"
#include "jobq/time.h"
#include "jobs.h"
#include "leases.h"
#include "outbox.h"
#include "readers.h"
#include "records.h"
#include "reports_under_way.h"
#include "workers.h"
#include "writer.h"

namespace jobq::sqlite {

class SqliteStorage final : public Storage {
 public:
  struct Options {
    explicit Options(const PluginConfig& config);

    std::size_t readers;
    std::uint64_t logSize;  // bytes
  };

  explicit SqliteStorage(const PluginEnv& env);

  JobStore& jobs() override { return jobs_; }
  LeaseStore& leases() override { return leases_; }
  ChunkStore& chunks() override { return chunks_; }
  OutboxStore& outbox() override { return outbox_; }
  WorkerStore& workers() override { return workers_; }
  RecordStore& records() override { return records_; }
  Instant now() override { return clock_.now(); }
  void check() override;

 private:
  BackupResult backupTo(const std::filesystem::path& file, std::stop_token stop) override;

  // Gone in reverse order: the faces, the readers, the writer after its last group, then the connection, which is the
  // last one and so empties the write-ahead log into the file.
  const Options options_;
  const std::filesystem::path file_;
  Clock& clock_;
  Connection connection_;  // the opening's, then the writer's
  Counters counters_;
  const std::int64_t lastArrival_;
  Writer writer_;
  Readers readers_;
  Jobs jobs_;
  ReportsUnderWay reports_;
  Leases leases_;
  Chunks chunks_;
  Outbox outbox_;
  Workers workers_;
  Records records_;
};

}  // namespace jobq::sqlite
