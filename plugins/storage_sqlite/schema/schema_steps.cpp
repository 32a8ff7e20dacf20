// The tables. The row of a job is small and holds the changing values; the bodies of a job that may still change are in
// tables of their own, so a change of state does not rewrite a 20 MB input. Times are milliseconds since the epoch,
// states the numbers of JobState. Every query on a deep table has an index here, and names the index.
#include "schema/schema.h"

namespace jobq::sqlite {
namespace {

constexpr char kFirst[] = R"sql(
CREATE TABLE job (
  num               INTEGER PRIMARY KEY,        -- grows with every submission
  id                TEXT    NOT NULL UNIQUE,
  endpoint          TEXT    NOT NULL,
  state             INTEGER NOT NULL,
  low               INTEGER NOT NULL,
  rank              INTEGER NOT NULL,
  arrival           INTEGER NOT NULL,           -- num, or a later one after a retry
  attempt           INTEGER NOT NULL,
  losses            INTEGER NOT NULL,
  retries           INTEGER NOT NULL,
  max_attempts      INTEGER NOT NULL,
  priority          INTEGER NOT NULL,
  execution_timeout INTEGER NOT NULL,
  ttl               INTEGER NOT NULL,
  retention         INTEGER NOT NULL,
  submitted_at      INTEGER NOT NULL,
  queued_at         INTEGER NOT NULL,
  started_at        INTEGER,
  finished_at       INTEGER,
  expires_at        INTEGER NOT NULL,
  expiry_fixed      INTEGER NOT NULL,           -- by setTtl
  owes              INTEGER NOT NULL,           -- has a webhook
  deadline          INTEGER,                    -- of the execution, while it runs
  lease_end         INTEGER,                    -- while it runs; see job_rows.h
  worker            TEXT    NOT NULL,
  chunks            INTEGER NOT NULL,           -- how many the attempt has
  taken             INTEGER NOT NULL,           -- how many of them were handed out
  log_lines         INTEGER NOT NULL            -- how many there ever were
) STRICT;
CREATE INDEX job_waiting     ON job (endpoint, low, rank, arrival, expires_at) WHERE state = 0;
CREATE INDEX job_begun       ON job (endpoint, state) WHERE state > 0;
CREATE INDEX job_of_endpoint ON job (endpoint);
CREATE INDEX job_expiry      ON job (expires_at);
CREATE INDEX job_deadline    ON job (deadline) WHERE deadline IS NOT NULL;
CREATE INDEX job_lease       ON job (lease_end) WHERE lease_end IS NOT NULL;
CREATE INDEX job_late        ON job (arrival) WHERE arrival > num;

CREATE TABLE job_input (
  num INTEGER PRIMARY KEY, webhook TEXT NOT NULL, api_key TEXT NOT NULL, s3 BLOB NOT NULL, input BLOB NOT NULL) STRICT;
CREATE TABLE job_output (num INTEGER PRIMARY KEY, error TEXT NOT NULL, output BLOB NOT NULL) STRICT;
CREATE TABLE job_progress (num INTEGER PRIMARY KEY, progress BLOB NOT NULL) STRICT;
CREATE TABLE job_chunk (
  id INTEGER PRIMARY KEY, num INTEGER NOT NULL, seq INTEGER NOT NULL, partial INTEGER NOT NULL,
  size INTEGER NOT NULL, metrics BLOB NOT NULL, output BLOB NOT NULL, UNIQUE (num, seq)) STRICT;
CREATE TABLE job_log (
  num INTEGER NOT NULL, seq INTEGER NOT NULL, at INTEGER NOT NULL, level INTEGER NOT NULL, text TEXT NOT NULL,
  PRIMARY KEY (num, seq)) STRICT, WITHOUT ROWID;

CREATE TABLE idempotency (
  endpoint TEXT NOT NULL, api_key TEXT NOT NULL, key TEXT NOT NULL, body_hash TEXT NOT NULL, job TEXT NOT NULL,
  expires_at INTEGER NOT NULL, PRIMARY KEY (endpoint, api_key, key)) STRICT, WITHOUT ROWID;
CREATE INDEX idempotency_expiry ON idempotency (expires_at);
CREATE TABLE line_group (
  endpoint TEXT NOT NULL, name TEXT NOT NULL, last_rank INTEGER NOT NULL, PRIMARY KEY (endpoint, name))
  STRICT, WITHOUT ROWID;
CREATE TABLE endpoint_count (
  endpoint TEXT PRIMARY KEY, completed INTEGER NOT NULL, failed INTEGER NOT NULL, retried INTEGER NOT NULL)
  STRICT, WITHOUT ROWID;

CREATE TABLE delivery (
  num INTEGER PRIMARY KEY, id TEXT NOT NULL UNIQUE, endpoint TEXT NOT NULL, job TEXT NOT NULL,
  state INTEGER NOT NULL, due_at INTEGER NOT NULL, settled_at INTEGER, url TEXT NOT NULL,
  job_state INTEGER NOT NULL, attempt INTEGER NOT NULL, losses INTEGER NOT NULL, retries INTEGER NOT NULL,
  low INTEGER NOT NULL, submitted_at INTEGER NOT NULL, queued_at INTEGER NOT NULL, started_at INTEGER,
  finished_at INTEGER, expires_at INTEGER NOT NULL, worker TEXT NOT NULL, error TEXT NOT NULL) STRICT;
CREATE INDEX delivery_due         ON delivery (due_at) WHERE state = 0;
CREATE INDEX delivery_settled     ON delivery (settled_at) WHERE settled_at IS NOT NULL;
CREATE INDEX delivery_by_endpoint ON delivery (endpoint, settled_at) WHERE settled_at IS NOT NULL;
CREATE INDEX delivery_of_endpoint ON delivery (endpoint);
CREATE INDEX delivery_of_job      ON delivery (job);
CREATE TABLE delivery_body (
  num INTEGER PRIMARY KEY, output BLOB NOT NULL, input BLOB NOT NULL) STRICT;
CREATE TABLE delivery_attempt (
  id INTEGER PRIMARY KEY, num INTEGER NOT NULL, at INTEGER NOT NULL, status INTEGER NOT NULL,
  duration INTEGER NOT NULL, reason TEXT NOT NULL, reply BLOB NOT NULL) STRICT;
CREATE INDEX delivery_attempt_of ON delivery_attempt (num);

CREATE TABLE node (name TEXT PRIMARY KEY, last_beat INTEGER NOT NULL) STRICT, WITHOUT ROWID;
CREATE TABLE node_worker (
  node TEXT NOT NULL, endpoint TEXT NOT NULL, idle INTEGER NOT NULL, initializing INTEGER NOT NULL,
  ready INTEGER NOT NULL, running INTEGER NOT NULL, throttled INTEGER NOT NULL, unhealthy INTEGER NOT NULL,
  PRIMARY KEY (endpoint, node)) STRICT, WITHOUT ROWID;
CREATE INDEX node_worker_of ON node_worker (node);

CREATE TABLE record (
  kind TEXT NOT NULL, id TEXT NOT NULL, name TEXT NOT NULL, version INTEGER NOT NULL, changed_at INTEGER NOT NULL,
  body BLOB NOT NULL, PRIMARY KEY (kind, id)) STRICT;
CREATE UNIQUE INDEX record_name  ON record (kind, name) WHERE name <> '';
CREATE INDEX record_version      ON record (kind, version);
CREATE TABLE record_removed (
  kind TEXT NOT NULL, id TEXT NOT NULL, version INTEGER NOT NULL, removed_at INTEGER NOT NULL,
  PRIMARY KEY (kind, id)) STRICT, WITHOUT ROWID;
CREATE INDEX record_removed_at ON record_removed (removed_at);
CREATE TABLE number (name TEXT PRIMARY KEY, value INTEGER NOT NULL) STRICT, WITHOUT ROWID;
INSERT INTO number (name, value) VALUES ('record_version', 0), ('checked', 0);
)sql";

// A claim that ended with its process never ended by time. Most claims are of this kind and
// need no entry in the index.
constexpr char kTimedLeasesOnly[] = R"sql(
DROP INDEX job_lease;
CREATE INDEX job_lease ON job (lease_end) WHERE lease_end < 9223372036854775807;
)sql";

