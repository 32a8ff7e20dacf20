#include "queue_order.h"

namespace jobq::sqlite {
namespace {

std::optional<std::int64_t> firstNumber(Query& query) {
  return query.next() ? std::optional(query.integer(0)) : std::nullopt;
}

/// Reads only the head of the job's class: the index is in the order of ranks within a class.
std::optional<std::int64_t> lowestWaiting(Step& step, const JobSpec& job) {
  Query query = step.db.query(
      "SELECT rank FROM job INDEXED BY job_waiting WHERE endpoint = ?1 AND low = ?2 AND state = 0 AND "
      "expires_at > ?3 ORDER BY rank LIMIT 1");
  return firstNumber(query.bind(job.endpoint, job.policy.lowPriority, step.now));
}

}  // namespace

std::int64_t rankOf(Step& step, const JobSpec& job, const QueuePolicy& policy) {
  const std::string group = policy.group(job);
  if (group.empty()) return policy.rank(job, step.now, GroupState{});

  GroupState state;
  {
    Query query = step.db.query("SELECT last_rank FROM line_group WHERE endpoint = ?1 AND name = ?2");
    state.lastRank = firstNumber(query.bind(job.endpoint, group));
  }
  state.lowestWaiting = lowestWaiting(step, job);
  const std::int64_t rank = policy.rank(job, step.now, state);
  step.db.query("INSERT OR REPLACE INTO line_group (endpoint, name, last_rank) VALUES (?1, ?2, ?3)")
      .bind(job.endpoint, group, rank)
      .run();
  return rank;
}

}  // namespace jobq::sqlite
