#include "writes/writer.h"

#include <pthread.h>

#include <algorithm>
#include <optional>

namespace jobq::sqlite {
namespace {

constexpr std::chrono::seconds kSyncRetry{1};
constexpr std::chrono::seconds kListingRetry{10};

/// Returns SQLite's kind of the error, SQLITE_OK for other errors. SQLite reports lack of memory as an I/O error, which
/// says nothing about the disk.
int kindOf(const std::exception& error) {
  const auto* failure = dynamic_cast<const SqliteError*>(&error);
  return failure == nullptr || failure->code() == SQLITE_IOERR_NOMEM ? SQLITE_OK : failure->kind();
}

/// Returns true if no later write can be trusted. A damaged page may hold the head of a queue: jobs would be
/// accepted and never claimed.
bool isFatal(const std::exception& error) {
  const int kind = kindOf(error);
  return kind == SQLITE_IOERR || kind == SQLITE_CORRUPT || kind == SQLITE_NOTADB;
}

bool changesNothing(const PendingWrite* group) {
  while (group != nullptr && group->changesNothing) group = group->next;
  return group == nullptr;
}

/// Message for an exception other than SqliteError (of a queue policy) that ended the transaction.
constexpr char kTransactionLost[] = "the database rolled back the transaction";

// Syncs the jobs of earlier groups without a transaction: a sync needs neither space nor a lock, so these jobs do not
// wait for the end of a full disk. Returns true if all of them are on the disk.
bool syncEarlierGroups(WriteAheadLog& wal, UnsyncedJobs& unsynced) {
  if (!unsynced.since()) return true;
  if (!wal.sync()) return false;
  unsynced.clear();
  return true;
}

}  // namespace

Writer::Writer(Connection& connection, const CommittedState& state, Clock& clock, Log& log, std::uint64_t logSize)
    : connection_(connection),
      state_(state),
      clock_(clock),
      log_(log),
      wal_(connection, logSize),
      turns_(wal_, unsynced_) {
  connection_.execute("PRAGMA journal_size_limit=" + std::to_string(logSize));
  // A page that does not fit into the page cache would go to the log before its commit. If a savepoint writes such a
  // page twice and is rolled back, SQLite 3.40 breaks the checksums of the log: readers see the commit, and the next
  // start drops it with all later ones. No write of today is that large; the group stays in memory until its commit
  // anyway.
  connection_.execute("PRAGMA cache_spill=0");
  thread_ = std::thread([this] { run(); });
  pthread_setname_np(thread_.native_handle(), "sqlite-writer");
}

Writer::~Writer() {
  turns_.stop();
  thread_.join();
}

void makeDurable(Writer& writer, const JobId& job) {
  if (!writer.unsynced().contains(job)) return;
  SyncAlone sync;
  writer.submit(sync);
}

void Writer::submit(PendingWrite& write) {
  if (const auto reason = refusal()) throw StorageError(*reason);
  const bool isAwaited = write.isAwaited;  // read before: a write of its own may be gone behind enter()
  if (turns_.enter(write)) {
    turns_.leave(commit(&write));
  } else if (isAwaited) {
    write.awaitDone();
  }
  if (!isAwaited) return;
  if (write.error) std::rethrow_exception(std::exchange(write.error, nullptr));
  if (write.lostWith) throw StorageError(*write.lostWith);
}

void Writer::run() {
  for (;;) {
    const WriteTurns::Turn turn = turns_.next();
    if (turn.task == WriteTurns::Task::end) return;
    turns_.leave(turn, perform(turn));
    PendingWrite::markAllDone(turn.group);
  }
}

// Returns true if a commit has succeeded.
bool Writer::perform(const WriteTurns::Turn& turn) {
  if (turn.task == WriteTurns::Task::sync) return syncByItself();
  if (turn.task == WriteTurns::Task::checkpoint) {
    checkpoint();
    return false;
  }
  if (!commit(turn.group)) return false;
  if (turn.isLarge) wal_.noteLargeGroup();
  return true;
}

bool Writer::syncByItself() {
  SyncAlone sync;
  const bool isCommitted = commit(&sync);
  if (!isCommitted) unsynced_.postpone(std::chrono::steady_clock::now() + kSyncRetry);
  return isCommitted;
}

std::optional<std::string> Writer::refusal() {
  const Lock lock(mutex_);
  return refusal_;
}

bool Writer::commit(PendingWrite* group) noexcept {
  std::optional<std::string> lostWith;
  GroupChanges changes{{}, RunningChanges(state_.running), {}, ListingChange(state_.numbers)};
  try {
    applyWithListing(group, changes);
  } catch (const std::exception& error) {
    lostWith = giveUp(error);
  }
  bool areEarlierSynced = false;
  try {
    areEarlierSynced = lostWith && !refusal() && syncEarlierGroups(wal_, unsynced_);
  } catch (const std::exception& error) {
    (void)giveUp(error);
  }
  if (!lostWith) {  // the commit cannot be undone, so the following calls need no memory
    state_.counters.apply(changes.counters);
    state_.running.apply(changes.running);
    state_.ended.apply(changes.ended);
    changes.listing.apply();
  }
  for (PendingWrite* write = group; write != nullptr; write = write->next) {
    write->lostWith = areEarlierSynced && write->changesNothing ? std::nullopt : lostWith;
  }
  return !lostWith;
}

void Writer::applyWithListing(PendingWrite* group, GroupChanges& changes) {
  const bool lists = std::chrono::steady_clock::now() >= listsFrom_;
  try {
    return applyGroup(group, changes, lists);
  } catch (const SqliteError& error) {
    if (error.kind() != SQLITE_FULL || !changes.listing.hasListed()) throw;
  }
  listsFrom_ = std::chrono::steady_clock::now() + kListingRetry;
  if (connection_.inTransaction()) connection_.query("ROLLBACK").run();
  changes.clear();
  for (PendingWrite* write = group; write != nullptr; write = write->next) write->error = nullptr;
  applyGroup(group, changes, false);
}

void Writer::applyGroup(PendingWrite* group, GroupChanges& changes, bool lists) {
  if (const auto reason = refusal()) throw StorageError(*reason);
  if (changesNothing(group) && syncEarlierGroups(wal_, unsynced_)) return;
  const auto unsyncedSince = unsynced_.since();
  bool isAwaited = unsyncedSince && *unsyncedSince + WriteTurns::kUnsyncedLife <= std::chrono::steady_clock::now();
  for (const PendingWrite* write = group; write != nullptr; write = write->next)
    isAwaited = isAwaited || write->needsSync;
  wal_.chooseSync(isAwaited);
  connection_.query("BEGIN IMMEDIATE").run();
  if (!applyTogether(group, changes)) {
    changes.clear();
    connection_.query("ROLLBACK").run();
    connection_.query("BEGIN IMMEDIATE").run();
    for (PendingWrite* write = group; write != nullptr; write = write->next) applyAlone(*write, changes);
  }
  if (lists) changes.listing.listMany(connection_);
  changes.counters.persist(connection_);
  state_.counters.prepare(changes.counters);
  changes.listing.publishIds();
  state_.ended.forget(changes.ended);
  wal_.commit();
  if (isAwaited) unsynced_.clear();
}

bool Writer::applyTogether(PendingWrite* group, GroupChanges& changes) {
  try {
    for (PendingWrite* write = group; write != nullptr; write = write->next) {
      Step step{connection_,   clock_.now(),    changes.counters, changes.running,
                changes.ended, changes.listing, changes.rowsLeft};
      write->apply(step);
    }
    return true;
  } catch (const SqliteError& error) {
    if (!connection_.inTransaction() || isFatal(error)) throw;
  } catch (...) {
    if (!connection_.inTransaction()) throw StorageError(kTransactionLost);
  }
  return false;
}

void Writer::applyAlone(PendingWrite& write, GroupChanges& changes) {
  // The write sees the changes of the group's earlier writes, as applyTogether() would show them.
  GroupChanges before = changes;
  Step step{connection_,   clock_.now(),    changes.counters, changes.running,
            changes.ended, changes.listing, changes.rowsLeft};
  connection_.query("SAVEPOINT one").run();
  try {
    write.apply(step);
  } catch (const SqliteError& error) {
    // SQLite may have rolled the whole group back, and no commit can be trusted after an I/O error.
    if (!connection_.inTransaction() || isFatal(error)) throw;
    if (error.kind() == SQLITE_FULL) full_ = true;
    write.error = std::current_exception();
  } catch (...) {
    if (!connection_.inTransaction()) throw StorageError(kTransactionLost);
    write.error = std::current_exception();
  }
  if (write.error) {
    connection_.query("ROLLBACK TO one").run();
    changes = std::move(before);
  }
  connection_.query("RELEASE one").run();
}

std::string Writer::giveUp(const std::exception& error) {
  std::string reason = error.what();
  if (kindOf(error) == SQLITE_FULL) full_ = true;
  try {
    if (connection_.inTransaction()) connection_.query("ROLLBACK").run();
  } catch (const StorageError& second) {
    // A transaction that cannot be ended would swallow every later group.
    refuseFromNowOn(second.what());
  }
  if (isFatal(error)) refuseFromNowOn(reason);
  Lock lock(mutex_);
  return refusal_.value_or(reason);
}

void Writer::refuseFromNowOn(const std::string& reason) {
  {
    Lock lock(mutex_);
    if (refusal_) return;
    refusal_ = "the storage is read-only until the server is restarted: " + reason;
  }
  log_.write(LogLevel::error, "storage.failed",
             reason + "; no write is accepted until the server is restarted. Check the disk of data.dir first.");
}

void Writer::checkpoint() {
  if ((wal_.checkpoint() & 0xff) == SQLITE_IOERR) refuseFromNowOn(sqlite3_errmsg(connection_.handle()));
}

}  // namespace jobq::sqlite
