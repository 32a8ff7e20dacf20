#include "core/workers/remote/remote_elsewhere.h"

#include <algorithm>
#include <deque>
#include <iterator>
#include <set>

#include "core/workers/pool/endpoint_shares.h"

namespace jobq {
namespace {

constexpr Millis kRepeat{1'000};           ///< a stop is told again
constexpr Millis kHeardLongAgo{20'000};    ///< a ping sent before the job came has arrived after this time
constexpr Millis kMomentAgo{3'000};        ///< a closed connection counts for so long, because calls close theirs
constexpr Millis kLongestGap{5'000};       ///< between two news
constexpr Millis kSettle{5'000};           ///< time after a gap until all nodes have written the news
constexpr Millis kLeaves{5'000};           ///< a worker that leaves another node gets no job here for so long
constexpr int kOmissionsElsewhere = 2;     ///< same number as for pings here
constexpr std::size_t kMostUnknown = 100;  ///< for each worker
constexpr std::size_t kLongestJobId = 128;

bool hasAttempt(const AttemptMap& jobs, const JobId& job, std::uint32_t attempt) {
  const auto found = jobs.find(job);
  return found != jobs.end() && found->second == attempt;
}

// Returns true if the answers are about the stop: an attempt may be unknown, or later than the attempt of the stop.
bool hasStop(const AttemptMap& answers, const JobId& job, std::uint32_t attempt) {
  const auto found = answers.find(job);
  return found != answers.end() && (found->second == 0 || found->second >= attempt);
}

void keepLatest(AttemptMap& jobs, const JobId& job, std::uint32_t attempt) {
  std::uint32_t& kept = jobs[job];
  kept = std::max(kept, attempt);
}

// Counts a ping that leaves out the job. Returns true after kOmissionsElsewhere such pings.
bool isLeftOut(bool isListed, bool isOmitted, int& omitted) {
  if (isListed) omitted = 0;
  if (isOmitted) ++omitted;
  return omitted >= kOmissionsElsewhere;
}

// Applies a node's news about a worker to the jobs that this node has handed out to the worker.
void applyToWorker(const RemoteWorkerKey& key, RemoteWorker& worker, const WorkerNews& news, bool isNewPing,
                   Instant now, RemoteChanges& changes) {
  for (auto at = worker.stops.begin(); at != worker.stops.end();) {
    auto& [job, stop] = *at;
    const auto held = news.jobs.find(job);  // the node has handed the job out to the worker again
    const bool isListed = hasStop(news.listed, job, stop.attempt);
    stop.isShown = stop.isShown || isListed;
    const bool isOver = (held != news.jobs.end() && held->second > stop.attempt) ||
                        hasStop(news.ended, job, stop.attempt) ||
                        (isNewPing && stop.isKnownToWorker(now) &&
                         isLeftOut(isListed, hasStop(news.omitted, job, stop.attempt), stop.omitted));
    at = isOver ? worker.stops.erase(at) : std::next(at);
  }
  for (auto at = worker.jobs.begin(); at != worker.jobs.end();) {
    RemoteWorker::InHand& job = at->second;
    const LeaseRef lease = job.run->lease();
    const bool isEnded = hasAttempt(news.ended, lease.job, lease.attempt);
    const bool isListed = hasAttempt(news.listed, lease.job, lease.attempt);
    if (isListed && isNewPing) job.noteListed(now);
    job.isShown = job.isShown || isListed;
    const bool isLost =
        !isEnded && isNewPing && isLeftOut(isListed, hasAttempt(news.omitted, lease.job, lease.attempt), job.omitted);
    if (isLost) changes.lost.push_back(lease);
    if (isEnded || isLost) {
      changes.endedPlaces.emplace_back(key.endpoint, job.run->place());
      changes.ended.push_back(std::move(job.run));
    }
    at = isEnded || isLost ? worker.jobs.erase(at) : std::next(at);
  }
}

}  // namespace

RemoteElsewhere::Worker* RemoteElsewhere::find(const RemoteWorkerKey& key) {
  const auto found = workers_.find(key);
  return found == workers_.end() ? nullptr : &found->second;
}

const RemoteElsewhere::Worker* RemoteElsewhere::find(const RemoteWorkerKey& key) const {
  const auto found = workers_.find(key);
  return found == workers_.end() ? nullptr : &found->second;
}

bool RemoteElsewhere::isFresh(Instant now) const {
  return !isShared_ || (now <= readAt_ + kLongestGap && now >= freshSince_ + kSettle);
}

void RemoteElsewhere::addNews(const std::string& node, const OtherNode& other,
                              std::map<RemoteWorkerKey, Worker>& workers, Instant now) const {
  for (const auto& [key, news] : other.news.workers) {
    Worker& worker = workers[key];
    worker.isConnected = worker.isConnected || (other.isAlive && news.isConnected);
    worker.isTorn = worker.isTorn || (other.isAlive && news.isTorn);
    worker.isLeaving = worker.isLeaving || (other.isAlive && news.isLeaving);
    worker.isPartial = worker.isPartial || (other.isAlive && news.isPartial);
    if (other.isAlive) worker.unknownElsewhere.insert(news.unknown.begin(), news.unknown.end());
    const Worker* const known = find(key);
    if (other.isAlive && news.asks != 0) {
      Ask& ask = worker.asks[node] = {news.asks, false, now};
      if (known != nullptr) {
        const auto old = known->asks.find(node);
        if (old != known->asks.end() && old->second.number == ask.number) ask = old->second;
      }
    }
    const Entries before = known == nullptr ? Entries() : known->jobs;
    const auto addJobs = [&](const AttemptMap& jobs, bool isStop) {
      for (const auto& [job, attempt] : jobs) {
        const std::pair at(job, node);
        Entry entry{attempt, isStop, other.isAlive, false, PingSays::nothing, now, now};
        const auto old = before.find(at);
        if (old != before.end() && old->second.attempt == attempt) {
          entry = old->second;
          entry.isStop = isStop;
          entry.isAlive = other.isAlive;
        }
        worker.jobs[at] = entry;
      }
    };
    addJobs(news.jobs, false);
    addJobs(news.stops, true);
  }
}

void RemoteElsewhere::applyNews(const std::string& node, const NodeNews& news, RemoteTable& table, Instant now,
                                RemoteChanges& changes) {
  for (const auto& [key, said] : news.workers) {
    RemoteWorker* const worker = table.find(key);
    if (worker == nullptr) continue;
    std::uint64_t& seen = seenPings_[{node, key}];
    const bool isNewPing = said.ping != 0 && said.ping != seen;
    seen = said.ping;
    applyToWorker(key, *worker, said, isNewPing, now, changes);
  }
}

// The last ping listed the job before the news named the job.
bool RemoteElsewhere::noteListed(Worker& worker, const JobId& job) {
  bool isNamed = false;
  for (auto at = worker.jobs.lower_bound({job, {}}); at != worker.jobs.end() && at->first.first == job; ++at) {
    isNamed = true;
    if (at->second.ping == PingSays::nothing) at->second.ping = PingSays::listed;
  }
  return isNamed;
}

void RemoteElsewhere::setNews(const OtherNodes& nodes, RemoteTable& table, Instant now, RemoteChanges& changes) {
  if (now > readAt_ + kLongestGap) freshSince_ = now;
  readAt_ = now;
  std::map<RemoteWorkerKey, Worker> workers;
  for (const auto& [node, other] : nodes) addNews(node, other, workers, now);
  for (auto& [key, before] : workers_) {  // state of the worker's calls to this node
    const auto found = workers.find(key);
    // A worker without an entry in the table has sent no ping for a while.
    if (found == workers.end() && (before.unknown.empty() || table.find(key) == nullptr)) continue;
    Worker& worker = workers[key];
    worker.ping = before.ping;
    for (const auto& [job, nextAt] : before.unknown) {
      if (!noteListed(worker, job)) worker.unknown[job] = nextAt;
    }
  }
  for (const auto& [key, said] : workers) {
    const Worker* const before = find(key);
    RemoteWorker* const worker =
        said.isLeaving && (before == nullptr || !before->isLeaving) ? table.find(key) : nullptr;
    if (worker == nullptr) continue;
    worker->leavesUntil = now + kLeaves;
    RemoteTable::endCalls(key, *worker, now, changes);
  }
  workers_.swap(workers);
  for (const auto& [node, other] : nodes) {
    if (other.isAlive) applyNews(node, other.news, table, now, changes);
  }
  std::erase_if(seenPings_, [this](const auto& seen) { return !workers_.contains(seen.first.second); });
  for (const auto& [key, ignored] : table.all()) {
    RemoteWorker& worker = *table.find(key);
    const Worker* const said = find(key);
    const bool isOpen = said != nullptr && (said->isConnected || said->isPartial);
    worker.link.noteElsewhere(isOpen, said != nullptr && said->isTorn, now);
  }
}

bool RemoteElsewhere::mayRun(const RemoteWorkerKey& key, const JobId& job) const {
  const Worker* const worker = find(key);
  if (worker == nullptr) return false;
  for (auto at = worker->jobs.lower_bound({job, {}}); at != worker->jobs.end() && at->first.first == job; ++at) {
    if (!at->second.isEnded) return true;
  }
  return worker->isPartial || worker->unknown.contains(job) || worker->unknownElsewhere.contains(job);
}

bool RemoteElsewhere::isStopped(const RemoteWorkerKey& key, const JobId& job) const {
  const Worker* const worker = find(key);
  if (worker == nullptr) return false;
  for (auto at = worker->jobs.lower_bound({job, {}}); at != worker->jobs.end() && at->first.first == job; ++at) {
    if (at->second.isStop && !at->second.isEnded) return true;
  }
  return false;
}

bool RemoteElsewhere::notePing(const RemoteWorkerKey& key, const RemoteWorker& worker, const std::vector<JobId>& jobs,
                               Instant now) {
  if (!isShared_) return true;
  Worker* known = find(key);
  if (known == nullptr && jobs.empty()) return true;
  if (known == nullptr) known = &workers_[key];
  std::set<JobId> listed(jobs.begin(), jobs.end());
  known->ping = std::max<std::uint64_t>(known->ping + 1, static_cast<std::uint64_t>(now.time_since_epoch().count()));
  for (auto& [at, entry] : known->jobs) {
    const bool isListed = listed.contains(at.first);
    const bool isTold = entry.isStop || now >= entry.since + kHeardLongAgo;
    entry.ping = isListed ? PingSays::listed : isTold ? PingSays::omitted : PingSays::nothing;
  }
  for (const auto& [at, entry] : known->jobs) listed.erase(at.first);
  std::map<JobId, Instant> unknown;
  bool isWhole = true;
  for (const JobId& job : listed) {
    if (worker.jobs.contains(job) || worker.stops.contains(job) || job.size() > kLongestJobId) continue;
    isWhole = unknown.size() < kMostUnknown;
    if (!isWhole) break;
    const auto before = known->unknown.find(job);
    unknown[job] = before == known->unknown.end() ? now : before->second;
  }
  known->unknown.swap(unknown);
  for (auto& [node, ask] : known->asks) ask.isAnswered |= isWhole && now >= ask.since + kPingDelay;
  return isWhole;
}

void RemoteElsewhere::noteResult(const RemoteWorkerKey& key, const JobId& job, std::optional<std::uint32_t> attempt) {
  Worker* const worker = find(key);
  if (worker == nullptr) return;
  worker->unknown.erase(job);
  for (auto at = worker->jobs.lower_bound({job, {}}); at != worker->jobs.end() && at->first.first == job; ++at) {
    if (at->second.isStop || at->second.attempt == attempt) at->second.isEnded = true;
  }
}

void RemoteElsewhere::noteIdle(const RemoteWorkerKey& key) {
  Worker* const worker = find(key);
  if (worker == nullptr) return;
  worker->unknown.clear();
  for (auto& [node, ask] : worker->asks) ask.isAnswered = true;
  for (auto& [at, entry] : worker->jobs) entry.isEnded = entry.isEnded || entry.isStop;
}

void RemoteElsewhere::collectDueStops(const RemoteWorkerKey& key, Instant now, std::vector<JobId>& stops) {
  Worker* const worker = find(key);
  if (worker == nullptr) return;
  for (auto& [at, entry] : worker->jobs) {
    if (!entry.isStop || !entry.isAlive || entry.isEnded || entry.nextAt > now) continue;
    entry.nextAt = now + kRepeat;
    if (std::ranges::count(stops, at.first) == 0) stops.push_back(at.first);
  }
}

void RemoteElsewhere::resumeStops(RemoteTable& table, Instant now, RemoteChanges& changes) const {
  for (const auto& [key, said] : workers_) {
    const bool isDue = std::ranges::any_of(said.jobs, [now](const auto& job) {
      const Entry& entry = job.second;
      return entry.isStop && entry.isAlive && !entry.isEnded && entry.nextAt <= now;
    });
    const RemoteWorker* const worker = isDue ? table.find(key) : nullptr;
    if (worker != nullptr && worker->stopWait) changes.calls.push_back(worker->stopWait->call);
  }
}

void RemoteElsewhere::addAnswers(const RemoteWorkerKey& key, const RemoteWorker* worker, Instant now,
                                 WorkerNews& news) const {
  const Worker* const said = find(key);
  if (said == nullptr) return;
  for (const auto& [job, nextAt] : said->unknown) news.unknown.insert(job);
  for (const auto& [node, ask] : said->asks) {
    if (ask.isAnswered) news.shown[node] = ask.number;
  }
  bool isAsked = false;
  for (const auto& [at, entry] : said->jobs) {
    if (!entry.isAlive) continue;
    isAsked = true;
    if (entry.isEnded) keepLatest(news.ended, at.first, entry.attempt);
    if (entry.ping == PingSays::listed) keepLatest(news.listed, at.first, entry.attempt);
    if (entry.ping == PingSays::omitted) keepLatest(news.omitted, at.first, entry.attempt);
  }
  if (!isAsked || worker == nullptr) return;
  news.isConnected = worker->link.wasOpenHere(kMomentAgo, now);
  news.isTorn = worker->link.state() == RemoteLink::State::torn;
  news.ping = said->ping;
}

std::vector<RemoteWorkerKey> RemoteElsewhere::namedWorkers() const {
  std::vector<RemoteWorkerKey> keys;
  keys.reserve(workers_.size());
  for (const auto& [key, worker] : workers_) keys.push_back(key);
  return keys;
}

std::vector<std::pair<RemoteWorkerKey, JobId>> RemoteElsewhere::collectUnknown(std::size_t most, Instant now) {
  std::map<EndpointId, std::deque<std::pair<RemoteWorkerKey, JobId>>> due;
  for (const auto& [key, worker] : workers_) {
    for (const auto& [job, nextAt] : worker.unknown) {
      if (nextAt > now) continue;
      auto& jobs = due[key.endpoint];
      if (jobs.size() >= most) break;
      jobs.emplace_back(key, job);
    }
  }
  std::vector<std::pair<RemoteWorkerKey, JobId>> unknown;
  while (unknown.size() < most && !due.empty()) {
    const auto next = nextInTurn(due, lastAsked_);
    auto& [key, job] = unknown.emplace_back(std::move(next->second.front()));
    find(key)->unknown[job] = now + kRepeat;
    next->second.pop_front();
    if (next->second.empty()) due.erase(next);
  }
  return unknown;
}

void RemoteElsewhere::forgetUnknown(const RemoteWorkerKey& key, const JobId& job) {
  if (Worker* const worker = find(key)) worker->unknown.erase(job);
}

}  // namespace jobq
