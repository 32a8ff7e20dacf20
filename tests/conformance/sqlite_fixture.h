// Fixture of the SQLite storage's tests: a directory, the plugin as loaded by the server, and helpers for jobs.
#pragma once

#include <gtest/gtest.h>

#include <cstddef>
#include <cstdint>
#include <filesystem>
#include <fstream>
#include <iterator>
#include <memory>
#include <optional>
#include <string>
#include <thread>
#include <utility>
#include <variant>
#include <vector>

#include "jobq/error.h"
#include "jobq/holder.h"
#include "jobq/job.h"
#include "jobq/plugin.h"
#include "jobq/queue_policy.h"
#include "jobq/storage.h"
#include "jobq/time.h"
#include "sqlite_vfs.h"
#include "testkit/loaded_plugin.h"
#include "testkit/manual_clock.h"
#include "testkit/outbox_access.h"
#include "testkit/recording_log.h"
#include "testkit/temporary_folder.h"
#include "testkit/thrown_text.h"
#include "testkit/wait_for.h"

namespace jobq::testkit {

inline std::string contentOf(const std::filesystem::path& file) {
  std::ifstream in(file, std::ios::binary);
  return {std::istreambuf_iterator<char>(in), {}};
}

class OneLine final : public QueuePolicy {
 public:
  std::string group(const JobSpec&) const override { return {}; }
  std::int64_t rank(const JobSpec&, Instant, const GroupState&) const override { return 0; }
};

/// Runs statements on a database like another program.
inline void runScript(const std::filesystem::path& file, const char* sql) {
  sqlite3* database = nullptr;
  ASSERT_EQ(sqlite3_open(file.c_str(), &database), SQLITE_OK);
  EXPECT_EQ(sqlite3_exec(database, sql, nullptr, nullptr, nullptr), SQLITE_OK) << sqlite3_errmsg(database);
  sqlite3_close(database);
}

/// Returns the first integer of the result, or -1 without a row. Asks like another program, because query_plans.cpp
/// judges only the plans of the storage's statements.
inline std::int64_t ask(const std::filesystem::path& file, const char* sql) {
  sqlite3* database = nullptr;
  sqlite3_stmt* statement = nullptr;
  EXPECT_EQ(sqlite3_open_v2(file.c_str(), &database, SQLITE_OPEN_READONLY, nullptr), SQLITE_OK);
  EXPECT_EQ(sqlite3_prepare_v2(database, sql, -1, &statement, nullptr), SQLITE_OK) << sqlite3_errmsg(database);
  const std::int64_t answer = sqlite3_step(statement) == SQLITE_ROW ? sqlite3_column_int64(statement, 0) : -1;
  sqlite3_finalize(statement);
  sqlite3_close(database);
  return answer;
}

/// Undoes the last two steps of the schema.
#define JOBQ_BACK_TO_VERSION_11                                                                                    \
  "ALTER TABLE job DROP COLUMN retention_failed; "                                                                 \
  "CREATE TABLE former (num INTEGER PRIMARY KEY, error TEXT NOT NULL, output BLOB NOT NULL, output_file INTEGER) " \
  "STRICT; INSERT INTO former SELECT num, error, output, output_file FROM job JOIN job_output USING "              \
  "(output_num); INSERT INTO former SELECT num, brief_error, brief_output, NULL FROM job WHERE brief_input IS "    \
  "NOT NULL; INSERT INTO job_input SELECT num, '', brief_key, x'', brief_input, NULL FROM job WHERE brief_input "  \
  "IS NOT NULL; DROP TABLE job_output; ALTER TABLE former RENAME TO job_output; CREATE TRIGGER job_output_goes "   \
  "AFTER DELETE ON job_output WHEN old.output_file IS NOT NULL BEGIN UPDATE body_file SET owners = owners - 1 "    \
  "WHERE id = old.output_file; END; ALTER TABLE job DROP COLUMN output_num; ALTER TABLE job DROP COLUMN "          \
  "brief_key; ALTER TABLE job DROP COLUMN brief_input; ALTER TABLE job DROP COLUMN brief_error; ALTER TABLE job "  \
  "DROP COLUMN brief_output; "
inline constexpr char kBackToVersion11[] = JOBQ_BACK_TO_VERSION_11 "PRAGMA user_version = 11;";

/// Undoes the step before, behind the text above.
#define JOBQ_BACK_TO_VERSION_10                                                                           \
  "CREATE TABLE former (num INTEGER PRIMARY KEY, id TEXT NOT NULL UNIQUE, endpoint TEXT NOT NULL, state " \
  "INTEGER NOT NULL, low INTEGER NOT NULL, rank INTEGER NOT NULL, arrival INTEGER NOT NULL, attempt "     \
  "INTEGER NOT NULL, losses INTEGER NOT NULL, retries INTEGER NOT NULL, max_attempts INTEGER NOT NULL, "  \
  "priority INTEGER NOT NULL, execution_timeout INTEGER NOT NULL, ttl INTEGER NOT NULL, retention "       \
  "INTEGER NOT NULL, submitted_at INTEGER NOT NULL, queued_at INTEGER NOT NULL, started_at INTEGER, "     \
  "finished_at INTEGER, expires_at INTEGER NOT NULL, expiry_fixed INTEGER NOT NULL, owes INTEGER NOT "    \
  "NULL, deadline INTEGER, holder INTEGER, worker TEXT NOT NULL, chunks INTEGER NOT NULL, taken INTEGER " \
  "NOT NULL, log_lines INTEGER NOT NULL, claim INTEGER NOT NULL DEFAULT 0, taken_by INTEGER NOT NULL "    \
  "DEFAULT 0, taken_from INTEGER NOT NULL DEFAULT 0) STRICT; INSERT INTO former SELECT num, id, "         \
  "endpoint, state, low, rank, arrival, attempt, losses, retries, max_attempts, priority, "               \
  "execution_timeout, ttl, retention, submitted_at, queued_at, started_at, finished_at, expires_at, "     \
  "expiry_fixed, owes, deadline, holder, worker, chunks, taken, log_lines, claim, taken_by, taken_from "  \
  "FROM job; DROP TABLE job; ALTER TABLE former RENAME TO job; CREATE INDEX job_waiting ON job "          \
  "(endpoint, low, rank, arrival, expires_at) WHERE state = 0; CREATE INDEX job_late ON job (arrival) "   \
  "WHERE arrival > num; CREATE INDEX job_lost ON job (holder) WHERE holder = 0; CREATE INDEX "            \
  "job_of_endpoint ON job (endpoint); CREATE INDEX job_expiry ON job (expires_at); CREATE INDEX "         \
  "job_ended ON job (endpoint, state) WHERE state > 1; INSERT OR IGNORE INTO endpoint_count SELECT "      \
  "DISTINCT endpoint, 0, 0, 0 FROM job; UPDATE endpoint_count SET completed = completed + (SELECT "       \
  "count(*) FROM job WHERE state = 2 AND job.endpoint = endpoint_count.endpoint), failed = failed + "     \
  "(SELECT count(*) FROM job WHERE state IN (3, 5) AND job.endpoint = endpoint_count.endpoint); "
inline constexpr char kBackToVersion10[] = JOBQ_BACK_TO_VERSION_11 JOBQ_BACK_TO_VERSION_10 "PRAGMA user_version = 10;";

/// Undoes every step of the schema but the first.
inline constexpr char kBackToTheFirstVersion[] = JOBQ_BACK_TO_VERSION_11 JOBQ_BACK_TO_VERSION_10
    "CREATE INDEX job_deadline ON job (deadline) WHERE deadline IS NOT NULL; DROP TRIGGER job_input_goes; DROP TRIGGER "
    "job_output_goes; DROP TRIGGER delivery_body_comes; "
    "DROP TRIGGER delivery_body_goes; DROP TABLE body_file; ALTER TABLE job_input DROP COLUMN input_file; "
    "ALTER TABLE job_output DROP COLUMN output_file; ALTER TABLE delivery_body DROP COLUMN output_file; "
    "ALTER TABLE delivery_body DROP COLUMN input_file; "
    "DROP INDEX job_ended; CREATE INDEX job_begun ON job (endpoint, state) WHERE state > 0; "
    "DELETE FROM number WHERE name IN ('epoch', 'life', 'body'); ALTER TABLE node DROP COLUMN epoch; DROP INDEX "
    "job_lost; "
    "ALTER TABLE job RENAME COLUMN holder TO lease_end; "
    "ALTER TABLE job DROP COLUMN claim; ALTER TABLE job DROP COLUMN taken_by; "
    "ALTER TABLE job DROP COLUMN taken_from; ALTER TABLE record DROP COLUMN change; "
    "DROP TRIGGER delivery_settles; DROP TRIGGER delivery_is_owed_again; DROP TRIGGER delivery_goes; "
    "DROP TABLE delivery_count; DROP INDEX delivery_owed; "
    "ALTER TABLE delivery DROP COLUMN owed_at; DROP INDEX record_removed_version; ALTER TABLE delivery DROP COLUMN "
    "claims; "
    "DROP INDEX delivery_due; CREATE INDEX delivery_due ON delivery (due_at) WHERE state = 0; "
    "ALTER TABLE delivery DROP COLUMN host; ALTER TABLE delivery DROP COLUMN tries; "
    "CREATE INDEX job_lease ON job (lease_end) WHERE lease_end IS NOT NULL; "
    "PRAGMA user_version = 1;";

class SqliteTest : public testing::Test {
 protected:
  void SetUp() override {
    logFaults().reset();
    bodyFaults().reset();
  }
  void TearDown() override {
    logFaults().reset();
    bodyFaults().reset();
    storage_.reset();
  }

