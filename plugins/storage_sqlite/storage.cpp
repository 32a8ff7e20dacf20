#include "storage.h"

#include "bodies/body_sweep.h"
#include "schema/backup.h"
#include "schema/schema.h"
#include "schema/shrink.h"

namespace jobq::sqlite {
namespace {

constexpr char kFileName[] = "jobq.db";

std::filesystem::path prepared(const std::filesystem::path& directory) {
  const std::filesystem::path file = directory / kFileName;
  try {
    prepareFile(file, schemaSteps().size());
  } catch (const std::filesystem::filesystem_error& error) {
    throw StorageError(std::string("cannot prepare the database file: ") + error.what());
  }
  return file;
}

/// Throws SqliteError if another program holds the write lock.
void checkWriteLock(Connection& connection) {
  connection.execute("BEGIN IMMEDIATE");
  connection.execute("ROLLBACK");
}

/// Prepares connection and file before any other use, and loads the state in memory. Returns the connection.
Connection& open(Connection& connection, const std::filesystem::path& file, const CommittedState& state,
                 RemovalHold& hold, const PluginEnv& env) {
  try {
    connection.setReceiverNames(*env.receivers);
    migrate(connection, file, schemaSteps(), env.log);
    checkWriteLock(connection);
    adviseConversion(connection, file, env.log);
    state.numbers.load(connection);
    state.counters.load(connection, state.running);
    hold.open(connection, file, env.log);
    return connection;
  } catch (const std::filesystem::filesystem_error& error) {
    throw StorageError(std::string("cannot migrate the database file: ") + error.what());
  } catch (const SqliteError& error) {
    throw StorageError("cannot open " + file.string() + ": " + error.what());
  }
}

}  // namespace

SqliteStorage::Options::Options(const PluginConfig& config)
    : readers(static_cast<std::size_t>(
          config.integer("readers", 4, 1, 64, "connections that answer reads at the same time"))),
      logSize(config.size("log", 64UL << 20, 256UL << 10, 4UL << 30,
                          "how large the write-ahead log may grow before it is moved into the database")) {}

SqliteStorage::SqliteStorage(const PluginEnv& env)
    : options_(env.config),
      file_(prepared(env.dataDir)),
      clock_(env.clock),
      hold_(clock_),
      connection_(file_, Connection::Access::readWrite),
      bodies_(open(connection_, file_, {counters_, running_, ended_, numbers_}, hold_, env), file_),
      jobs_(writer_, readers_, {bodies_, inputs_}, {counters_, running_, ended_, numbers_}, clock_),
      writer_(connection_, {counters_, running_, ended_, numbers_}, clock_, env.log, options_.logSize),
      readers_(file_, options_.readers),
      inputs_(bodies_, readers_, env.log),
      leases_(writer_, readers_, {bodies_, inputs_}, {counters_, running_, ended_, numbers_}, clock_, reports_, hold_),
      chunks_({writer_, readers_, numbers_, clock_}),
      outbox_({writer_, readers_, bodies_, counters_, clock_}),
      nodes_(writer_, readers_, clock_),
      records_({writer_, readers_}) {}

// Only a real write gives a reliable answer: the write meets the same lock, the same disk and the same refusal as any
// other. After a full disk, a single page may still fit where no job fits, so the write is a large one then. Two steps
// are needed, because a row deleted in the step of its insertion never reaches the disk.
void SqliteStorage::check() {
  const bool wasFull = writer_.diskFull();
  writer_.write([wasFull](Step& step) {
    step.db.query("UPDATE number SET value = value + 1 WHERE name = 'checked'").run();
    if (wasFull) {
      step.db.query("INSERT OR REPLACE INTO job_progress (num, progress) VALUES (-1, zeroblob(262144))").run();
    }
    return true;
  });
  if (!wasFull) return;
  writer_.write([](Step& step) {
    step.db.query("DELETE FROM job_progress WHERE num = -1").run();
    return true;
  });
  writer_.diskFull() = false;
}

BackupResult SqliteStorage::backupTo(const std::filesystem::path& file, std::stop_token stop) {
  const Shrinker::Pause noCuts(leases_.shrinker());
  const BodySweep::Pause noDeletions(leases_.bodySweep());
  return writeBackup(file_, bodies_, file, stop);
}

}  // namespace jobq::sqlite
