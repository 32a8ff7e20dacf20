// The tables. The row of a job is small and holds the changing values; bodies are in tables of their own under the
// number of the job, so a change of state does not rewrite a 20 MB input. The queue is a narrow table in the order of
// the claims, and the running jobs are another: a claim touches the first rows of the queue, however many jobs there
// are. Times are milliseconds since the epoch, states the numbers of JobState.
//
// Texts are VARBINARY and LONGBLOB: two ids are equal if all their bytes are equal, spaces at the end included, which
// no collation common to MariaDB and MySQL promises. Ids of calls are unsigned in the program and signed here, bit by
// bit.
#include "schema/schema.h"

namespace jobq::mysql {
namespace {

#define JOBQ_TABLE ") ENGINE=InnoDB ROW_FORMAT=DYNAMIC DEFAULT CHARSET=utf8mb4 COLLATE=utf8mb4_bin"

constexpr const char* kFirst[] = {
    "CREATE TABLE IF NOT EXISTS job ("
    "num               BIGINT         NOT NULL PRIMARY KEY,"  // grows with every submission (job_numbers.h)
    "id                VARBINARY(255) NOT NULL,"
    "endpoint          VARBINARY(255) NOT NULL DEFAULT '',"
    "state             TINYINT        NOT NULL DEFAULT 0,"
    "low               TINYINT        NOT NULL DEFAULT 0,"
    "queue_rank        BIGINT         NOT NULL DEFAULT 0,"
    "arrival           BIGINT         NOT NULL DEFAULT 0,"  // a number after a retry; before, 0 for num
    "attempt           BIGINT         NOT NULL DEFAULT 0,"
    "losses            BIGINT         NOT NULL DEFAULT 0,"
    "retries           BIGINT         NOT NULL DEFAULT 0,"
    "max_attempts      BIGINT         NOT NULL DEFAULT 0,"
    "priority          BIGINT         NOT NULL DEFAULT 0,"
    "execution_timeout BIGINT         NOT NULL DEFAULT 0,"
    "ttl               BIGINT         NOT NULL DEFAULT 0,"
    "retention         BIGINT         NOT NULL DEFAULT 0,"
    "submitted_at      BIGINT         NOT NULL DEFAULT 0,"
    "queued_at         BIGINT         NOT NULL DEFAULT 0,"
    "started_at        BIGINT,"
    "finished_at       BIGINT,"
    "expires_at        BIGINT         NOT NULL DEFAULT 0,"
    "expiry_fixed      TINYINT        NOT NULL DEFAULT 0,"  // by setTtl
    "owes              TINYINT        NOT NULL DEFAULT 0,"  // has a webhook
    "worker            VARBINARY(255) NOT NULL DEFAULT '',"
    "claim             BIGINT         NOT NULL DEFAULT 0,"  // the call that started the present attempt
    "chunks            BIGINT         NOT NULL DEFAULT 0,"  // how many the attempt has
    "taken             BIGINT         NOT NULL DEFAULT 0,"  // how many of them were handed out
    "taken_by          BIGINT         NOT NULL DEFAULT 0,"  // the last call that consumed chunks,
    "taken_from        BIGINT         NOT NULL DEFAULT 0,"  // and the first number of its page
    "has_progress      TINYINT        NOT NULL DEFAULT 0,"
    "log_lines         BIGINT         NOT NULL DEFAULT 0,"  // how many there ever were
    "UNIQUE KEY job_id (id), KEY job_of_endpoint (endpoint), KEY job_of_state (endpoint, state), "
    "KEY job_expiry (expires_at)" JOBQ_TABLE,

    "CREATE TABLE IF NOT EXISTS ready_job ("
    "endpoint VARBINARY(255) NOT NULL, low TINYINT NOT NULL, queue_rank BIGINT NOT NULL, arrival BIGINT NOT NULL, "
    "num BIGINT NOT NULL, expires_at BIGINT NOT NULL, queued_at BIGINT NOT NULL, "
    "PRIMARY KEY (endpoint, low, queue_rank, arrival)" JOBQ_TABLE,

    "CREATE TABLE IF NOT EXISTS running_job ("
    "num BIGINT NOT NULL PRIMARY KEY, epoch BIGINT NOT NULL, deadline BIGINT NOT NULL, "
    "KEY running_of_life (epoch), KEY running_until (deadline)" JOBQ_TABLE,

    "CREATE TABLE IF NOT EXISTS job_input ("
    "num BIGINT NOT NULL PRIMARY KEY, webhook LONGBLOB NOT NULL, api_key VARBINARY(255) NOT NULL, "
    "s3 LONGBLOB NOT NULL, input LONGBLOB NOT NULL" JOBQ_TABLE,
    "CREATE TABLE IF NOT EXISTS job_output ("
    "num BIGINT NOT NULL PRIMARY KEY, error LONGBLOB NOT NULL, output LONGBLOB NOT NULL" JOBQ_TABLE,
    "CREATE TABLE IF NOT EXISTS job_progress ("
    "num BIGINT NOT NULL PRIMARY KEY, progress LONGBLOB NOT NULL" JOBQ_TABLE,
    "CREATE TABLE IF NOT EXISTS job_chunk ("
    "num BIGINT NOT NULL, seq BIGINT NOT NULL, partial_output TINYINT NOT NULL, size BIGINT NOT NULL, "
    "metrics LONGBLOB NOT NULL, output LONGBLOB NOT NULL, PRIMARY KEY (num, seq)" JOBQ_TABLE,
    "CREATE TABLE IF NOT EXISTS job_log ("
    "num BIGINT NOT NULL, seq BIGINT NOT NULL, written_at BIGINT NOT NULL, log_level TINYINT NOT NULL, "
    "line LONGBLOB NOT NULL, PRIMARY KEY (num, seq)" JOBQ_TABLE,

    "CREATE TABLE IF NOT EXISTS idempotency ("
    "endpoint VARBINARY(255) NOT NULL, api_key VARBINARY(255) NOT NULL, idempotency_key VARBINARY(1024) NOT NULL, "
    "body_hash VARBINARY(1024) NOT NULL, job VARBINARY(255) NOT NULL, expires_at BIGINT NOT NULL, "
    "PRIMARY KEY (endpoint, api_key, idempotency_key), KEY idempotency_expiry (expires_at)" JOBQ_TABLE,
    "CREATE TABLE IF NOT EXISTS queue_group ("
    "endpoint VARBINARY(255) NOT NULL, name VARBINARY(1024) NOT NULL, last_rank BIGINT NULL, "
    "PRIMARY KEY (endpoint, name)" JOBQ_TABLE,

    "CREATE TABLE IF NOT EXISTS endpoint_count ("
    "endpoint VARBINARY(255) NOT NULL, slot BIGINT NOT NULL, in_queue BIGINT NOT NULL, in_progress BIGINT NOT NULL, "
    "is_completed BIGINT NOT NULL, is_failed BIGINT NOT NULL, is_cancelled BIGINT NOT NULL, "
    "is_timed_out BIGINT NOT NULL, in_queue_low BIGINT NOT NULL, completed BIGINT NOT NULL, failed BIGINT NOT NULL, "
    "retried BIGINT NOT NULL, owed BIGINT NOT NULL, settled BIGINT NOT NULL, PRIMARY KEY (endpoint, slot)" JOBQ_TABLE,

    "CREATE TABLE IF NOT EXISTS delivery ("
    "num BIGINT NOT NULL AUTO_INCREMENT PRIMARY KEY, id VARBINARY(320) NOT NULL, endpoint VARBINARY(255) NOT NULL, "
    "job VARBINARY(255) NOT NULL, state TINYINT NOT NULL, due_at BIGINT NOT NULL, owed_at BIGINT NOT NULL, "
    "settled_at BIGINT, url LONGBLOB NOT NULL, host VARBINARY(2048) NOT NULL, job_state TINYINT NOT NULL, "
    "attempt BIGINT NOT NULL, losses BIGINT NOT NULL, retries BIGINT NOT NULL, low TINYINT NOT NULL, "
    "submitted_at BIGINT NOT NULL, queued_at BIGINT NOT NULL, started_at BIGINT, finished_at BIGINT, "
    "expires_at BIGINT NOT NULL, worker VARBINARY(255) NOT NULL, error LONGBLOB NOT NULL, "
    "tries BIGINT NOT NULL DEFAULT 0, claims BIGINT NOT NULL DEFAULT 0, "
    "UNIQUE KEY delivery_id (id), KEY delivery_due (state, host, due_at), "
    "KEY delivery_owed (endpoint, state, owed_at), KEY delivery_settled (settled_at), "
    "KEY delivery_by_endpoint (endpoint, settled_at), KEY delivery_of_endpoint (endpoint), "
    "KEY delivery_of_job (job)" JOBQ_TABLE,
    "CREATE TABLE IF NOT EXISTS delivery_body ("
    "num BIGINT NOT NULL PRIMARY KEY, output LONGBLOB NOT NULL, input LONGBLOB NOT NULL" JOBQ_TABLE,
    "CREATE TABLE IF NOT EXISTS delivery_attempt ("
    "id BIGINT NOT NULL AUTO_INCREMENT PRIMARY KEY, num BIGINT NOT NULL, made_at BIGINT NOT NULL, "
    "http_status BIGINT NOT NULL, duration BIGINT NOT NULL, reason LONGBLOB NOT NULL, reply LONGBLOB NOT NULL, "
    "KEY delivery_attempt_of (num)" JOBQ_TABLE,

    // The last life of each node. The table ended_life names the lives whose jobs a sweep still has to take back.
    "CREATE TABLE IF NOT EXISTS node ("
    "name VARBINARY(255) NOT NULL PRIMARY KEY, epoch BIGINT NOT NULL, alive TINYINT NOT NULL, "
    "last_beat BIGINT NOT NULL, life_end BIGINT NOT NULL, UNIQUE KEY node_epoch (epoch)" JOBQ_TABLE,
    "CREATE TABLE IF NOT EXISTS ended_life (epoch BIGINT NOT NULL PRIMARY KEY" JOBQ_TABLE,
    "CREATE TABLE IF NOT EXISTS node_worker ("
    "epoch BIGINT NOT NULL, endpoint VARBINARY(255) NOT NULL, idle BIGINT NOT NULL, initializing BIGINT NOT NULL, "
    "ready BIGINT NOT NULL, running BIGINT NOT NULL, throttled BIGINT NOT NULL, unhealthy BIGINT NOT NULL, "
    "PRIMARY KEY (epoch, endpoint), KEY node_worker_of (endpoint)" JOBQ_TABLE,

    "CREATE TABLE IF NOT EXISTS record ("
    "kind VARBINARY(255) NOT NULL, id VARBINARY(1024) NOT NULL, name VARBINARY(1024), version BIGINT NOT NULL, "
    "changed_at BIGINT NOT NULL, change_id BIGINT NOT NULL, body LONGBLOB NOT NULL, PRIMARY KEY (kind, id), "
    "UNIQUE KEY record_name (kind, name), KEY record_version (kind, version)" JOBQ_TABLE,
    "CREATE TABLE IF NOT EXISTS record_removed ("
    "kind VARBINARY(255) NOT NULL, id VARBINARY(1024) NOT NULL, version BIGINT NOT NULL, removed_at BIGINT NOT NULL, "
    "PRIMARY KEY (kind, id), KEY record_removed_at (removed_at), KEY record_removed_version (kind, version)" JOBQ_TABLE,

    "CREATE TABLE IF NOT EXISTS counted (name VARBINARY(64) NOT NULL PRIMARY KEY, value BIGINT NOT NULL" JOBQ_TABLE,
    "INSERT IGNORE INTO counted (name, value) VALUES "
    "('record_version', 0), ('epoch', 0), ('generator', 0), ('checked', 0), ('probed', 0)",
};

constexpr const char* kRetentionOfFailures[] = {
    "ALTER TABLE job ADD COLUMN IF NOT EXISTS retention_failed BIGINT NULL",
};

constexpr SchemaStep kSteps[] = {{kFirst}, {kRetentionOfFailures}};

}  // namespace

std::span<const SchemaStep> schemaSteps() noexcept { return kSteps; }

}  // namespace jobq::mysql
