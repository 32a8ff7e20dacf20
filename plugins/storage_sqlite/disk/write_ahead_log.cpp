#include "disk/write_ahead_log.h"

#include <algorithm>
#include <string>

#include "disk/durability.h"
#include "statement.h"

namespace jobq::sqlite {
namespace {

constexpr std::uint64_t kPageBytes = 4'096;

/// Pages of the log at which a checkpoint is due after a large group: 16 MB. The pages of a large body are written
/// once, so a longer log would save nothing and would only make the checkpoint longer.
constexpr int kLargeLogPages = 4'096;

}  // namespace

WriteAheadLog::WriteAheadLog(Connection& connection, std::uint64_t size)
    : connection_(connection),
      mostPages_(static_cast<int>(size / kPageBytes)),
      dueAt_(mostPages_),
      quietFrom_(mostPages_ / kQuietPart) {
  sqlite3_wal_hook(connection_.handle(), noteCommit, this);
}

WriteAheadLog::~WriteAheadLog() { sqlite3_wal_hook(connection_.handle(), nullptr, nullptr); }

int WriteAheadLog::noteCommit(void* log, sqlite3*, const char*, int pages) {
  auto& self = *static_cast<WriteAheadLog*>(log);
  self.wroteLog_ = true;
  self.pages_ = pages;
  return SQLITE_OK;
}

void WriteAheadLog::chooseSync(bool syncs) {
  if (syncs_ == syncs) return;
  setSync(connection_, syncs);
  syncs_ = syncs;
}

// SQLite syncs nothing at the end of a transaction without a change, so such a transaction is followed by another one
// that changes a row. (An UPDATE to the same value is no change for SQLite.)
void WriteAheadLog::commit() {
  wroteLog_ = false;
  connection_.query("COMMIT").run();
  if (syncs_ && hasUnsynced_ && !wroteLog_) {
    try {
      connection_.query("UPDATE number SET value = value + 1 WHERE name = 'checked'").run();
    } catch (const SqliteError& error) {
      if (error.kind() != SQLITE_FULL || !sync()) throw;
    }
  }
  hasUnsynced_ = !syncs_ && (hasUnsynced_ || wroteLog_);
}

bool WriteAheadLog::sync() {
  sqlite3_file* log = nullptr;
  sqlite3_file_control(connection_.handle(), "main", SQLITE_FCNTL_JOURNAL_POINTER, &log);
  if (log == nullptr || log->pMethods == nullptr) return false;
  const int result = syncLog(log);
  if (result != SQLITE_OK) {
    throw SqliteError(result, std::string("the write-ahead log cannot be synced: ") + sqlite3_errstr(result));
  }
  hasUnsynced_ = false;
  return true;
}

bool WriteAheadLog::isDue() {
  if (pages_ >= dueAt_) return true;
  if (pages_ < mostPages_) dueAt_ = mostPages_;
  return false;
}

void WriteAheadLog::noteLargeGroup() noexcept {
  if (!keptBack_) dueAt_ = std::min({dueAt_, mostPages_, kLargeLogPages});
}

// PASSIVE waits for no reader. Pages kept back by a reader's snapshot are tried again once the log has grown by
// a further mostPages_, or by a part of it when no write waits.
int WriteAheadLog::checkpoint() {
  int inLog = 0;
  int moved = 0;
  const int result =
      sqlite3_wal_checkpoint_v2(connection_.handle(), nullptr, SQLITE_CHECKPOINT_PASSIVE, &inLog, &moved);
  keptBack_ = result != SQLITE_OK || inLog != moved;
  dueAt_ = !keptBack_ ? mostPages_ : pages_ + mostPages_;
  quietFrom_ = (keptBack_ ? pages_ : 0) + mostPages_ / kQuietPart;
  pages_ = 0;
  return result;
}

}  // namespace jobq::sqlite
