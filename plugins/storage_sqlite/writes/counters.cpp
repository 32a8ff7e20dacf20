#include "writes/counters.h"

namespace jobq::sqlite {
namespace {

/// Returns the numbers left of a deleted endpoint: the totals end, the webhooks stay owed.
sql::Tally forgotten(const sql::Tally& before) {
  sql::Tally tally;
  tally.owed = before.owed;
  return tally;
}

/// The part of the totals that belongs to jobs that are not in their final state any more, or not in the file.
struct GoneTotals {
  std::int64_t completed;
  std::int64_t failed;
};

GoneTotals goneTotals(const sql::Tally& tally) {
  return {tally.completed - tally.in(JobState::completed),
          tally.failed - tally.in(JobState::failed)-tally.in(JobState::timedOut)};
}

void add(sql::Tally& tally, const sql::Tally& change) noexcept {
  for (std::size_t i = 0; i < sql::kStates; ++i) tally.jobs[i] += change.jobs[i];
  tally.queuedLow += change.queuedLow;
  tally.completed += change.completed;
  tally.failed += change.failed;
  tally.retried += change.retried;
  tally.owed += change.owed;
}

}  // namespace

void CounterChanges::forget(const EndpointId& endpoint) {
  TallyChange& change = endpoints_[endpoint];
  change = {forgotten(change), true};
}

void CounterChanges::persist(Connection& connection) const {
  for (const auto& [endpoint, change] : endpoints_) {
    if (change.forgotten) connection.query("DELETE FROM endpoint_count WHERE endpoint = ?1").bind(endpoint).run();
    const GoneTotals gone = goneTotals(change);
    if (gone.completed == 0 && gone.failed == 0 && change.retried == 0) continue;
    connection
        .query(
            "INSERT INTO endpoint_count (endpoint, completed, failed, retried) VALUES (?1, ?2, ?3, ?4) "
            "ON CONFLICT (endpoint) DO UPDATE SET completed = completed + excluded.completed, "
            "failed = failed + excluded.failed, retried = retried + excluded.retried")
        .bind(endpoint, gone.completed, gone.failed, change.retried)
        .run();
  }
}

void Counters::load(Connection& connection, RunningRows& running) {
  std::int64_t others = 0;  // jobs that are not running
  std::map<EndpointId, sql::Tally, std::less<>> loaded;
  {
    Query waiting = connection.query(
        "SELECT endpoint, low, count(*) FROM job INDEXED BY job_waiting WHERE state = 0 GROUP BY endpoint, low");
    while (waiting.next()) {
      loaded[waiting.text(0)].place(JobState::inQueue, waiting.flag(1), waiting.integer(2));
      others += waiting.integer(2);
    }
  }
  {
    Query ended = connection.query(
        "SELECT endpoint, state, count(*) FROM job INDEXED BY job_ended WHERE state > 1 AND listed = 1 GROUP BY "
        "endpoint, state");
    while (ended.next()) {
      loaded[ended.text(0)].jobs.at(ended.size(1)) = ended.integer(2);
      others += ended.integer(2);
    }
  }
  running.load(connection, others);
  for (const auto& [endpoint, jobs] : running.countByEndpoint()) {
    loaded[endpoint].jobs[static_cast<std::size_t>(JobState::inProgress)] = jobs;
  }
  {
    Query owed = connection.query(
        "SELECT endpoint, count(*) FROM delivery INDEXED BY delivery_owed WHERE state = 0 GROUP BY endpoint");
    while (owed.next()) loaded[owed.text(0)].owed = owed.integer(1);
  }
  Query totals = connection.query("SELECT endpoint, completed, failed, retried FROM endpoint_count");
  while (totals.next()) {
    sql::Tally& tally = loaded[totals.text(0)];
    tally.completed = totals.integer(1);
    tally.failed = totals.integer(2);
    tally.retried = totals.integer(3);
  }
  for (auto& [endpoint, tally] : loaded) {
    tally.completed += tally.in(JobState::completed);
    tally.failed += tally.in(JobState::failed) + tally.in(JobState::timedOut);
  }
  Lock lock(mutex_);
  endpoints_ = std::move(loaded);
}

void Counters::prepare(const CounterChanges& changes) {
  Lock lock(mutex_);
  for (const auto& [endpoint, change] : changes.endpoints_) endpoints_.try_emplace(endpoint);
}

void Counters::apply(const CounterChanges& changes) noexcept {
  Lock lock(mutex_);
  for (const auto& [endpoint, change] : changes.endpoints_) {
    sql::Tally& tally = endpoints_.find(endpoint)->second;
    if (change.forgotten) tally = forgotten(tally);
    add(tally, change);
  }
}

sql::Tally Counters::of(std::string_view endpoint) const {
  Lock lock(mutex_);
  const auto found = endpoints_.find(endpoint);
  return found == endpoints_.end() ? sql::Tally{} : found->second;
}

std::vector<QueuedEndpoint> Counters::queuedEndpoints() const {
  Lock lock(mutex_);
  std::vector<QueuedEndpoint> queued;
  for (const auto& [endpoint, tally] : endpoints_) {
    const std::int64_t jobs = tally.in(JobState::inQueue);
    if (jobs > 0) queued.push_back({endpoint, jobs > tally.queuedLow});
  }
  return queued;
}

std::vector<std::string> Counters::names() const {
  Lock lock(mutex_);
  std::vector<std::string> names;
  for (const auto& each : endpoints_) names.push_back(each.first);
  return names;
}

std::vector<std::string> Counters::owing() const {
  Lock lock(mutex_);
  std::vector<std::string> owing;
  for (const auto& [endpoint, tally] : endpoints_) {
    if (tally.owed > 0) owing.push_back(endpoint);
  }
  return owing;
}

}  // namespace jobq::sqlite