// Webhook delivery skips busy hosts: the deliveries of each host are read separately, from the index alone. host_of()
// comes from Connection::setReceiverNames(). Versions before this step delivered no webhook, so no try was followed by
// a replay.
constexpr char kLinesOfHosts[] = R"sql(
ALTER TABLE delivery ADD COLUMN host TEXT NOT NULL DEFAULT '';
ALTER TABLE delivery ADD COLUMN tries INTEGER NOT NULL DEFAULT 0;
UPDATE delivery SET host = host_of(url), tries = (SELECT count(*) FROM delivery_attempt AS a WHERE a.num = delivery.num);
DROP INDEX delivery_due;
CREATE INDEX delivery_due ON delivery (state, host, due_at, num) WHERE state = 0;
CREATE INDEX delivery_first ON delivery (state, due_at, num, host) WHERE state = 0;
)sql";

// The number of a delivery's last claim fences the reports of earlier claims. A host has a single spelling from now on
// (host_of()), so the deliveries to a receiver are counted together. The order of the deliveries of all hosts is no
// longer read. The records removed since a version are found without reading all removals.
constexpr char kClaimsOfDeliveries[] = R"sql(
ALTER TABLE delivery ADD COLUMN claims INTEGER NOT NULL DEFAULT 0;
UPDATE delivery SET host = host_of(url);
DROP INDEX delivery_first;
CREATE INDEX record_removed_version ON record_removed (kind, version);
)sql";

