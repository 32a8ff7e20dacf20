// The reads of the job store. Each read is a statement or a snapshot; no read waits for a write.
#include "reads/job_reads.h"

#include <algorithm>
#include <limits>

#include "jobs.h"
#include "storage_sql/listing.h"
#include "storage_sql/rows.h"
#include "storage_sql/tally.h"
#include "writes/counters.h"

namespace jobq::mysql {
namespace {

/// Number of ids in one statement of glanceAt(). The statement has as many places.
constexpr std::size_t kIdsTogether = 32;
#define JOBQ_EIGHT_PLACES "?, ?, ?, ?, ?, ?, ?, ?"
#define JOBQ_ALL_PLACES JOBQ_EIGHT_PLACES ", " JOBQ_EIGHT_PLACES ", " JOBQ_EIGHT_PLACES ", " JOBQ_EIGHT_PLACES

Tally countExpired(Connection& connection, std::string_view endpoint, Instant now) {
  Query query = connection.query(
      "SELECT state, low, COUNT(*) FROM (SELECT endpoint, state, low FROM job FORCE INDEX (job_expiry) "
      "WHERE expires_at <= ? ORDER BY expires_at LIMIT ?) AS expired WHERE endpoint = ? GROUP BY state, low");
  query.bind(now, sql::kExpiredBound, endpoint);
  Tally expired;
  while (query.next()) expired.place(query.state(0), query.flag(1), query.integer(2));
  return expired;
}

std::optional<Millis> headWait(Connection& connection, std::string_view endpoint, Instant now) {
  Query query = connection.query(
      "SELECT queued_at FROM ready_job WHERE endpoint = ? AND low = 0 AND expires_at > ? "
      "ORDER BY queue_rank, arrival LIMIT 1");
  if (!query.bind(endpoint, now).next()) return std::nullopt;
  return now - query.instant(0);
}

/// The columns of a Job, in the order of reading in sql::jobOf().
#define JOBQ_MYSQL_JOB                                                                                 \
  "job.id, job.endpoint, job.state, job.attempt, job.losses, job.retries, job.low, job.submitted_at, " \
  "job.queued_at, job.started_at, job.finished_at, job.expires_at, job.worker"

// A listed error is short; a stored error may have 64 KB. Bytes are cut here, not characters: listedError() cuts at a
// character.
#define JOBQ_MYSQL_LISTED \
  "SELECT " JOBQ_MYSQL_JOB ", job.num, SUBSTR(job_output.error, 1, 2048), job_input.api_key FROM job "
#define JOBQ_MYSQL_LISTED_BODIES \
  "LEFT JOIN job_output ON job_output.num = job.num LEFT JOIN job_input ON job_input.num = job.num "
#define JOBQ_MYSQL_PAGE "job.num < ? AND job.expires_at > ? ORDER BY job.num DESC LIMIT ? OFFSET ?"

const char* listStatement(const JobFilter& filter) {
  if (!filter.state) {
    return JOBQ_MYSQL_LISTED "FORCE INDEX (job_of_endpoint) " JOBQ_MYSQL_LISTED_BODIES
                             "WHERE job.endpoint = ? AND (? OR job.state = ?) AND " JOBQ_MYSQL_PAGE;
  }
  return JOBQ_MYSQL_LISTED "FORCE INDEX (job_of_state) " JOBQ_MYSQL_LISTED_BODIES
                           "WHERE job.endpoint = ? AND ? = 0 AND job.state = ? AND " JOBQ_MYSQL_PAGE;
}

void glanceAtSome(Connection& connection, std::span<const JobId> ids, Instant now,
                  std::map<JobId, JobGlance, std::less<>>& found) {
  Query query = connection.query(
      "SELECT id, endpoint, state, attempt, chunks FROM job WHERE expires_at > ? AND id IN (" JOBQ_ALL_PLACES ")");
  query.bind(now);
  for (std::size_t i = 0; i < kIdsTogether; ++i) query.bind(ids[std::min(i, ids.size() - 1)]);
  while (query.next()) {
    found[query.text(0)] = {query.text(1), query.state(2), query.number(3), query.count(4)};
  }
}

}  // namespace

std::map<JobId, JobGlance, std::less<>> glanceAt(Connection& connection, const std::vector<JobId>& ids, Instant now) {
  std::map<JobId, JobGlance, std::less<>> found;
  for (std::span<const JobId> left(ids); !left.empty();) {
    const std::span<const JobId> some = left.first(std::min(kIdsTogether, left.size()));
    glanceAtSome(connection, some, now, found);
    left = left.subspan(some.size());
  }
  return found;
}

std::optional<Job> Jobs::find(const JobKey& key, std::uint64_t mostBytes, JobExtent extent) {
  const auto most =
      static_cast<std::int64_t>(std::min<std::uint64_t>(mostBytes, std::numeric_limits<std::int64_t>::max()));
  return readers_.read([&](Connection& connection) -> std::optional<Job> {
    Query query = connection.query(
        "SELECT " JOBQ_MYSQL_JOB
        ", job_output.error, job_progress.progress, IF(LENGTH(job_output.output) > ?, NULL, job_output.output), "
        "IFNULL(LENGTH(job_output.output), 0), job_input.api_key, "
        "IF(NOT ? OR LENGTH(job_input.input) > ?, NULL, job_input.input), IF(?, LENGTH(job_input.input), 0) FROM job "
        "LEFT JOIN job_output ON job_output.num = job.num LEFT JOIN job_progress ON job_progress.num = job.num "
        "LEFT JOIN job_input ON job_input.num = job.num WHERE job.id = ? AND job.endpoint = ? AND job.expires_at > ?");
    const bool withInput = extent == JobExtent::input;
    query.bind(most, withInput, most, withInput, key.id, key.endpoint, clock_.now());
    if (!query.next()) return std::nullopt;
    Job job = sql::jobOf(query);
    job.error = query.text(sql::kJobColumns);
    job.progress = query.text(sql::kJobColumns + 1);
    job.output = query.text(sql::kJobColumns + 2);
    job.apiKeyId = query.text(sql::kJobColumns + 4);
    job.input = query.text(sql::kJobColumns + 5);
    job.bodyBytes = query.count(sql::kJobColumns + 3) + job.progress.size() + query.count(sql::kJobColumns + 6);
    if (job.bodyBytes > mostBytes) dropBodies(job);
    return job;
  });
}

std::vector<std::optional<JobSummary>> Jobs::summaries(std::span<const JobKey> keys) {
  if (keys.empty()) return {};
  std::vector<JobId> ids;
  ids.reserve(keys.size());
  for (const JobKey& key : keys) ids.push_back(key.id);
  const auto found = readers_.read([&](Connection& connection) { return glanceAt(connection, ids, clock_.now()); });
  std::vector<std::optional<JobSummary>> summaries;
  summaries.reserve(keys.size());
  for (const JobKey& key : keys) {
    auto& summary = summaries.emplace_back();
    const auto job = found.find(key.id);
    if (job == found.end() || job->second.endpoint != key.endpoint) continue;
    summary = JobSummary{job->second.state, job->second.attempt, job->second.chunks};
  }
  return summaries;
}

JobPage Jobs::list(const JobFilter& filter, const PageWindow& window) {
  return readers_.read([&](Connection& connection) {
    const Snapshot snapshot(connection);
    const Instant now = clock_.now();
    JobPage page;
    page.total =
        sql::totalOf(readTally(connection, filter.endpoint), countExpired(connection, filter.endpoint, now), filter);
    if (window.offset >= page.total || window.limit == 0) return page;  // avoids walking over all jobs
    const std::int64_t before =
        window.cursor == 0 ? std::numeric_limits<std::int64_t>::max() : static_cast<std::int64_t>(window.cursor);
    PageWindow rest = window;
    rest.offset = 0;  // the database skips the rows, because a connection keeps all rows of an answer
    sql::PageBuilder builder(page, filter, rest);
    Query query = connection.query(listStatement(filter));
    query.bind(filter.endpoint, !filter.state, filter.state.value_or(JobState::inQueue), before, now, builder.most(),
               window.offset);
    builder.addAll(query);
    return page;
  });
}

namespace {

EndpointCounts countsOf(Connection& connection, std::string_view endpoint, const Tally& all, Instant now) {
  const bool hasJobs = std::any_of(all.jobs.begin(), all.jobs.end(), [](std::int64_t jobs) { return jobs > 0; });
  const Tally expired = hasJobs ? countExpired(connection, endpoint, now) : Tally{};
  EndpointCounts counts = sql::countsOf(all, expired, std::nullopt);
  if (counts.inQueue > 0) counts.headWait = headWait(connection, endpoint, now);
  return counts;
}

}  // namespace

EndpointCounts Jobs::counts(std::string_view endpoint) {
  return readers_.read([&](Connection& connection) {
    const Snapshot snapshot(connection);
    return countsOf(connection, endpoint, readTally(connection, endpoint), clock_.now());
  });
}

std::map<EndpointId, EndpointCounts> Jobs::allCounts() {
  return readers_.read([&](Connection& connection) {
    const Snapshot snapshot(connection);
    const Instant now = clock_.now();
    std::map<EndpointId, EndpointCounts> all;
    for (const auto& [endpoint, tally] : readTallies(connection)) {
      all.emplace(endpoint, countsOf(connection, endpoint, tally, now));
    }
    return all;
  });
}

}  // namespace jobq::mysql
