// The default storage: one SQLite file, `<data.dir>/jobq.db`, with a folder of large bodies beside (`body_files.h`),
// for one server process.
//
// A writing operation returns when its change is on disk; an operation whose contract says "Unsynced" returns when the
// change survives the death of the process (WAL; `writer.h`, `durability.h`). A read is answered from a snapshot with
// all changes acknowledged before the call (`readers.h`).
//
// Time is the clock of the host, stored as milliseconds since the epoch. The clock never goes back while the process
// lives. When the wall clock was set back between two runs, earlier rows lie in the future by the difference: jobs,
// leases and owed webhooks end or fall due later by as much, and a duration across the restart may be negative. No job
// is lost or runs twice: the order of the queue and of `list` follows the order of arrival, leases of the former
// process end in any case, and fencing depends on attempts, not on times.
#pragma once

#include <cstddef>
#include <cstdint>
#include <filesystem>
#include <optional>
#include <stop_token>
#include <utility>

#include "bodies/body_files.h"
#include "bodies/claimed_inputs.h"
#include "chunks.h"
#include "connection.h"
#include "jobq/config.h"
#include "jobq/job.h"
#include "jobq/plugin.h"
#include "jobq/queue_policy.h"
#include "jobq/storage.h"
#include "jobq/time.h"
#include "jobs.h"
#include "leases.h"
#include "nodes.h"
#include "outbox.h"
#include "reads/ended_jobs.h"
#include "reads/job_listing.h"
#include "reads/readers.h"
#include "records.h"
#include "removal_hold.h"
#include "storage_sql/chunks.h"
#include "storage_sql/outbox.h"
#include "storage_sql/records.h"
#include "storage_sql/reports_under_way.h"
#include "writes/counters.h"
#include "writes/running_rows.h"
#include "writes/writer.h"

namespace jobq::sqlite {

/// The storage plugin `sqlite`. Owns its stores, its connections and the writer thread. Construction throws
/// StorageError or ConfigError.
class SqliteStorage final : public Storage {
 public:
  struct Options {
    explicit Options(const PluginConfig& config);

    std::size_t readers;    // number of read connections
    std::uint64_t logSize;  // bytes
  };

  explicit SqliteStorage(const PluginEnv& env);
  ~SqliteStorage() override { leases_.endLeftOutJobs(); }

  JobStore& jobs() override { return jobs_; }
  LeaseStore& leases() override { return leases_; }
  ChunkStore& chunks() override { return chunks_; }
  OutboxStore& outbox() override { return outbox_; }
  NodeStore& nodes() override { return nodes_; }
  RecordStore& records() override { return records_; }
  Capabilities capabilities() const noexcept override {
    return {Capability::insertBegun,    Capability::insertLater, Capability::insertAndClaim, Capability::finishAndClaim,
            Capability::finishUnsynced, Capability::adopt,       Capability::backup};
  }
  InsertedAndClaimed insertAndClaim(JobSpec&& job, const QueuePolicy& policy,
                                    const std::optional<Idempotency>& idempotency, const FusedClaim& claim) override {
    return jobs_.insertAndClaim(std::move(job), policy, idempotency, claim);
  }
  BackupResult backupTo(const std::filesystem::path& file, std::stop_token stop) override;
  Instant now() override { return clock_.now(); }
  void check() override;

 private:
  // Members are destroyed in reverse order: most stores, the readers, the writer after its last group, which may insert
  // jobs, then the store of jobs and the connection. The connection closes last and therefore moves the write-ahead log
  // into the file.
  const Options options_;
  const std::filesystem::path file_;
  Clock& clock_;
  RemovalHold hold_;
  Connection connection_;  // used by the opening, then by the writer
  Counters counters_;
  RunningRows running_;
  EndedJobs ended_;
  JobNumbers numbers_;
  BodyFiles bodies_;
  Jobs jobs_;
  Writer writer_;
  Readers readers_;
  ClaimedInputs inputs_;
  sql::ReportsUnderWay reports_;
  Leases leases_;
  sql::Chunks<ChunkRows> chunks_;
  sql::Outbox<OutboxRows> outbox_;
  Nodes nodes_;
  sql::Records<RecordRows> records_;
};

}  // namespace jobq::sqlite