// The owed deliveries of an endpoint, oldest first, for counting at a start, for the age and for the bounds. A delivery
// has been owed since the end of the job; the moment of an earlier replay is unknown.
constexpr char kOwedByEndpoint[] = R"sql(
ALTER TABLE delivery ADD COLUMN owed_at INTEGER NOT NULL DEFAULT 0;
UPDATE delivery SET owed_at = ifnull(finished_at, due_at);
CREATE INDEX delivery_owed ON delivery (endpoint, owed_at) WHERE state = 0;
)sql";

// The number of settled deliveries of each endpoint, so no delivery has to count. Triggers keep the number, whichever
// statement ends, replays or deletes a delivery.
constexpr char kCountsOfDeliveries[] = R"sql(
CREATE TABLE delivery_count (endpoint TEXT PRIMARY KEY, settled INTEGER NOT NULL) STRICT, WITHOUT ROWID;
INSERT INTO delivery_count (endpoint, settled)
  SELECT endpoint, count(*) FROM delivery INDEXED BY delivery_by_endpoint WHERE settled_at IS NOT NULL GROUP BY endpoint;
CREATE TRIGGER delivery_settles AFTER UPDATE OF settled_at ON delivery
  WHEN old.settled_at IS NULL AND new.settled_at IS NOT NULL BEGIN
  INSERT INTO delivery_count (endpoint, settled) VALUES (new.endpoint, 1)
    ON CONFLICT (endpoint) DO UPDATE SET settled = settled + 1;
END;
CREATE TRIGGER delivery_is_owed_again AFTER UPDATE OF settled_at ON delivery
  WHEN old.settled_at IS NOT NULL AND new.settled_at IS NULL BEGIN
  UPDATE delivery_count SET settled = settled - 1 WHERE endpoint = new.endpoint;
END;
CREATE TRIGGER delivery_goes AFTER DELETE ON delivery WHEN old.settled_at IS NOT NULL BEGIN
  UPDATE delivery_count SET settled = settled - 1 WHERE endpoint = old.endpoint;
  DELETE FROM delivery_count WHERE endpoint = old.endpoint AND settled = 0;
END;
)sql";

// The ids of the last calls, by which a repeated call is recognised. `claim` started the present attempt; `taken_by`
// consumed the chunks from number `taken_from` up to `taken`; `change` made the version of a record.
constexpr char kIdsOfCalls[] = R"sql(
ALTER TABLE job ADD COLUMN claim INTEGER NOT NULL DEFAULT 0;
ALTER TABLE job ADD COLUMN taken_by INTEGER NOT NULL DEFAULT 0;
ALTER TABLE job ADD COLUMN taken_from INTEGER NOT NULL DEFAULT 0;
ALTER TABLE record ADD COLUMN change INTEGER NOT NULL DEFAULT 0;
)sql";

