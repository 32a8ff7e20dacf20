#include "writes/counters.h"

namespace jobq::sqlite {
namespace {

/// Returns the numbers left of a deleted endpoint: the totals end, the webhooks stay owed.
Tally forgotten(const Tally& before) {
  Tally tally;
  tally.owed = before.owed;
  return tally;
}

std::int64_t in(const Tally& tally, JobState state) { return tally.jobs[static_cast<std::size_t>(state)]; }

/// The part of the totals that belongs to jobs that are not in their final state any more, or not in the file.
struct GoneTotals {
  std::int64_t completed;
  std::int64_t failed;
};

GoneTotals goneTotals(const Tally& tally) {
  return {tally.completed - in(tally, JobState::completed),
          tally.failed - in(tally, JobState::failed) - in(tally, JobState::timedOut)};
}

}  // namespace

Tally& Tally::operator+=(const Tally& other) noexcept {
  for (std::size_t i = 0; i < kStates; ++i) jobs[i] += other.jobs[i];
  queuedLow += other.queuedLow;
  completed += other.completed;
  failed += other.failed;
  retried += other.retried;
  owed += other.owed;
  return *this;
}

void CounterChanges::place(const std::string& endpoint, JobState state, bool low, std::int64_t jobs) {
  Tally& tally = at(endpoint).tally;
  tally.jobs[static_cast<std::size_t>(state)] += jobs;
  if (low && state == JobState::inQueue) tally.queuedLow += jobs;
}

void CounterChanges::moved(const std::string& endpoint, JobState from, JobState to, bool low) {
  place(endpoint, from, low, -1);
  place(endpoint, to, low, 1);
}

void CounterChanges::ended(const std::string& endpoint, JobState from, JobState to, bool low) {
  moved(endpoint, from, to, low);
  if (to == JobState::completed) ++at(endpoint).tally.completed;
  if (to == JobState::failed || to == JobState::timedOut) ++at(endpoint).tally.failed;
}

std::int64_t CounterChanges::queuedChange(std::string_view endpoint) const {
  const auto found = endpoints_.find(endpoint);
  return found == endpoints_.end() ? 0 : found->second.tally.jobs[static_cast<std::size_t>(JobState::inQueue)];
}

std::int64_t CounterChanges::owedChange(std::string_view endpoint) const {
  const auto found = endpoints_.find(endpoint);
  return found == endpoints_.end() ? 0 : found->second.tally.owed;
}

void CounterChanges::forget(const std::string& endpoint) {
  Change& change = at(endpoint);
  change = Change{forgotten(change.tally), true};
}

void CounterChanges::persist(Connection& connection) const {
  for (const auto& [endpoint, change] : endpoints_) {
    if (change.forgotten) connection.query("DELETE FROM endpoint_count WHERE endpoint = ?1").bind(endpoint).run();
    const GoneTotals gone = goneTotals(change.tally);
    if (gone.completed == 0 && gone.failed == 0 && change.tally.retried == 0) continue;
    connection
        .query(
            "INSERT INTO endpoint_count (endpoint, completed, failed, retried) VALUES (?1, ?2, ?3, ?4) "
            "ON CONFLICT (endpoint) DO UPDATE SET completed = completed + excluded.completed, "
            "failed = failed + excluded.failed, retried = retried + excluded.retried")
        .bind(endpoint, gone.completed, gone.failed, change.tally.retried)
        .run();
  }
}

void Counters::load(Connection& connection, RunningRows& running) {
  std::int64_t others = 0;  // jobs that are not running
  std::map<std::string, Tally, std::less<>> loaded;
  {
    Query waiting = connection.query(
        "SELECT endpoint, low, count(*) FROM job INDEXED BY job_waiting WHERE state = 0 GROUP BY endpoint, low");
    while (waiting.next()) {
      Tally& tally = loaded[waiting.text(0)];
      tally.jobs[static_cast<std::size_t>(JobState::inQueue)] += waiting.integer(2);
      others += waiting.integer(2);
      if (waiting.flag(1)) tally.queuedLow += waiting.integer(2);
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
    Tally& tally = loaded[totals.text(0)];
    tally.completed = totals.integer(1);
    tally.failed = totals.integer(2);
    tally.retried = totals.integer(3);
  }
  for (auto& [endpoint, tally] : loaded) {
    tally.completed += in(tally, JobState::completed);
    tally.failed += in(tally, JobState::failed) + in(tally, JobState::timedOut);
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
    Tally& tally = endpoints_.find(endpoint)->second;
    if (change.forgotten) tally = forgotten(tally);
    tally += change.tally;
  }
}

Tally Counters::of(std::string_view endpoint) const {
  Lock lock(mutex_);
  const auto found = endpoints_.find(endpoint);
  return found == endpoints_.end() ? Tally{} : found->second;
}

std::vector<QueuedEndpoint> Counters::queuedEndpoints() const {
  Lock lock(mutex_);
  std::vector<QueuedEndpoint> queued;
  for (const auto& [endpoint, tally] : endpoints_) {
    const std::int64_t jobs = tally.jobs[static_cast<std::size_t>(JobState::inQueue)];
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
