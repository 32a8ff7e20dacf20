#include "sqlite_work.h"

#include <sqlite3.h>

namespace jobq::testkit {
namespace {

int addSteps(unsigned, void* work, void* statement, void*) {
  static_cast<SqliteWork*>(work)->steps +=
      sqlite3_stmt_status(static_cast<sqlite3_stmt*>(statement), SQLITE_STMTSTATUS_VM_STEP, 1);
  return 0;
}

/// Called by SQLite for each opened connection.
int watchConnection(sqlite3* database, const char**, const struct sqlite3_api_routines*) {
  return sqlite3_trace_v2(database, SQLITE_TRACE_PROFILE, addSteps, &sqliteWork());
}

}  // namespace

SqliteWork& sqliteWork() {
  static SqliteWork work;
  static const int kInstalled = sqlite3_auto_extension(reinterpret_cast<void (*)()>(watchConnection));
  (void)kInstalled;
  return work;
}

}  // namespace jobq::testkit
