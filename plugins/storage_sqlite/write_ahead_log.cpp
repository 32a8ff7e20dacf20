#include "write_ahead_log.h"

#include "durability.h"

namespace jobq::sqlite {

WriteAheadLog::WriteAheadLog(Connection& connection) : connection_(connection) {
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
    connection_.query("UPDATE number SET value = value + 1 WHERE name = 'checked'").run();
  }
  hasUnsynced_ = !syncs_ && (hasUnsynced_ || wroteLog_);
}

}  // namespace jobq::sqlite
