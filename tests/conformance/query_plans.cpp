// Asks SQLite for the plan of every statement prepared by the storage in the test program. A walk over a whole table,
// or a sort in a temporary table, fails the test: such a statement is fast in every test and stops the server with a
// million jobs. A statement without a plan fails the test too.
//
// The dynamic linker gives the sqlite3_prepare_v3 below to the storage's library, because the program exports the
// function.
#include "query_plans.h"

#include <dlfcn.h>
#include <gtest/gtest.h>
#include <sqlite3.h>

#include <algorithm>
#include <array>
#include <atomic>
#include <string>
#include <string_view>
#include <utility>

#include "jobq/mutex.h"

namespace {

std::atomic<int> judged = 0;

/// The statements of extractJudgedStatements().
struct Statements {
  jobq::Mutex mutex;
  std::set<std::string> texts JOBQ_GUARDED_BY(mutex);
};

/// Returns the only object, which is never destroyed: threads of a storage may outlive main().
Statements& statements() {
  static auto& only = *new Statements;
  return only;
}

/// The beginnings of statements with permission to read or sort all their rows; a comment gives the reason for each
/// group.
constexpr std::array<std::string_view, 14> kAllowed{
    // Statements of a start: the counters of all endpoints.
    "SELECT endpoint, state, count(*) FROM job INDEXED BY job_ended",
    "SELECT count(*) FROM job INDEXED BY job_expiry",
    "SELECT num, endpoint, deadline FROM job NOT INDEXED",
    "SELECT endpoint, low, count(*) FROM job INDEXED BY job_waiting",
    "SELECT endpoint, completed, failed, retried FROM endpoint_count",
    "SELECT endpoint, count(*) FROM delivery INDEXED BY delivery_owed",
    "SELECT count(*) FROM sqlite_schema",
    // Statements of a backup, which reads the whole storage.
    "SELECT sum(size * owners) FROM body_file",
    "DELETE FROM body_file",
    // A statement that groups the rows of a subquery with a LIMIT.
    "SELECT state, low, count(*) FROM (SELECT endpoint, state, low FROM job INDEXED BY job_expiry",
    // The walk from the end of the table to the first listed job, over the jobs that are not listed.
    "SELECT ifnull((SELECT num FROM job NOT INDEXED WHERE listed = 1",
    // Statements on a table with one row for each node.
    "SELECT name, epoch, last_beat FROM node",
    "DELETE FROM node",
    // A list of an administrator, from the newest delivery on until its limit.
    "SELECT num, id, endpoint, job, state, due_at, url, job_state, attempt, losses, retries, low, submitted_at, "
    "queued_at, started_at, finished_at, expires_at, worker, error, host, tries, claims FROM delivery NOT INDEXED",
};

bool isAllowed(std::string_view sql) {
  return std::any_of(kAllowed.begin(), kAllowed.end(), [&](auto begin) { return sql.starts_with(begin); });
}

bool isBad(std::string_view step) {
  if (step.find("TEMP B-TREE") != std::string_view::npos) return true;
  // The rows of a subquery appear as a separate step.
  return step.starts_with("SCAN ") && !step.starts_with("SCAN (") && step != "SCAN CONSTANT ROW";
}

std::string textAt(sqlite3_stmt* statement, int column) {
  const auto* text = sqlite3_column_text(statement, column);
  return text == nullptr ? std::string() : std::string(reinterpret_cast<const char*>(text));
}

void judgePlan(sqlite3* database, const std::string& sql) {
  sqlite3_stmt* plan = nullptr;
  const std::string question = "EXPLAIN QUERY PLAN " + sql;
  if (sqlite3_prepare_v2(database, question.c_str(), -1, &plan, nullptr) != SQLITE_OK) {
    ADD_FAILURE() << "no plan (" << sqlite3_errmsg(database) << ") for " << sql;
    return;
  }
  int result = sqlite3_step(plan);
  for (; result == SQLITE_ROW; result = sqlite3_step(plan)) {
    const std::string step = textAt(plan, 3);
    if (isBad(step) && !isAllowed(sql)) ADD_FAILURE() << "\"" << step << "\" is in the plan of " << sql;
    ++judged;
  }
  if (result != SQLITE_DONE) ADD_FAILURE() << "the plan is cut off (" << sqlite3_errstr(result) << ") for " << sql;
  sqlite3_finalize(plan);
  Statements& all = statements();
  const jobq::Lock lock(all.mutex);
  all.texts.insert(sql);
}

}  // namespace

namespace jobq::test {

int judgedSteps() { return judged; }

std::set<std::string> extractJudgedStatements() {
  Statements& all = statements();
  const Lock lock(all.mutex);
  return std::exchange(all.texts, {});
}

}  // namespace jobq::test

extern "C" __attribute__((visibility("default"))) int sqlite3_prepare_v3(sqlite3* database, const char* sql, int length,
                                                                         unsigned flags, sqlite3_stmt** statement,
                                                                         const char** tail) {
  static const auto real = reinterpret_cast<decltype(&sqlite3_prepare_v3)>(dlsym(RTLD_NEXT, "sqlite3_prepare_v3"));
  const int result = real(database, sql, length, flags, statement, tail);
  if (result == SQLITE_OK && length < 0) judgePlan(database, sql);
  return result;
}
