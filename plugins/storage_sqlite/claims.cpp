#include "claims.h"

#include <utility>

#include "job_rows.h"
#include "storage_sql/rows.h"

namespace jobq::sqlite {
namespace {

std::vector<std::int64_t> headOfQueue(Step& step, const EndpointId& endpoint, std::size_t max) {
  Query query = step.db.query(
      "SELECT num FROM job INDEXED BY job_waiting WHERE endpoint = ?1 AND state = 0 AND expires_at > ?2 "
      "ORDER BY low, rank, arrival LIMIT ?3");
  query.bind(endpoint, step.now, max);
  std::vector<std::int64_t> numbers;
  while (query.next()) numbers.push_back(query.integer(0));
  return numbers;
}

/// Returns the size of the job's input, 0 if its row is lost, which claimedJob() reports.
std::uint64_t inputBytes(Step& step, std::int64_t num) {
  Query query = step.db.query(
      "SELECT ifnull(size, length(input)) FROM job_input LEFT JOIN body_file ON body_file.id = input_file "
      "WHERE num = ?1");
  return query.bind(num).next() ? static_cast<std::uint64_t>(query.integer(0)) : 0;
}

void markClaimed(Step& step, std::int64_t num, const WorkerId& worker, const ClaimMark& mark) {
  constexpr JobState kTo = next(JobState::inQueue, Trigger::claim).value();
  step.db
      .query(
          "UPDATE job SET state = ?2, attempt = attempt + 1, started_at = ?3, deadline = ?3 + execution_timeout, "
          "holder = ?4, worker = ?5, claim = ?6 WHERE num = ?1")
      .bind(num, kTo, step.now, mark.holder, worker, mark.id)
      .run();
}

}  // namespace

bool isAlive(Step& step, const Holder& holder) {
  Query query = step.db.query("SELECT value = ?1 FROM number WHERE name = 'life'");
  return holder.epoch != 0 && query.bind(holder.epoch).next() && query.flag(0);
}

Claim claimedJob(Step& step, std::int64_t num) {
  Query query = step.db.query(
      "SELECT job.id, attempt, endpoint, worker, execution_timeout, ttl, low, priority, submitted_at, log_lines, "
      "started_at, min(deadline, expires_at), webhook, s3, input, input_file, size, queued_at, api_key "
      "FROM job JOIN job_input USING (num) LEFT JOIN body_file ON body_file.id = input_file WHERE num = ?1");
  if (!query.bind(num).next()) {
    // The job at the head of the queue could never be claimed: treated like any other damage (`writer.cpp`, `isFatal`).
    throw SqliteError(SQLITE_CORRUPT, "the database has lost the input of job number " + std::to_string(num) +
                                          "; the file is damaged: stop the server and restore a copy of data.dir");
  }
  ClaimedJob job = sql::claimedJobOf(query);
  job.startedAt = query.instant(10);
  job.runsFor = query.instant(11) - step.now;
  job.webhook = query.text(12);
  job.s3Config = query.text(13);
  job.input = query.text(14);
  Claim claim{std::move(job), {}, query.instant(17), query.text(18), {}};
  claim.setInputFile(bodyFileAt(query, 15));
  return claim;
}

void claimFor(Step& step, const ClaimWant& want, const ClaimMark& mark, InputBound& bound,
              std::vector<Claim>& claimed) {
  auto worker = want.workers.begin();
  for (const std::int64_t num : headOfQueue(step, want.endpoint, want.workers.size())) {
    if (!bound.addInput(want.endpoint, inputBytes(step, num))) return;
    markClaimed(step, num, *worker++, mark);
    const Claim& claim = claimed.emplace_back(claimedJob(step, num));
    step.running.begin(num, {want.endpoint, step.now + claim.job.policy.executionTimeout, claim.job.worker,
                             claim.queuedAt, step.now, claim.apiKeyId});
    step.counters.moved(want.endpoint, JobState::inQueue, JobState::inProgress, claim.job.policy.lowPriority);
  }
}

}  // namespace jobq::sqlite
