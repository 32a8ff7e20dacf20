// A storage that any number of server nodes share: a database of MariaDB (10.6 or newer) or MySQL (8.0 or newer).
//
// A writing operation returns when its transaction is committed (`writer.h`). A read sees every change that was
// committed before the call. Nodes know nothing of each other but what they read from the database; locks of rows
// decide between them (`lives.h`, `job_rows.h`), and no operation keeps a decision in memory.
//
// Time is the clock of the database (`database_clock.h`). A cluster needs one server that takes the writes: the servers
// of a Galera cluster do not share row locks, and a claim on one does not exclude a claim on another before the commit.
#pragma once

#include <memory>
#include <optional>
#include <vector>

#include "chunks.h"
#include "connection/connection.h"
#include "connection/database_clock.h"
#include "connection/options.h"
#include "connection/server_in_use.h"
#include "jobq/config.h"
#include "jobq/plugin.h"
#include "jobq/storage.h"
#include "jobq/time.h"
#include "jobs.h"
#include "leases.h"
#include "nodes.h"
#include "outbox.h"
#include "reads/glance.h"
#include "reads/readers.h"
#include "records.h"
#include "storage_sql/chunks.h"
#include "storage_sql/outbox.h"
#include "storage_sql/records.h"
#include "writes/job_numbers.h"
#include "writes/writer.h"

namespace jobq::mysql {

/// The storage plugin `mysql`. Owns its stores, its connections and the writer's threads. Construction throws
/// StorageError or ConfigError.
class MysqlStorage final : public Storage {
 public:
  using Options = mysql::Options;

  explicit MysqlStorage(const PluginEnv& env);

  /// Checks the database without opening the storage (abi::Entry::probe).
  static std::vector<CheckResult> probe(const PluginEnv& env);

  JobStore& jobs() override { return jobs_; }
  LeaseStore& leases() override { return leases_; }
  ChunkStore& chunks() override { return chunks_; }
  OutboxStore& outbox() override { return outbox_; }
  NodeStore& nodes() override { return nodes_; }
  RecordStore& records() override { return records_; }
  Capabilities capabilities() const noexcept override { return {}; }
  std::optional<Millis> leaseLife() const noexcept override;
  Instant now() override { return clock_.now(); }
  void check() override;

 private:
  // Members are destroyed in reverse order: the stores, the readers, then the writers after their last groups. The
  // store of nodes has two connections of its own: beats wait neither behind the writes of jobs nor for a place to
  // read, and give up sooner on a database that does not answer.
  const std::shared_ptr<ServerInUse> server_;
  const Connector connector_;
  const Connector nodeConnector_;
  DatabaseClock clock_;
  JobNumbers numbers_{clock_};
  const bool isOpen_;  // set when the schema is up to date, before any thread starts
  CommitCount commits_ = 0;
  Writer writer_;
  Writer nodeWriter_;
  Readers readers_;
  Readers nodeReader_;
  Glances glances_{readers_, clock_, commits_};
  Jobs jobs_;
  Leases leases_;
  sql::Chunks<ChunkRows> chunks_;
  sql::Outbox<OutboxRows> outbox_;
  Nodes nodes_;
  sql::Records<RecordRows> records_;
};

}  // namespace jobq::mysql