// A job names the epoch of its holder instead of the end of its lease (`job_rows.h`). Until now each running job
// belonged to a process that is dead by now. A node has lives with epochs.
constexpr char kHolders[] = R"sql(
DROP INDEX job_lease;
ALTER TABLE job RENAME COLUMN lease_end TO holder;
UPDATE job INDEXED BY job_deadline SET holder = 0 WHERE deadline IS NOT NULL;
CREATE INDEX job_lost ON job (holder) WHERE holder = 0;
ALTER TABLE node ADD COLUMN epoch INTEGER NOT NULL DEFAULT 0;
INSERT INTO number (name, value) VALUES ('epoch', 0), ('life', 0);
)sql";

// A claim and the end of a job change one index entry less each. Running jobs are few, and job_deadline lists them.
constexpr char kEndedOnly[] = R"sql(
DROP INDEX job_begun;
CREATE INDEX job_ended ON job (endpoint, state) WHERE state > 1;
)sql";

// A body over 256 KB is a file (`body_files.h`): the row of the body names the file and holds no byte of it. Bodies of
// earlier versions stay in their rows. Triggers keep the number of the rows that name a file, whichever statement
// deletes or copies them; the first row of a file is inserted together with the file's. The running jobs are known in
// memory (`running_rows.h`).
constexpr char kBodyFiles[] = R"sql(
DROP INDEX job_deadline;
CREATE TABLE body_file (id INTEGER PRIMARY KEY, size INTEGER NOT NULL, owners INTEGER NOT NULL) STRICT;
INSERT INTO number (name, value) VALUES ('body', 0);
CREATE INDEX body_file_unowned ON body_file (owners) WHERE owners = 0;
ALTER TABLE job_input ADD COLUMN input_file INTEGER;
ALTER TABLE job_output ADD COLUMN output_file INTEGER;
ALTER TABLE delivery_body ADD COLUMN output_file INTEGER;
ALTER TABLE delivery_body ADD COLUMN input_file INTEGER;
CREATE TRIGGER job_input_goes AFTER DELETE ON job_input WHEN old.input_file IS NOT NULL BEGIN
  UPDATE body_file SET owners = owners - 1 WHERE id = old.input_file;
END;
CREATE TRIGGER job_output_goes AFTER DELETE ON job_output WHEN old.output_file IS NOT NULL BEGIN
  UPDATE body_file SET owners = owners - 1 WHERE id = old.output_file;
END;
CREATE TRIGGER delivery_body_comes AFTER INSERT ON delivery_body
  WHEN new.output_file IS NOT NULL OR new.input_file IS NOT NULL BEGIN
  UPDATE body_file SET owners = owners + 1 WHERE id = new.output_file;
  UPDATE body_file SET owners = owners + 1 WHERE id = new.input_file;
END;
CREATE TRIGGER delivery_body_goes AFTER DELETE ON delivery_body
  WHEN old.output_file IS NOT NULL OR old.input_file IS NOT NULL BEGIN
  UPDATE body_file SET owners = owners - 1 WHERE id = old.output_file;
  UPDATE body_file SET owners = owners - 1 WHERE id = old.input_file;
END;
)sql";

// The row of an endpoint's totals does not count the ended jobs of the file any more (`counters.h`, persist()).
//
// The indexes for ids, lists and expiry get a new job late (`job_listing.h`). The other jobs are in them. The table is
// made anew, because its column of ids had an index that no statement can drop.
constexpr char kLateEntries[] = R"sql(
UPDATE endpoint_count SET
  completed = completed - (SELECT count(*) FROM job INDEXED BY job_ended
    WHERE state > 1 AND unlikely(state = 2) AND endpoint = endpoint_count.endpoint),
  failed = failed - (SELECT count(*) FROM job INDEXED BY job_ended
    WHERE state > 1 AND unlikely(state IN (3, 5)) AND endpoint = endpoint_count.endpoint);
