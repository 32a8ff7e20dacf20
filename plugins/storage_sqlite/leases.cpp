// The reports and requests of a worker: claim, finish, progress, adopt.
#include "leases.h"

#include <algorithm>
#include <deque>
#include <map>
#include <string>
#include <string_view>
#include <utility>
#include <variant>

#include "claims.h"
#include "job_rows.h"
#include "jobq/planned.h"
#include "storage_sql/leases.h"

namespace jobq::sqlite {
namespace {

/// Returns the numbers of the endpoint's jobs that are IN_PROGRESS under the claim, by worker.
std::multimap<WorkerId, std::int64_t> runningUnder(Step& step, const EndpointId& endpoint, CallId id) {
  std::multimap<WorkerId, std::int64_t> running;
  for (const std::int64_t num : step.running.of(endpoint)) {
    Query query = step.db.query("SELECT worker FROM job WHERE num = ?1 AND claim = ?2 AND expires_at > ?3");
    if (query.bind(num, id, step.now).next()) running.emplace(query.text(0), num);
  }
  return running;
}

/// Returns whether the attempt of the lease has ended as `state` with this error and output.
bool hasEnded(Step& step, const BodyFiles& files, const LeaseRef& lease, JobState state, const sql::Report& report) {
  const auto row = findRow(step.db, step.listing.locate(lease.job), step.now);
  if (!row || row->state != state || row->attempt != lease.attempt) return false;
  Query query = step.db.query(
      "SELECT ifnull(ifnull(brief_error, error), '') = ?2, ifnull(ifnull(brief_output, output), x'') = ?3, "
      "output_file, size FROM job LEFT JOIN job_output USING (output_num) "
      "LEFT JOIN body_file ON body_file.id = output_file WHERE num = ?1");
  query.bind(row->num, report.error, Bytes{report.output}).next();
  const BodyFile file = bodyFileAt(query, 2);
  if (!file.isFile()) return query.flag(0) && query.flag(1);
  try {
    return query.flag(0) && files.isEqual(file, report.output);
  } catch (const UnreadableBody&) {
    return true;  // the attempt has ended in this state; an error would make the worker repeat its report for ever
  }
}

ReportResult finishNow(Step& step, const BodyFiles& files, const LeaseRef& lease, const sql::Report& report,
                       NewBody& output) {
  output.beginStep();
  if (const auto row = lockHeld(step, lease)) {
    end(step, *row, report.trigger, {report.error, &output});
    return ReportResult::accepted;
  }
  const JobState state = next(JobState::inProgress, report.trigger).value();
  return hasEnded(step, files, lease, state, report) ? ReportResult::accepted : ReportResult::staleAttempt;
}

/// Returns the state of the attempt of the job.
LeaseState stateOf(Connection& connection, const LocatedId& job, std::uint32_t attempt, Instant now) {
  const auto row = findRow(connection, job, now);
  return row ? sql::leaseStateOf(attempt, row->state, row->attempt) : LeaseState::deleted;
}

std::optional<sql::QueuePlace> placeOf(Connection& connection, const LocatedId& job, const EndpointId& endpoint,
                                       Instant now) {
  Query query = connection.query("SELECT low, rank, arrival FROM job WHERE num = " JOBQ_NUM_OF_ID
                                 " AND endpoint = ?3 AND state = 0 AND expires_at > ?4");
  if (!query.bind(job.id, job.unlisted, endpoint, now).next()) return std::nullopt;
  return sql::QueuePlace{query.integer(0), query.integer(1), query.integer(2)};
}

/// Returns the place of the queued job with the number `number`, counted from 1. Expired jobs are still in the index.
std::optional<sql::QueuePlace> placeAt(Connection& connection, const EndpointId& endpoint, std::size_t number,
                                       Instant now) {
  Query query = connection.query(
      "SELECT low, rank, arrival FROM job INDEXED BY job_waiting WHERE endpoint = ?1 AND state = 0 AND "
      "expires_at > ?2 ORDER BY low, rank, arrival LIMIT 1 OFFSET ?3");
  if (!query.bind(endpoint, now, number - 1).next()) return std::nullopt;
  return sql::QueuePlace{query.integer(0), query.integer(1), query.integer(2)};
}

/// Returns the number of queued jobs before `place`, at most `most`. The comparison leaves out the row of the job.
std::size_t countBefore(Connection& connection, const EndpointId& endpoint, const sql::QueuePlace& place,
                        std::size_t most, Instant now) {
  Query query = connection.query(
      "SELECT count(*) FROM (SELECT 1 FROM job INDEXED BY job_waiting WHERE endpoint = ?1 AND state = 0 AND "
      "expires_at > ?2 AND (low, rank, arrival) < (?3, ?4, ?5) LIMIT ?6)");
  query.bind(endpoint, now, place.low, place.rank, place.arrival, most).next();
  return query.size(0);
}

std::size_t numberOfWorkers(std::span<const ClaimWant> wants) {
  std::size_t workers = 0;
  for (const ClaimWant& want : wants) workers += want.workers.size();
  return workers;
}

}  // namespace

// Most calls come from idle workers. Where the counters show no queued job, the writer is not involved. The counters
// change before an insert returns, so no acknowledged job is missed.
ClaimResult Leases::claim(std::span<const ClaimWant> wants, const Holder& holder, CallId id, std::uint64_t mostBytes) {
  const auto waits = [this](const ClaimWant& want) { return counters_.of(want.endpoint).in(JobState::inQueue) > 0; };
  if (std::none_of(wants.begin(), wants.end(), waits)) return {};

  ClaimResult done;
  done.jobs.reserve(numberOfWorkers(wants));  // after the commit, a lack of memory would leave the jobs unanswered
  auto claims = writer_.writeUnsynced([&](Step& step) {
    InputBound bound(mostBytes);
    std::vector<Claim> claimed;
    if (!isAlive(step, holder)) return claimed;
    for (const ClaimWant& want : wants) claimFor(step, want, {holder.epoch, id}, bound, claimed);
    done.left = bound.extractRefused();
    return claimed;
  });
  bodies_.inputs.read(std::move(claims), done.jobs);
  return done;
}

// The writer runs the steps one by one, so this step comes behind every claim that was begun earlier.
std::vector<ClaimedJob> Leases::claimed(std::span<const ClaimWant> wants, CallId id) {
  return bodies_.inputs.read(writer_.writeUnsynced([&](Step& step) {
    std::vector<Claim> jobs;
    for (const ClaimWant& want : wants) {
      const auto running = runningUnder(step, want.endpoint, id);
      for (const WorkerId& worker : want.workers) {
        const auto [from, to] = running.equal_range(worker);
        for (auto at = from; at != to; ++at) jobs.push_back(claimedJob(step, at->second));
      }
    }
    return jobs;
  }));
}

std::vector<LeaseState> Leases::states(std::span<const LeaseRef> leases) {
  if (leases.empty()) return {};
  std::vector<LocatedId> jobs;
  jobs.reserve(leases.size());
  for (const LeaseRef& lease : leases) jobs.push_back(numbers_.locate(lease.job));
  return readers_.read([&](Connection& connection) {
    const Snapshot snapshot(connection);
    const Instant now = clock_.now();
    std::vector<LeaseState> states;
    states.reserve(leases.size());
    for (std::size_t i = 0; i < leases.size(); ++i) {
      states.push_back(stateOf(connection, jobs[i], leases[i].attempt, now));
    }
    return states;
  });
}

std::vector<QueuedEndpoint> Leases::queuedEndpoints() { return counters_.queuedEndpoints(); }

FinishResult Leases::finish(std::span<const EndedAttempt> ends, Durability durability,
                            const std::optional<FusedClaim>& claim) {
  refusePlanned(ends);
  std::deque<sql::ReportsUnderWay::Entry> entries;  // an element never moves
  std::deque<NewBody> outputs;
  for (const EndedAttempt& end : ends) entries.emplace_back(reports_, end.lease);
  for (const EndedAttempt& end : ends) outputs.emplace_back(bodies_.files, writer_, sql::reportOf(end.outcome).output);
  std::size_t bytes = 0;
  for (const NewBody& output : outputs) bytes += output.inRow().size();
  FinishResult done;
  done.reports.reserve(ends.size());
  if (claim)
    done.claimed.reserve(claim->want.workers.size());  // after the commit, a lack of memory would lose the jobs
  const auto finishThem = [&](Step& step) {
    std::vector<Claim> claimed;
    done.reports.clear();
    auto output = outputs.begin();
    for (const EndedAttempt& end : ends) {
      if (durability == Durability::unsynced) writer_.unsynced().add(end.lease.job);
      done.reports.push_back(finishNow(step, bodies_.files, end.lease, sql::reportOf(end.outcome), *output++));
    }
    InputBound bound(kMostFusedInput);
    if (claim && isAlive(step, claim->holder)) {
      claimFor(step, claim->want, {claim->holder.epoch, claim->id}, bound, claimed);
    }
    return claimed;
  };
  std::vector<Claim> claimed =
      durability == Durability::synced ? writer_.write(finishThem, bytes) : writer_.writeUnsynced(finishThem, bytes);
  for (NewBody& output : outputs) output.noteCommit();
  bodies_.inputs.read(std::move(claimed), done.claimed);
  return done;
}

ReportResult Leases::progress(const LeaseRef& lease, std::string json) {
  return writer_.writeUnsynced([&](Step& step) {
    const auto row = lockHeld(step, lease);
    if (!row) return ReportResult::staleAttempt;
    step.db.query("INSERT OR REPLACE INTO job_progress (num, progress) VALUES (?1, ?2)")
        .bind(row->num, Bytes{json})
        .run();
    return ReportResult::accepted;
  });
}

std::vector<ClaimedJob> Leases::adopt(const Holder& holder) {
  return writer_.writeUnsynced([&](Step& step) {
    std::vector<ClaimedJob> adopted;
    if (!isAlive(step, holder)) return adopted;
    for (const std::int64_t num : step.running.all()) {
      Query query =
          step.db.query("SELECT worker FROM job WHERE num = ?1 AND holder = ?2 AND deadline > ?3 AND expires_at > ?3");
      if (!query.bind(num, kLifeEnded, step.now).next() || !outlivesNode(query.text(0))) continue;
      step.db.query("UPDATE job SET holder = ?2 WHERE num = ?1").bind(num, holder.epoch).run();
      adopted.push_back(std::move(claimedJob(step, num).job));
      std::string().swap(adopted.back().input);  // an assignment would keep the memory
    }
    return adopted;
  });
}

std::optional<std::size_t> Leases::ahead(const JobKey& key, std::size_t most) {
  const LocatedId located = numbers_.locate(key.id);
  return readers_.read([&](Connection& connection) -> std::optional<std::size_t> {
    const Snapshot snapshot(connection);
    const Instant now = clock_.now();
    const auto place = placeOf(connection, located, key.endpoint, now);
    if (!place || most == 0) return place ? std::optional<std::size_t>(0) : std::nullopt;
    auto bound = bounds_.find(key.endpoint, most, now);
    if (!bound) {
      bound = QueueBound{now, most, placeAt(connection, key.endpoint, most, now)};
      bounds_.remember(key.endpoint, *bound);
    }
    if (bound->place && *place > *bound->place) return most;
    return countBefore(connection, key.endpoint, *place, most, now);
  });
}

}  // namespace jobq::sqlite
