#include "core/workers/remote/remote_news_access.h"

#include <algorithm>
#include <deque>
#include <map>
#include <utility>

#include "core/workers/pool/endpoint_shares.h"
#include "jobq/mutex.h"
#include "jobq/time.h"

namespace jobq {
namespace {

/// Jobs to be stopped, for each worker.
constexpr std::size_t kMostStopsOfWorker = 1'000;

/// The connections of a leaving worker may end before the other nodes have read that the worker leaves.
constexpr Millis kLeavingSaid{3'000};

// The number of a question is the moment of the question: the answer comes back to the asking node, and to the same
// clock.
std::uint64_t questionOf(Instant moment) { return static_cast<std::uint64_t>(moment.time_since_epoch().count()); }
Instant momentOfQuestion(std::uint64_t number) { return Instant(Millis(static_cast<Millis::rep>(number))); }

}  // namespace

bool RemoteNewsAccess::isNeeded() const {
  if (!remote_.pools_.all().empty()) return true;
  Lock lock(remote_.mutex_);
  return !remote_.table_.all().empty();
}

NodeNews RemoteNewsAccess::composeNews(std::uint64_t epoch) const {
  NodeNews news{epoch, {}};
  Lock lock(remote_.mutex_);
  const Instant now = remote_.clock_.now();
  for (const auto& [key, worker] : remote_.table_.all()) {
    WorkerNews said;
    for (const auto& [id, job] : worker.jobs) said.jobs[id] = job.run->lease().attempt;
    for (const auto& [id, stop] : worker.stops) said.stops[id] = stop.attempt;
    said.isLeaving = isLeaving(worker.state.get()) || now < worker.leftAt + kLeavingSaid;
    if (const auto moment = worker.shown.question()) said.asks = questionOf(*moment);
    if (!said.isEmpty()) news.workers[key] = std::move(said);
  }
  for (const RemoteWorkerKey& key : remote_.elsewhere_.namedWorkers()) {
    const auto known = remote_.table_.all().find(key);
    const RemoteWorker* const worker = known == remote_.table_.all().end() ? nullptr : &known->second;
    WorkerNews& said = news.workers[key];
    remote_.elsewhere_.addAnswers(key, worker, now, said);
    if (said.isEmpty()) news.workers.erase(key);
  }
  return news;
}

void RemoteNewsAccess::applyNews(const std::string& self, const OtherNodes& nodes) {
  RemoteChanges changes;
  {
    Lock lock(remote_.mutex_);
    const Instant now = remote_.clock_.now();
    remote_.elsewhere_.setNews(nodes, remote_.table_, now, changes);
    for (const auto& [name, other] : nodes) {
      if (other.isAlive) applyShown(self, other.news);
    }
    remote_.elsewhere_.resumeStops(remote_.table_, now, changes);
  }
  remote_.carryOut(std::move(changes));
}

void RemoteNewsAccess::applyShown(const std::string& self, const NodeNews& news) {
  for (const auto& [key, said] : news.workers) {
    const auto shown = said.shown.find(self);
    RemoteWorker* const worker = shown == said.shown.end() ? nullptr : remote_.table_.find(key);
    if (worker != nullptr) worker->shown.noteShown(momentOfQuestion(shown->second));
  }
}

std::vector<RunQuestion> RemoteNewsAccess::collectQuestions(std::size_t most) {
  std::map<EndpointId, std::deque<RunQuestion>> stops;
  Lock lock(remote_.mutex_);
  std::size_t found = 0;
  for (const auto& [key, worker] : remote_.table_.all()) {
    for (const auto& [id, stop] : worker.stops) {
      if (stop.isChecked) continue;
      auto& ofEndpoint = stops[key.endpoint];
      if (ofEndpoint.size() >= most) break;
      ofEndpoint.push_back({key, {id, stop.attempt}, true});
      ++found;
    }
  }
  // Neither kind of question waits until no question of the other kind is left.
  std::vector<RunQuestion> questions;
  const std::size_t ofPings = std::max(most / 2, most - std::min(most, found));
  for (auto& [key, job] : remote_.elsewhere_.collectUnknown(ofPings, remote_.clock_.now())) {
    questions.push_back({std::move(key), {std::move(job), 0}, false});
  }
  while (questions.size() < most && !stops.empty()) {
    const auto next = nextInTurn(stops, lastAsked_);
    questions.push_back(std::move(next->second.front()));
    next->second.pop_front();
    if (next->second.empty()) stops.erase(next);
  }
  return questions;
}

void RemoteNewsAccess::endQuestion(const RunQuestion& question) {
  Lock lock(remote_.mutex_);
  if (!question.isStop) return remote_.elsewhere_.forgetUnknown(question.key, question.lease.job);
  RemoteWorker* const worker = remote_.table_.find(question.key);
  if (worker == nullptr) return;
  const auto stop = worker->stops.find(question.lease.job);
  if (stop != worker->stops.end() && stop->second.attempt == question.lease.attempt) worker->stops.erase(stop);
}

void RemoteNewsAccess::stopJob(const RemoteWorkerKey& key, const LeaseRef& lease) {
  RemoteChanges changes;
  {
    Lock lock(remote_.mutex_);
    const Instant now = remote_.clock_.now();
    const bool isNew = remote_.table_.find(key) == nullptr;
    RemoteWorker* const worker = remote_.table_.findOrAdd(key, now);
    if (worker == nullptr) return;
    if (isNew) worker->link.begin(now - RemoteLink::kUnseen);  // the worker has never been here
    remote_.elsewhere_.forgetUnknown(key, lease.job);
    if (worker->jobs.contains(lease.job) || worker->stops.size() >= kMostStopsOfWorker) return;
    const auto [stop, isAdded] =
        worker->stops.try_emplace(lease.job, RemoteWorker::Stop{now, now, 0, lease.attempt, true, {}, now});
    if (!isAdded) stop->second.isChecked = true;
    if (worker->stopWait) changes.calls.push_back(worker->stopWait->call);
  }
  remote_.carryOut(std::move(changes));
}

bool RemoteNewsAccess::isStopped(const RemoteWorkerKey& key, const JobId& job) const {
  Lock lock(remote_.mutex_);
  const auto worker = remote_.table_.all().find(key);
  if (worker != remote_.table_.all().end() && worker->second.stops.contains(job)) return true;
  return remote_.elsewhere_.isStopped(key, job);
}

void RemoteNewsAccess::noteReporter(const RemoteWorkerKey& key) {
  Lock lock(remote_.mutex_);
  (void)remote_.table_.findOrAdd(key, remote_.clock_.now());
}

}  // namespace jobq
