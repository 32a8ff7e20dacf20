// The step of a submission: rank, rows and idempotency record of the job are written together or not at all.
#include <algorithm>

#include "claims.h"
#include "job_rows.h"
#include "jobq/planned.h"
#include "jobs.h"
#include "queue_order.h"
#include "storage_sql/leases.h"

namespace jobq::sqlite {
namespace {

[[noreturn]] void throwExists(const JobSpec& job) {
  throw StorageError("job " + job.id + " exists already; make another id");
}

/// Returns whether a repeated insert() has found its own job; throws StorageError if a different job has the id.
bool isInserted(Step& step, const BodyFiles& files, const JobSpec& job) {
  const LocatedId located = step.listing.locate(job.id);
  Query query = step.db.query(
      "SELECT expires_at > ?3 AND endpoint = ?4 AND ifnull(brief_key, api_key) = ?5, ifnull(brief_input, input) = ?6, "
      "input_file, size FROM job LEFT JOIN job_input USING (num) "
      "LEFT JOIN body_file ON body_file.id = input_file WHERE job.num = " JOBQ_NUM_OF_ID);
  query.bind(located.id, located.unlisted, step.now, job.endpoint, job.apiKeyId, Bytes{job.input});
  if (!query.next()) return false;
  const BodyFile file = bodyFileAt(query, 2);
  const bool isSame = query.flag(0) && (file.isFile() ? files.isEqual(file, job.input) : query.flag(1));
  if (!isSame) throwExists(job);
  return true;
}

/// Throws StorageError if a job has the id. The index of the ids does not refuse a second one.
void checkIsNew(Step& step, const JobSpec& job) {
  const LocatedId located = step.listing.locate(job.id);
  Query query = step.db.query("SELECT 1 FROM job WHERE num = " JOBQ_NUM_OF_ID);
  if (query.bind(located.id, located.unlisted).next()) throwExists(job);
}

/// Returns the result of an earlier request under the same key, if any.
std::optional<IdempotencyRecord> earlier(Connection& db, std::string_view endpoint, std::string_view apiKeyId,
                                         const Idempotency& idempotency, Instant now) {
  Query query = db.query(
      "SELECT body_hash, job FROM idempotency WHERE endpoint = ?1 AND api_key = ?2 AND key = ?3 AND expires_at > ?4");
  if (!query.bind(endpoint, apiKeyId, idempotency.key, now).next()) return std::nullopt;
  if (query.text(0) != idempotency.bodyHash) return KeyConflict{};
  return Duplicate{query.text(1)};
}

/// Returns the result of an earlier insert with the same key or of the same job, if any.
std::optional<InsertResult> formerInsert(Step& step, const BodyFiles& files, const JobSpec& job,
                                         const std::optional<Idempotency>& idempotency) {
  if (idempotency) {
    if (auto first = earlier(step.db, job.endpoint, job.apiKeyId, *idempotency, step.now)) {
      const auto* duplicate = std::get_if<Duplicate>(&*first);
      if (duplicate != nullptr && duplicate->id == job.id) return Inserted{};  // the call is repeated
      return std::visit([](auto& answer) -> InsertResult { return std::move(answer); }, *first);
    }
  }
  return isInserted(step, files, job) ? std::optional<InsertResult>(Inserted{}) : std::nullopt;
}

void remember(Step& step, const JobSpec& job, const Idempotency& idempotency) {
  step.db
      .query(
          "INSERT OR REPLACE INTO idempotency (endpoint, api_key, key, body_hash, job, expires_at) "
          "VALUES (?1, ?2, ?3, ?4, ?5, ?6)")
      .bind(job.endpoint, job.apiKeyId, idempotency.key, idempotency.bodyHash, job.id, step.now + kIdempotencyLife)
      .run();
}

/// The values of a new row that the submission does not have. A queued job has no value from `startedAt` on.
struct NewRow {
  std::int64_t num;
  std::int64_t rank;
  Instant submittedAt;
  Instant expiresAt;
  JobState state = JobState::inQueue;
  std::string_view worker{};
  CallId claim = 0;
  std::optional<Instant> startedAt{};
  std::optional<Instant> deadline{};      // of a running job
  std::optional<std::uint64_t> holder{};  // of a running job
  std::optional<Instant> finishedAt{};
  std::int64_t output = 0;             // number of the row in `job_output`; 0: none
  std::optional<BriefBodies> brief{};  // of a brief job
};

void insertRow(Step& step, const JobSpec& job, const NewRow& row) {
  std::optional<std::string_view> key;
  std::optional<Bytes> input;
  std::optional<std::string_view> error;
  std::optional<Bytes> output;
  if (row.brief) {
    key = row.brief->apiKeyId;
    input = Bytes{row.brief->input};
    error = row.brief->error;
    output = Bytes{row.brief->output};
  }
  step.db
      .query(
          "INSERT INTO job (num, id, endpoint, state, low, rank, arrival, attempt, losses, retries, "
          "max_attempts, priority, execution_timeout, ttl, retention, submitted_at, queued_at, expires_at, "
          "expiry_fixed, owes, worker, chunks, taken, log_lines, started_at, deadline, holder, claim, finished_at, "
          "listed, output_num, brief_key, brief_input, brief_error, brief_output, "
          "retention_failed) "
          "VALUES (?1, ?2, ?3, ?4, ?5, ?6, ?1, ?7, 0, 0, ?8, ?9, ?10, ?11, ?12, ?13, ?13, ?14, 0, ?15, ?16, 0, 0, 0, "
          "?17, ?18, ?19, ?20, ?21, 0, nullif(?22, 0), ?23, ?24, ?25, ?26, ?27)")
      .bind(row.num, job.id, job.endpoint, row.state, job.policy.lowPriority, row.rank, row.startedAt.has_value(),
            job.maxAttempts, job.policy.priority, job.policy.executionTimeout, job.policy.ttl, job.retention,
            row.submittedAt, row.expiresAt, !job.webhook.empty(), row.worker, row.startedAt, row.deadline, row.holder,
            row.claim, row.finishedAt, row.output, key, input, error, output, job.retentionFailed)
      .run();
  step.listing.add(job.id, row.num);
}

constexpr JobState kRunning = next(JobState::inQueue, Trigger::claim).value();

/// Returns the job as a claim returns it, without its input.
ClaimedJob claimedAtInsert(const JobSpec& job, const WorkerId& worker, Instant now) {
  ClaimedJob claimed;
  claimed.lease = {job.id, 1};
  claimed.endpoint = job.endpoint;
  claimed.worker = worker;
  claimed.webhook = job.webhook;
  claimed.s3Config = job.s3Config;
  claimed.policy = job.policy;
  claimed.submittedAt = claimed.startedAt = now;
  claimed.runsFor = std::min(job.policy.executionTimeout, job.policy.ttl);
  return claimed;
}

/// Counts a new job, submitted and started at `begin`, as running, in the counters and among the running rows.
void noteRunning(Step& step, const JobSpec& job, std::int64_t num, Instant begin, const WorkerId& worker) {
  step.running.begin(num, {job.endpoint, begin + job.policy.executionTimeout, worker, begin, begin, job.apiKeyId});
  step.counters.moved(job.endpoint, JobState::inQueue, kRunning, job.policy.lowPriority);
}

/// Returns the row of a job in its first attempt, with the values that recordEnd() reads.
JobRow runningRow(const JobSpec& job, std::int64_t num, Instant submittedAt) {
  JobRow row;
  row.num = num;
  row.id = job.id;
  row.endpoint = job.endpoint;
  row.state = kRunning;
  row.attempt = 1;
  row.low = job.policy.lowPriority;
  row.submittedAt = submittedAt;
  row.owes = !job.webhook.empty();
  return row;
}

/// Returns the bodies of a job that ends with its insert, if its row can hold them.
std::optional<BriefBodies> briefBodies(const JobSpec& job, const sql::Report& report) {
  if (!job.webhook.empty() || !job.s3Config.empty()) return std::nullopt;
  if (job.input.size() + report.error.size() + report.output.size() > kMostBrief) return std::nullopt;
  return BriefBodies{job.apiKeyId, job.input, report.error, report.output};
}

void insertInput(Step& step, const JobSpec& job, NewBody& input, std::int64_t num) {
  const std::int64_t file = input.nameIn(step);
  step.db
      .query(
          "INSERT INTO job_input (num, webhook, api_key, s3, input, input_file) "
          "VALUES (?1, ?2, ?3, ?4, ?5, nullif(?6, 0))")
      .bind(num, job.webhook, job.apiKeyId, Bytes{job.s3Config}, Bytes{input.inRow()}, file)
      .run();
}

}  // namespace

InsertResult Jobs::insert(JobSpec&& job, const QueuePolicy& policy, const InsertTerms& terms) {
  refusePlanned(job, terms);
  if (const auto* begun = std::get_if<Begun>(&terms.start)) {
    insertBegun(job, policy, *begun);
    return Inserted{};
  }
  NewBody input(bodies_.files, writer_, job.input);
  const auto insertIt = [&](Step& step) {
    input.beginStep();
    return insertNow(step, {job, input}, policy, terms.idempotency);
  };
  InsertResult result = writer_.write(insertIt, input.inRow().size());
  input.noteCommit();
  return result;
}

/// The write of insertLater(), which belongs to itself from its submission to its end.
class Jobs::LaterInsert final : public PendingWrite {
 public:
  struct Arguments {
    JobSpec job;
    const QueuePolicy& policy;
    std::optional<Idempotency> idempotency;
    std::unique_ptr<InsertReceiver> receiver;
  };

