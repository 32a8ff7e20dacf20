#include "line.h"

#include <algorithm>

namespace jobq::sqlite {
namespace {

std::optional<std::int64_t> firstNumber(Query& query) {
  return query.next() ? std::optional(query.integer(0)) : std::nullopt;
}

/// One look at the head of each class; the index is in rank order within a class.
std::optional<std::int64_t> lowestWaiting(Step& step, const EndpointId& endpoint) {
  std::optional<std::int64_t> lowest;
  for (const bool low : {false, true}) {
    Query query = step.db.query(
        "SELECT rank FROM job INDEXED BY job_waiting WHERE endpoint = ?1 AND low = ?2 AND state = 0 AND "
        "expires_at > ?3 ORDER BY rank LIMIT 1");
    const auto rank = firstNumber(query.bind(endpoint, low, step.now));
    if (rank) lowest = std::min(*rank, lowest.value_or(*rank));
  }
  return lowest;
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
  state.lowestWaiting = lowestWaiting(step, job.endpoint);
  const std::int64_t rank = policy.rank(job, step.now, state);
  step.db.query("INSERT OR REPLACE INTO line_group (endpoint, name, last_rank) VALUES (?1, ?2, ?3)")
      .bind(job.endpoint, group, rank)
      .run();
  return rank;
}

}  // namespace jobq::sqlite
