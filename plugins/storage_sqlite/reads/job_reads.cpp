// The reads of the job store. Each read is a statement or a snapshot on a read connection; no read waits for a write,
// unless the read shows a job that is not durable yet (`unsynced_jobs.h`).
#include <algorithm>
#include <functional>
#include <limits>
#include <utility>

#include "jobq/transitions.h"
#include "jobs.h"
#include "storage_sql/listing.h"
#include "storage_sql/rows.h"
#include "storage_sql/tally.h"

namespace jobq::sqlite {
namespace {

/// The columns of a Job, in the order of reading in sql::jobOf().
#define JOBQ_JOB_COLUMNS                                                                               \
  "job.id, job.endpoint, job.state, job.attempt, job.losses, job.retries, job.low, job.submitted_at, " \
  "job.queued_at, job.started_at, job.finished_at, job.expires_at, job.worker"

#define JOBQ_WHOLE_JOB                                                                        \
  "SELECT " JOBQ_JOB_COLUMNS                                                                  \
  ", ifnull(brief_error, error), progress, ifnull(brief_output, output), output_file, size, " \
  "ifnull(brief_key, api_key) FROM job LEFT JOIN job_output USING (output_num) "              \
  "LEFT JOIN job_progress USING (num) LEFT JOIN job_input USING (num) "                       \
  "LEFT JOIN body_file ON body_file.id = output_file "

Job wholeJobOf(const CurrentRow& columns) {
  Job job = sql::jobOf(columns);
  job.error = columns.text(sql::kJobColumns);
  job.progress = columns.text(sql::kJobColumns + 1);
  job.output = columns.text(sql::kJobColumns + 2);
  job.apiKeyId = columns.text(sql::kJobColumns + 5);
  return job;
}

/// Returns the numbers of expired jobs not removed by a sweep yet, in a snapshot younger than the value `listed` of
/// JobNumbers::listed().
sql::Tally countExpired(Connection& connection, std::string_view endpoint, std::int64_t listed, Instant now) {
  Query query = connection.query(
      "SELECT state, low, count(*) FROM (SELECT endpoint, state, low FROM job INDEXED BY job_expiry "
      "WHERE listed = 1 AND expires_at <= ?1 ORDER BY expires_at LIMIT ?2) WHERE endpoint = ?3 GROUP BY state, low");
  query.bind(now, sql::kExpiredBound, endpoint);
  sql::Tally expired;
  while (query.next()) expired.place(query.state(0), query.flag(1), query.integer(2));
  Query unlisted = connection.query(
      "SELECT state, low FROM job NOT INDEXED WHERE num > ?1 AND listed = 0 AND endpoint = ?2 AND expires_at <= ?3");
  unlisted.bind(listed, endpoint, now);
  while (unlisted.next()) expired.place(unlisted.state(0), unlisted.flag(1), 1);
  return expired;
}

std::optional<Millis> headWait(Connection& connection, std::string_view endpoint, Instant now) {
  Query query = connection.query(
      "SELECT queued_at FROM job INDEXED BY job_waiting WHERE endpoint = ?1 AND low = 0 AND state = 0 AND "
      "expires_at > ?2 ORDER BY rank, arrival LIMIT 1");
  if (!query.bind(endpoint, now).next()) return std::nullopt;
  return now - query.instant(0);
}

// A listed error is short; a stored error may have 64 KB. Bytes are cut here, not characters: listedError() cuts at a
// character.
#define JOBQ_LISTED \
  JOBQ_JOB_COLUMNS ", job.num, substr(CAST(ifnull(brief_error, error) AS BLOB), 1, 2048), ifnull(brief_key, api_key) "
#define JOBQ_LISTED_BODIES "LEFT JOIN job_output USING (output_num) LEFT JOIN job_input USING (num) "

/// Selects the jobs that are not listed yet.
constexpr char kListUnlisted[] =
    "SELECT " JOBQ_LISTED "FROM job NOT INDEXED " JOBQ_LISTED_BODIES
    "WHERE num > ?6 AND num < ?5 AND listed = 0 AND endpoint = ?1 AND (?2 IS NULL OR state = ?2) AND expires_at > ?3 "
    "ORDER BY num DESC LIMIT ?4";

/// Selects the listed jobs.
const char* listStatement(const JobFilter& filter) {
  if (!filter.state) {
    return "SELECT " JOBQ_LISTED "FROM job INDEXED BY job_of_endpoint " JOBQ_LISTED_BODIES
           "WHERE listed = 1 AND endpoint = ?1 AND ?2 IS NULL AND num < ?5 AND expires_at > ?3 ORDER BY num DESC LIMIT "
           "?4";
  }
  // Many queued jobs are in the order of the queue, not of submission: here the index of the endpoint serves.
  if (*filter.state == JobState::inQueue) {
    return "SELECT " JOBQ_LISTED "FROM job INDEXED BY job_of_endpoint " JOBQ_LISTED_BODIES
           "WHERE listed = 1 AND endpoint = ?1 AND state = ?2 AND num < ?5 AND expires_at > ?3 ORDER BY num DESC LIMIT "
           "?4";
  }
  // unlikely() lets the planner use the equality: with the range of the partial index alone the planner reads and sorts
  // all rows.
  return "SELECT " JOBQ_LISTED "FROM job INDEXED BY job_ended " JOBQ_LISTED_BODIES
         "WHERE listed = 1 AND endpoint = ?1 AND state > 1 AND unlikely(state = ?2) AND num < ?5 AND expires_at > ?3 "
         "ORDER BY num DESC LIMIT ?4";
}

/// Adds the jobs that have the state in the snapshot, of the jobs in `numbers` below `before`, the newest first.
void addEach(sql::PageBuilder& builder, Connection& connection, const std::vector<std::int64_t>& numbers,
             JobState state, std::int64_t before, Instant now) {
  for (const std::int64_t num : numbers) {
    if (num >= before) continue;
    Query query = connection.query("SELECT " JOBQ_LISTED "FROM job " JOBQ_LISTED_BODIES
                                   "WHERE num = ?1 AND state = ?2 AND expires_at > ?3");
    if (query.bind(num, state, now).next() && !builder.add(query)) return;
  }
}

/// Returns the numbers of the queued jobs of the endpoint, the newest first, if they are few. The index of the queue
/// alone is read: a walk along the index of the endpoint would read the rows of all ended jobs between them.
std::optional<std::vector<std::int64_t>> fewQueued(Connection& connection, std::string_view endpoint, Instant now) {
  constexpr std::size_t kMost = 2'000;
  Query query = connection.query(
      "SELECT num FROM job INDEXED BY job_waiting WHERE endpoint = ?1 AND state = 0 AND expires_at > ?2 LIMIT ?3");
  query.bind(endpoint, now, kMost + 1);
  std::vector<std::int64_t> numbers;
  while (query.next()) numbers.push_back(query.integer(0));
  if (numbers.size() > kMost) return std::nullopt;
  std::sort(numbers.begin(), numbers.end(), std::greater<>());
  return numbers;
}

}  // namespace

// The file of an output is read outside of the snapshot, without a connection. If the file is missing, the output was
// removed meanwhile, as the second look at the row shows, or the folder is damaged.
std::optional<Job> Jobs::find(const JobKey& key, std::uint64_t mostBytes, JobExtent extent) {
  if (extent == JobExtent::input) {
    auto job = find(key, mostBytes, JobExtent::result);
    auto input = job ? inputs_.read(key, mostBytes - std::min(job->bodyBytes, mostBytes)) : std::nullopt;
    if (!input) return std::nullopt;  // also for a job that was removed in between
    job->bodyBytes += input->size;
    job->input = std::move(input->bytes);
    if (job->bodyBytes > mostBytes) dropBodies(*job);
    return job;
  }
  if (auto ended = ended_.extractJob(key, clock_.now())) {
    makeDurable(writer_, key.id);
    boundBodies(*ended, mostBytes);
    return ended;
  }
  BodyFile missing;
  for (;;) {
    BodyFile file;
    const LocatedId located = numbers_.locate(key.id);
    auto job = readers_.read([&](Connection& connection) -> std::optional<Job> {
      Query query =
          connection.query(JOBQ_WHOLE_JOB "WHERE job.num = " JOBQ_NUM_OF_ID " AND endpoint = ?3 AND expires_at > ?4");
      if (!query.bind(located.id, located.unlisted, key.endpoint, clock_.now()).next()) return std::nullopt;
      file = bodyFileAt(query, sql::kJobColumns + 3);
      return wholeJobOf(query);
    });
    if (job && file.isFile() && file.size + job->progress.size() > mostBytes) {
      makeDurable(writer_, key.id);
      job->bodyBytes = file.size + job->progress.size();
      std::string().swap(job->progress);
      return job;
    }
    if (job && file.isFile()) {
      auto output = bodies_.files.read(file);
      if (!output && file.number == missing.number) throw bodies_.files.missingError(file);
      missing = file;
      if (!output) continue;
      job->output = std::move(*output);
    }
    if (!job) return std::nullopt;
    makeDurable(writer_, key.id);
    boundBodies(*job, mostBytes);
    return job;
  }
}

std::vector<std::optional<JobSummary>> Jobs::summaries(std::span<const JobKey> keys) {
  if (keys.empty()) return {};
  std::vector<LocatedId> located;
  located.reserve(keys.size());
  for (const JobKey& key : keys) located.push_back(numbers_.locate(key.id));
  return readers_.read([&](Connection& connection) {
    const Snapshot snapshot(connection);
    const Instant now = clock_.now();
    std::vector<std::optional<JobSummary>> summaries;
    summaries.reserve(keys.size());
    for (std::size_t i = 0; i < keys.size(); ++i) {
      std::optional<JobSummary>& summary = summaries.emplace_back();
      Query query = connection.query("SELECT state, attempt, chunks FROM job WHERE num = " JOBQ_NUM_OF_ID
                                     " AND endpoint = ?3 AND expires_at > ?4");
      if (!query.bind(located[i].id, located[i].unlisted, keys[i].endpoint, now).next()) continue;
      summary = JobSummary{query.state(0), query.number(1), static_cast<std::uint64_t>(query.integer(2))};
    }
    return summaries;
  });
}

JobPage Jobs::list(const JobFilter& filter, const PageWindow& window) {
  const sql::Tally all = counters_.of(filter.endpoint);
  std::vector<std::int64_t> running;
  if (filter.state == JobState::inProgress) running = running_.newestOf(filter.endpoint);
  const std::int64_t listed = numbers_.listed();  // before the snapshot
  JobPage found = readers_.read([&](Connection& connection) {
    const Snapshot snapshot(connection);
    const Instant now = clock_.now();
    JobPage page;
    page.total = sql::totalOf(all, countExpired(connection, filter.endpoint, listed, now), filter);
    if (window.offset >= page.total || window.limit == 0) return page;  // avoids walking over all jobs
    const std::int64_t before =
        window.cursor == 0 ? std::numeric_limits<std::int64_t>::max() : static_cast<std::int64_t>(window.cursor);
    sql::PageBuilder builder(page, filter, window);
    if (filter.state == JobState::inProgress) {
      addEach(builder, connection, running, JobState::inProgress, before, now);
      return page;
    }
    if (filter.state == JobState::inQueue) {
      if (const auto queued = fewQueued(connection, filter.endpoint, now)) {
        addEach(builder, connection, *queued, JobState::inQueue, before, now);
        return page;
      }
    }
    // Each job that is not listed is newer than every listed one.
    Query unlisted = connection.query(kListUnlisted);
    unlisted.bind(filter.endpoint, filter.state, now, builder.most(), before, listed);
    if (!builder.addAll(unlisted)) return page;
    Query query = connection.query(listStatement(filter));
    query.bind(filter.endpoint, filter.state, now, builder.most(), before);
    builder.addAll(query);
    return page;
  });
  for (const Job& job : found.jobs) makeDurable(writer_, job.id);
  return found;
}

EndpointCounts Jobs::counts(std::string_view endpoint) {
  std::optional<Millis> head;
  const std::int64_t listed = numbers_.listed();  // before the snapshot
  const sql::Tally expired = readers_.read([&](Connection& connection) {
    const Snapshot snapshot(connection);
    const Instant now = clock_.now();
    head = headWait(connection, endpoint, now);
    return countExpired(connection, endpoint, listed, now);
  });
  return sql::countsOf(counters_.of(endpoint), expired, head);
}

std::map<EndpointId, EndpointCounts> Jobs::allCounts() {
  std::map<EndpointId, EndpointCounts> all;
  for (const EndpointId& endpoint : counters_.names()) all.emplace(endpoint, counts(endpoint));
  return all;
}

}  // namespace jobq::sqlite