  LaterInsert(Jobs& jobs, Arguments&& arguments) : jobs_(jobs), arguments_(std::move(arguments)) { isAwaited = false; }

  /// Writes the file of a large input. Throws StorageError. Called once, before apply().
  void prepare() {
    refusePlanned(arguments_.job);
    input_.emplace(jobs_.bodies_.files, jobs_.writer_, arguments_.job.input);
    bytes = input_->inRow().size();
  }

  InsertReceiver& receiver() noexcept { return *arguments_.receiver; }

  void apply(Step& step) override {
    input_->beginStep();
    result_ = jobs_.insertNow(step, {arguments_.job, *input_}, arguments_.policy, arguments_.idempotency);
  }

  void end() noexcept override {
    const std::unique_ptr<LaterInsert> self(this);
    if (error) return receiver().failed(std::move(error));
    if (lostWith) return receiver().failed(std::make_exception_ptr(StorageError(*lostWith)));
    input_->noteCommit();
    receiver().inserted(std::move(*result_));
  }

 private:
  Jobs& jobs_;
  Arguments arguments_;
  std::optional<NewBody> input_;
  std::optional<InsertResult> result_;
};

void Jobs::insertLater(JobSpec job, const QueuePolicy& policy, std::optional<Idempotency> idempotency,
                       std::unique_ptr<InsertReceiver> receiver) {
  auto write = std::make_unique<LaterInsert>(
      *this, LaterInsert::Arguments{std::move(job), policy, std::move(idempotency), std::move(receiver)});
  LaterInsert& insert = *write;
  std::exception_ptr refusal;
  try {
    insert.prepare();
    writer_.submit(insert);
    (void)write.release();
  } catch (const StorageError&) {
    refusal = std::current_exception();
  }
  if (refusal) insert.receiver().failed(std::move(refusal));
}

std::optional<IdempotencyRecord> Jobs::findByIdempotencyKey(std::string_view endpoint, std::string_view apiKeyId,
                                                            const Idempotency& idempotency) {
  auto record = readers_.read(
      [&](Connection& connection) { return earlier(connection, endpoint, apiKeyId, idempotency, clock_.now()); });
  if (record) {
    if (const auto* first = std::get_if<Duplicate>(&*record)) makeDurable(writer_, first->id);
  }
  return record;
}

InsertResult Jobs::insertNow(Step& step, const NewJob& job, const QueuePolicy& policy,
                             const std::optional<Idempotency>& idempotency) {
  if (auto before = formerInsert(step, bodies_.files, job.spec, idempotency)) return std::move(*before);
  insertNew(step, job, policy, idempotency, nullptr);
  return Inserted{};
}

void Jobs::insertNew(Step& step, const NewJob& newJob, const QueuePolicy& policy,
                     const std::optional<Idempotency>& idempotency, const FirstClaim* claim) {
  const JobSpec& job = newJob.spec;
  if (idempotency) remember(step, job, *idempotency);
  const std::int64_t rank = rankOf(step, job, policy);
  NewRow row{numbers_.next(), rank, step.now, step.now + job.policy.ttl};
  if (claim != nullptr) {
    row.state = kRunning;
    row.worker = claim->worker;
    row.claim = claim->mark.id;
    row.startedAt = step.now;
    row.deadline = step.now + job.policy.executionTimeout;
    row.holder = claim->mark.holder;
  }
  insertRow(step, job, row);
  insertInput(step, job, newJob.input, row.num);
  step.counters.added(job.endpoint, job.policy.lowPriority);
  if (claim != nullptr) noteRunning(step, job, row.num, step.now, claim->worker);
}

void Jobs::insertBegun(const JobSpec& job, const QueuePolicy& policy, const Begun& run) {
  const Outcome* const outcome = run.outcome;
  const Instant begin = clock_.now() - run.age;  // now, because the write waits for its turn
  NewBody input(bodies_.files, writer_, job.input);
  const sql::Report report = outcome == nullptr ? sql::Report{} : sql::reportOf(*outcome);
  NewBody output(bodies_.files, writer_, report.output);
  const auto insertIt = [&](Step& step) {
    input.beginStep();
    output.beginStep();
    checkIsNew(step, job);
    if (begin + job.policy.ttl <= step.now) throw StorageError("job " + job.id + " has outlived its policy.ttl");
    NewRow row{numbers_.next(), rankOf(step, job, policy), begin, begin + job.policy.ttl, kRunning, run.worker};
    row.startedAt = begin;
    if (outcome == nullptr) {
      if (!isAlive(step, run.holder)) throw StorageError("the life of the node of job " + job.id + " has ended");
      row.deadline = begin + job.policy.executionTimeout;
      row.holder = run.holder.epoch;
    } else {
      row.state = next(kRunning, report.trigger).value();
      row.expiresAt = expiryAfterEnd(row.state, step.now, row.expiresAt, job.retention, job.retentionFailed);
      row.finishedAt = step.now;
      row.brief = briefBodies(job, report);
      if (!row.brief) row.output = insertOutput(step, {report.error, &output});
    }
    insertRow(step, job, row);
    if (!row.brief) insertInput(step, job, input, row.num);
    step.counters.added(job.endpoint, job.policy.lowPriority);
    noteRunning(step, job, row.num, begin, run.worker);
    if (outcome == nullptr) return true;
    recordEnd(step, runningRow(job, row.num, begin), row.state, row.expiresAt, {report.error, &output});
    return true;
  };
  writer_.write(insertIt, input.inRow().size() + output.inRow().size());
  input.noteCommit();
  output.noteCommit();
}

// A job that meets no queue runs at once: its row never enters the index of the queue.
Jobs::InsertedWithClaims Jobs::insertAndClaimNow(Step& step, const NewJob& newJob, const QueuePolicy& policy,
                                                 const std::optional<Idempotency>& idempotency,
                                                 const FusedClaim& claim) {
  const JobSpec& job = newJob.spec;
  const ClaimMark mark{claim.holder.epoch, claim.id};
  InsertedWithClaims done;
  const auto queued = counters_.of(job.endpoint).in(JobState::inQueue);
  if (queued + step.counters.of(job.endpoint).in(JobState::inQueue) > 0) {
    done.inserted = insertNow(step, newJob, policy, idempotency);
    InputBound bound(kMostFusedInput);
    claimFor(step, claim.want, mark, bound, done.claimed);
    return done;
  }
  if (auto before = formerInsert(step, bodies_.files, job, idempotency)) {
    done.inserted = std::move(*before);
    return done;
  }
  const FirstClaim first{claim.want.workers.front(), mark};
  insertNew(step, newJob, policy, idempotency, &first);
  done.claimed.push_back({claimedAtInsert(job, first.worker, step.now), {}, {}, {}, {}});
  return done;
}

InsertedAndClaimed Jobs::insertAndClaim(JobSpec&& job, const QueuePolicy& policy,
                                        const std::optional<Idempotency>& idempotency, const FusedClaim& claim) {
  refusePlanned(job);
  NewBody input(bodies_.files, writer_, job.input);
  const auto step = [&](Step& step) {
    input.beginStep();
    writer_.unsynced().add(job.id);
    if (isAlive(step, claim.holder)) return insertAndClaimNow(step, {job, input}, policy, idempotency, claim);
    return InsertedWithClaims{insertNow(step, {job, input}, policy, idempotency), {}};
  };
  std::vector<ClaimedJob> jobs;
  jobs.reserve(claim.want.workers.size());  // after the commit, a lack of memory would leave the jobs unanswered
  InsertedWithClaims done = writer_.writeUnsynced(step, input.inRow().size());
  input.noteCommit();
  // The caller still has the input of its own job: its file needs no reading.
  for (Claim& each : done.claimed) {
    if (each.job.lease.job != job.id || !each.job.input.empty()) continue;
    each.job.input = std::move(job.input);
    if (input.file().isFile()) bodies_.files.dropFromCache(input.file());
    each.inputFile = {};
  }
  bodies_.inputs.read(std::move(done.claimed), jobs);
  return {std::move(done.inserted), std::move(jobs)};
}

}  // namespace jobq::sqlite