CREATE TABLE job_next (
  num               INTEGER PRIMARY KEY,
  id                TEXT    NOT NULL,
  endpoint          TEXT    NOT NULL,
  state             INTEGER NOT NULL,
  low               INTEGER NOT NULL,
  rank              INTEGER NOT NULL,
  arrival           INTEGER NOT NULL,
  attempt           INTEGER NOT NULL,
  losses            INTEGER NOT NULL,
  retries           INTEGER NOT NULL,
  max_attempts      INTEGER NOT NULL,
  priority          INTEGER NOT NULL,
  execution_timeout INTEGER NOT NULL,
  ttl               INTEGER NOT NULL,
  retention         INTEGER NOT NULL,
  submitted_at      INTEGER NOT NULL,
  queued_at         INTEGER NOT NULL,
  started_at        INTEGER,
  finished_at       INTEGER,
  expires_at        INTEGER NOT NULL,
  expiry_fixed      INTEGER NOT NULL,
  owes              INTEGER NOT NULL,
  deadline          INTEGER,
  holder            INTEGER,
  worker            TEXT    NOT NULL,
  chunks            INTEGER NOT NULL,
  taken             INTEGER NOT NULL,
  log_lines         INTEGER NOT NULL,
  claim             INTEGER NOT NULL DEFAULT 0,
  taken_by          INTEGER NOT NULL DEFAULT 0,
  taken_from        INTEGER NOT NULL DEFAULT 0,
  listed            INTEGER NOT NULL            -- is in the indexes with this condition
) STRICT;
INSERT INTO job_next SELECT
  num, id, endpoint, state, low, rank, arrival, attempt, losses, retries, max_attempts, priority, execution_timeout, ttl,
  retention, submitted_at, queued_at, started_at, finished_at, expires_at, expiry_fixed, owes, deadline, holder, worker,
  chunks, taken, log_lines, claim, taken_by, taken_from, 1 FROM job;
DROP TABLE job;
ALTER TABLE job_next RENAME TO job;
CREATE INDEX job_waiting     ON job (endpoint, low, rank, arrival, expires_at) WHERE state = 0;
CREATE INDEX job_late        ON job (arrival) WHERE arrival > num;
CREATE INDEX job_lost        ON job (holder) WHERE holder = 0;
CREATE INDEX job_id          ON job (id) WHERE listed = 1;
CREATE INDEX job_of_endpoint ON job (endpoint) WHERE listed = 1;
CREATE INDEX job_ended       ON job (endpoint, state) WHERE state > 1 AND listed = 1;
CREATE INDEX job_expiry      ON job (expires_at) WHERE listed = 1;
)sql";

// Outputs have numbers of their own, in the order of the ends, so each output is appended to its table: in the order of
// the submissions, ends in another order would split pages. A brief job, which is inserted with its end, has its small
// bodies in its own row (`job_rows.h`), so its commit writes one page.
constexpr char kBriefJobs[] = R"sql(
ALTER TABLE job_output RENAME COLUMN num TO output_num;
ALTER TABLE job ADD COLUMN output_num INTEGER;
UPDATE job SET output_num = num WHERE state > 1 AND num IN (SELECT output_num FROM job_output);
ALTER TABLE job ADD COLUMN brief_key TEXT;
ALTER TABLE job ADD COLUMN brief_input BLOB;
ALTER TABLE job ADD COLUMN brief_error TEXT;
ALTER TABLE job ADD COLUMN brief_output BLOB;
)sql";

constexpr char kRetentionOfFailures[] = "ALTER TABLE job ADD COLUMN retention_failed INTEGER;";

constexpr SchemaStep kSteps[] = {{kFirst},
                                 {kTimedLeasesOnly},
                                 {kLinesOfHosts},
                                 {kClaimsOfDeliveries},
                                 {kOwedByEndpoint},
                                 {kCountsOfDeliveries},
                                 {kIdsOfCalls},
                                 {kHolders},
                                 {kEndedOnly},
                                 {kBodyFiles},
                                 {kLateEntries},
                                 {kBriefJobs},
                                 {kRetentionOfFailures}};

}  // namespace

std::span<const SchemaStep> schemaSteps() noexcept { return kSteps; }

}  // namespace jobq::sqlite