  std::unique_ptr<Storage> openAt(const std::filesystem::path& dir) {
    const MapConfig config;
    return loadPlugin<Storage>(JOBQ_PLUGIN_DIR "/libjobq_storage_sqlite.so", "sqlite",
                               PluginEnv{config, clock_, log_, dir, false});
  }
  /// Opens the storage and begins a life, as a server does.
  void open() {
    storage_ = openAt(dir_);
    holder_ = storage_->nodes().join("node");
  }
  /// Opens the storage. Returns the message of the refusal, or an empty string after success.
  std::string refusal() {
    return thrownText<StorageError>([&] { return open(); });
  }
  std::filesystem::path file() const { return dir_ / "jobq.db"; }

  static JobSpec spec(const JobId& id) {
    JobSpec job;
    job.id = id;
    job.endpoint = "ep";
    job.input = "{\"n\":1.0}";
    return job;
  }
  void submit(JobSpec job) {
    ASSERT_TRUE(std::holds_alternative<Inserted>(storage_->jobs().insert(std::move(job), policy_)));
  }
  void submit(const JobId& id) { submit(spec(id)); }
  bool submitted(const JobId& id) {
    try {
      submit(id);
      return true;
    } catch (const StorageError&) {
      return false;
    }
  }
  std::vector<ClaimedJob> claim(std::size_t max) {
    return storage_->leases().claim(std::vector{ClaimWant{"ep", std::vector<WorkerId>(max, "w")}}, holder_, 1).jobs;
  }
  std::optional<Job> find(const JobId& id) { return storage_->jobs().find({"ep", id}); }

  ManualClock clock_;
  RecordingLog log_;
  OneLine policy_;
  const testkit::TemporaryFolder dir_;
  std::unique_ptr<Storage> storage_;
  Holder holder_;
};

}  // namespace jobq::testkit
