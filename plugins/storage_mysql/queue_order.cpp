#include "queue_order.h"

#include <string>

namespace jobq::mysql {
namespace {

std::optional<std::int64_t> lowestWaiting(Step& step, const JobSpec& job) {
  Query query = step.db.query(
      "SELECT queue_rank FROM ready_job WHERE endpoint = ? AND low = ? AND expires_at > ? "
      "ORDER BY queue_rank LIMIT 1");
  if (!query.bind(job.endpoint, job.policy.lowPriority, step.now).next()) return std::nullopt;
  return query.integer(0);
}

/// Locks the row of the group, which is created without a rank if there is none.
std::optional<std::int64_t> lockLastRank(Step& step, const JobSpec& job, const std::string& group) {
  step.db.query("INSERT IGNORE INTO queue_group (endpoint, name, last_rank) VALUES (?, ?, NULL)")
      .bind(job.endpoint, group)
      .run();
  Query query = step.db.query("SELECT last_rank FROM queue_group WHERE endpoint = ? AND name = ? FOR UPDATE");
  if (!query.bind(job.endpoint, group).next() || query.null(0)) return std::nullopt;
  return query.integer(0);
}

}  // namespace

std::int64_t rankOf(Step& step, const JobSpec& job, const QueuePolicy& policy) {
  const std::string group = policy.group(job);
  if (group.empty()) return policy.rank(job, step.now, GroupState{});
  GroupState state;
  state.lastRank = lockLastRank(step, job, group);
  state.lowestWaiting = lowestWaiting(step, job);
  const std::int64_t rank = policy.rank(job, step.now, state);
  step.db.query("UPDATE queue_group SET last_rank = ? WHERE endpoint = ? AND name = ?")
      .bind(rank, job.endpoint, group)
      .run();
  return rank;
}

}  // namespace jobq::mysql
