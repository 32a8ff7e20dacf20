// The reports and requests of a worker: claim, states, finish, progress.
#include "leases.h"

#include <algorithm>
#include <cstdint>
#include <deque>
#include <iterator>
#include <limits>
#include <map>

#include "job_rows.h"
#include "jobq/planned.h"
#include "lives.h"
#include "reads/job_reads.h"
#include "storage_sql/leases.h"
#include "storage_sql/rows.h"
#include "writes/counters.h"

namespace jobq::mysql {
namespace {

/// A queued job with the values for a claim, except the bodies.
struct QueuedJob {
  std::int64_t num = 0;
  sql::QueuePlace place;
  Instant expiresAt{};
  ClaimedJob job;
  std::uint64_t inputBytes = 0;
};

/// Values common to all jobs of one call of claim().
struct ClaimMark {
  std::uint64_t epoch;
  CallId id;
};

/// The columns of a ClaimedJob, in the order of reading in sql::claimedJobOf(). The attempt is the attempt of the row.
#define JOBQ_MYSQL_CLAIMED                                                                                 \
  "job.id, job.attempt, job.endpoint, job.worker, job.execution_timeout, job.ttl, job.low, job.priority, " \
  "job.submitted_at, job.log_lines, job.expires_at"
constexpr std::size_t kClaimedColumns = 11;

/// Locks the first jobs of the queue with their rows. Passes over jobs claimed or changed by another transaction.
std::vector<QueuedJob> lockHead(Step& step, const EndpointId& endpoint, std::size_t max) {
  Query query = step.db.query("SELECT " JOBQ_MYSQL_CLAIMED
                              ", ready_job.num, ready_job.low, ready_job.queue_rank, ready_job.arrival "
                              "FROM ready_job STRAIGHT_JOIN job ON job.num = ready_job.num "
                              "WHERE ready_job.endpoint = ? AND ready_job.expires_at > ? "
                              "ORDER BY ready_job.low, ready_job.queue_rank, ready_job.arrival LIMIT ? "
                              "FOR UPDATE SKIP LOCKED");
  query.bind(endpoint, step.now, max);
  std::vector<QueuedJob> head;
  while (query.next()) {
    constexpr std::size_t kPlace = kClaimedColumns;
    head.push_back({query.integer(kPlace),
                    {query.integer(kPlace + 1), query.integer(kPlace + 2), query.integer(kPlace + 3)},
                    query.instant(10),
                    sql::claimedJobOf(query),
                    0});
  }
  return head;
}

/// The rows are written later, with the rows of other claims.
void markClaimed(Step& step, const QueuedJob& queued, const ClaimMark& mark) {
  constexpr JobState kTo = next(JobState::inQueue, Trigger::claim).value();
  const ClaimedJob& job = queued.job;
  step.db.later("UPDATE job SET state = ?, attempt = attempt + 1, started_at = ?, worker = ?, claim = ? WHERE num = ?")
      .add(kTo, step.now, job.worker, mark.id, queued.num);
  step.db.later("DELETE FROM ready_job WHERE endpoint = ? AND low = ? AND queue_rank = ? AND arrival = ?")
      .add(job.endpoint, queued.place.low, queued.place.rank, queued.place.arrival);
  step.db.later("INSERT INTO running_job (num, epoch, deadline) VALUES (?, ?, ?)")
      .add(queued.num, mark.epoch, step.now + job.policy.executionTimeout);
}

/// Number of jobs whose bodies one statement reads. Places without a job repeat the last job.
constexpr std::size_t kBodiesTogether = 8;

/// Reads what the callers of up to kBodiesTogether jobs from `from` on have sent, without inputs of over `most` bytes.
void readSomeBodies(Connection& connection, std::vector<QueuedJob>& jobs, std::size_t from, std::uint64_t most) {
  std::map<std::int64_t, QueuedJob*> missing;
  Query query = connection.query(
      "SELECT num, webhook, s3, LENGTH(input), IF(LENGTH(input) > ?, NULL, input) FROM job_input "
      "WHERE num IN (?, ?, ?, ?, ?, ?, ?, ?)");
  query.bind(static_cast<std::int64_t>(std::min<std::uint64_t>(most, std::numeric_limits<std::int64_t>::max())));
  for (std::size_t i = from; i < from + kBodiesTogether; ++i) {
    QueuedJob& job = jobs[std::min(i, jobs.size() - 1)];
    query.bind(job.num);
    missing[job.num] = &job;
  }
  while (query.next()) {
    const auto found = missing.find(query.integer(0));
    QueuedJob& queued = *found->second;
    queued.job.webhook = query.text(1);
    queued.job.s3Config = query.text(2);
    queued.inputBytes = query.count(3);
    queued.job.input = query.text(4);
    missing.erase(found);
  }
  if (missing.empty()) return;
  throw StorageError("the database has lost the input of job " + missing.begin()->second->job.lease.job +
                     "; restore a backup of the database");
}

/// Reads what the callers of the jobs have sent, and drops the jobs from the first one on whose input has no room. A
/// statement reads several inputs, and each of them may have a part of the room; a larger one is read alone.
void readBodies(Connection& connection, const EndpointId& endpoint, std::vector<QueuedJob>& jobs, InputBound& bound) {
  for (std::size_t i = 0; i < jobs.size(); ++i) {
    if (i % kBodiesTogether == 0) readSomeBodies(connection, jobs, i, bound.left() / kBodiesTogether + kSmallInput);
    QueuedJob& queued = jobs[i];
    if (!bound.addInput(endpoint, queued.inputBytes)) {
      jobs.erase(jobs.begin() + static_cast<std::ptrdiff_t>(i), jobs.end());
      return;
    }
    if (queued.job.input.size() == queued.inputBytes) continue;
    Query query = connection.query("SELECT input FROM job_input WHERE num = ?");
    if (query.bind(queued.num).next()) queued.job.input = query.text(0);
  }
}

/// Returns the job of a claim, or an empty optional if the job is gone.
std::optional<ClaimedJob> claimedJob(Connection& connection, std::int64_t num, Instant now) {
  Query query = connection.query("SELECT " JOBQ_MYSQL_CLAIMED
                                 ", job.started_at, LEAST(job.started_at + job.execution_timeout, job.expires_at), "
                                 "job_input.webhook, job_input.s3, job_input.input "
                                 "FROM job JOIN job_input ON job_input.num = job.num WHERE job.num = ?");
  if (!query.bind(num).next()) return std::nullopt;
  ClaimedJob job = sql::claimedJobOf(query);
  job.startedAt = query.instant(kClaimedColumns);
  job.runsFor = query.instant(kClaimedColumns + 1) - now;
  job.webhook = query.text(kClaimedColumns + 2);
  job.s3Config = query.text(kClaimedColumns + 3);
  job.input = query.text(kClaimedColumns + 4);
  return job;
}

void claimFor(Step& step, const ClaimWant& want, const ClaimMark& mark, InputBound& bound,
              std::vector<ClaimedJob>& claimed) {
  std::vector<QueuedJob> head = lockHead(step, want.endpoint, want.workers.size());
  readBodies(step.db, want.endpoint, head, bound);
  auto worker = want.workers.begin();
  for (QueuedJob& queued : head) {
    ClaimedJob& job = queued.job;
    job.worker = *worker++;
    ++job.lease.attempt;
    job.startedAt = step.now;
    job.runsFor = std::min(step.now + job.policy.executionTimeout, queued.expiresAt) - step.now;
    markClaimed(step, queued, mark);
    step.counters.moved(want.endpoint, JobState::inQueue, JobState::inProgress, job.policy.lowPriority);
    claimed.push_back(std::move(job));
  }
}

/// Returns the numbers of the endpoint's jobs that are IN_PROGRESS under the claim, by worker.
std::multimap<WorkerId, std::int64_t> runningUnder(Connection& connection, const EndpointId& endpoint, CallId id,
                                                   Instant now) {
  Query query = connection.query(
      "SELECT worker, num FROM job FORCE INDEX (job_of_state) WHERE endpoint = ? AND state = ? AND claim = ? AND "
      "expires_at > ? ORDER BY num");
  query.bind(endpoint, JobState::inProgress, id, now);
  std::multimap<WorkerId, std::int64_t> running;
  while (query.next()) running.emplace(query.text(0), query.integer(1));
  return running;
}

/// Returns whether the attempt of the lease has ended as `state` with this error and output.
bool hasEnded(Step& step, const std::optional<JobRow>& row, const LeaseRef& lease, JobState state,
              const Ending& ending) {
  if (!row || row->state != state || row->attempt != lease.attempt) return false;
  Query query = step.db.query("SELECT error = ? AND output = ? FROM job_output WHERE num = ?");
  if (!query.bind(ending.error, ending.output, row->num).next()) return ending.error.empty() && ending.output.empty();
  return query.flag(0);
}

LeaseState stateOf(const LeaseRef& lease, const std::map<JobId, JobGlance, std::less<>>& jobs) {
  const auto found = jobs.find(lease.job);
  if (found == jobs.end()) return LeaseState::deleted;
  return sql::leaseStateOf(lease.attempt, found->second.state, found->second.attempt);
}

ReportResult finishNow(Step& step, const LeaseRef& lease, const Outcome& outcome) {
  const sql::Report report = sql::reportOf(outcome);
  const Ending ending{report.error, report.output};
  const auto row = lockRow(step, lease.job);
  if (row && row->isHeldUnder(lease)) {
    end(step, *row, report.trigger, ending);
    return ReportResult::accepted;
  }
  const JobState state = next(JobState::inProgress, report.trigger).value();
  return hasEnded(step, row, lease, state, ending) ? ReportResult::accepted : ReportResult::staleAttempt;
}

// Returns the number of outcomes at the front that share a transaction. A failing write of the database loses all of
// the outcomes, and the locks are held until the commit.
std::size_t countOfPart(std::span<const EndedAttempt> ends) {
  constexpr std::size_t kMostOutcomes = 64;
  constexpr std::size_t kMostBytes = 4UL << 20;
  std::size_t bytes = sql::reportOf(ends.front().outcome).output.size();
  std::size_t count = 1;
  for (; count < std::min(ends.size(), kMostOutcomes); ++count) {
    bytes += sql::reportOf(ends[count].outcome).output.size();
    if (bytes > kMostBytes) break;
  }
  return count;
}

std::optional<sql::QueuePlace> placeOf(Connection& connection, const JobKey& key, Instant now) {
  Query query = connection.query(
      "SELECT low, queue_rank, IF(arrival = 0, num, arrival) FROM job "
      "WHERE id = ? AND endpoint = ? AND state = 0 AND expires_at > ?");
  if (!query.bind(key.id, key.endpoint, now).next()) return std::nullopt;
  return sql::QueuePlace{query.integer(0), query.integer(1), query.integer(2)};
}

/// Returns the number of queued jobs before `place`, at most `most`. The comparison of rows is no range for MySQL, so
/// the condition is written out.
std::size_t countBefore(Connection& connection, const EndpointId& endpoint, const sql::QueuePlace& place,
                        std::size_t most, Instant now) {
  Query query = connection.query(
      "SELECT COUNT(*) FROM (SELECT 1 FROM ready_job WHERE endpoint = ? AND expires_at > ? AND (low < ? OR "
      "(low = ? AND queue_rank < ?) OR (low = ? AND queue_rank = ? AND arrival < ?)) LIMIT ?) AS before_it");
  query.bind(endpoint, now, place.low, place.low, place.rank, place.low, place.rank, place.arrival, most).next();
  return query.size(0);
}

/// Number of endpoints in a claim from which on the claim first reads in the counters which endpoints have a queue.
constexpr std::size_t kManyWants = 4;

}  // namespace

ClaimResult Leases::claim(std::span<const ClaimWant> wants, const Holder& holder, CallId id, std::uint64_t mostBytes) {
  return writer_.write([&](Step& step) {
    ClaimResult claimed;
    InputBound bound(mostBytes);
    if (!shareLife(step, holder)) return claimed;
    std::optional<std::vector<QueuedEndpoint>> queued;
    if (wants.size() >= kManyWants) queued = endpointsWithQueue(step.db);
    for (const ClaimWant& want : wants) {
      if (queued && std::ranges::find(*queued, want.endpoint, &QueuedEndpoint::endpoint) == queued->end()) continue;
      claimFor(step, want, {holder.epoch, id}, bound, claimed.jobs);
    }
    claimed.left = bound.extractRefused();
    return claimed;
  });
}

std::vector<ClaimedJob> Leases::claimed(std::span<const ClaimWant> wants, CallId id) {
  return readers_.read([&](Connection& connection) {
    awaitClaims(connection);
    const Snapshot snapshot(connection);
    const Instant now = clock_.now();
    std::vector<ClaimedJob> jobs;
    for (const ClaimWant& want : wants) {
      const auto running = runningUnder(connection, want.endpoint, id, now);
      for (const WorkerId& worker : want.workers) {
        const auto [from, to] = running.equal_range(worker);
        for (auto at = from; at != to; ++at) {
          if (auto job = claimedJob(connection, at->second, now)) jobs.push_back(std::move(*job));
        }
      }
    }
    return jobs;
  });
}

std::vector<LeaseState> Leases::states(std::span<const LeaseRef> leases) {
  if (leases.empty()) return {};
  std::vector<JobId> ids;
  ids.reserve(leases.size());
  for (const LeaseRef& lease : leases) ids.push_back(lease.job);
  const auto jobs = readers_.read([&](Connection& connection) { return glanceAt(connection, ids, clock_.now()); });
  std::vector<LeaseState> states;
  states.reserve(leases.size());
  for (const LeaseRef& lease : leases) states.push_back(stateOf(lease, jobs));
  return states;
}

std::vector<QueuedEndpoint> Leases::queuedEndpoints() { return glances_.read(kNewGlance).queued; }

FinishResult Leases::finish(std::span<const EndedAttempt> ends, Durability durability,
                            const std::optional<FusedClaim>& claim) {
  if (claim || durability == Durability::unsynced) throwLacking("LeaseStore::finish() with a claim or without a sync");
  refusePlanned(ends);
  std::deque<sql::ReportsUnderWay::Entry> entries;  // an element never moves
  for (const EndedAttempt& end : ends) entries.emplace_back(reports_, end.lease);
  FinishResult done;
  done.reports.reserve(ends.size());
  while (!ends.empty()) {
    const auto part = ends.first(countOfPart(ends));
    ends = ends.subspan(part.size());
    std::size_t bytes = 0;
    std::vector<std::string_view> jobs;
    jobs.reserve(part.size());
    for (const EndedAttempt& end : part) {
      jobs.emplace_back(end.lease.job);
      bytes += sql::reportOf(end.outcome).output.size();
    }
    const auto finishPart = [part](Step& step) {
      std::vector<ReportResult> finished;
      finished.reserve(part.size());
      for (const EndedAttempt& end : part) finished.push_back(finishNow(step, end.lease, end.outcome));
      return finished;
    };
    const std::span<const std::string_view> further = std::span(jobs).subspan(1);
    std::ranges::copy(writer_.write(finishPart, {.bytes = bytes, .job = jobs.front(), .furtherJobs = further}),
                      std::back_inserter(done.reports));
  }
  return done;
}

ReportResult Leases::progress(const LeaseRef& lease, std::string json) {
  const auto setNow = [&](Step& step) {
    const auto row = lockHeld(step, lease);
    if (!row) return ReportResult::staleAttempt;
    step.db.later("REPLACE INTO job_progress (num, progress) VALUES (?, ?)").add(row->num, Lent{json});
    if (!row->hasProgress) step.db.later("UPDATE job SET has_progress = 1 WHERE num = ?").add(row->num);
    return ReportResult::accepted;
  };
  return writer_.write(setNow, {.bytes = json.size(), .job = lease.job});
}

std::optional<std::size_t> Leases::ahead(const JobKey& key, std::size_t most) {
  return readers_.read([&](Connection& connection) -> std::optional<std::size_t> {
    const Instant now = clock_.now();
    const auto place = placeOf(connection, key, now);
    if (!place) return std::nullopt;
    return most == 0 ? 0 : countBefore(connection, key.endpoint, *place, most, now);
  });
}

}  // namespace jobq::mysql
