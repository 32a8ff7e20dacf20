#include "core/workers/remote/remote_news_access.h"

#include <algorithm>
#include <deque>
#include <map>
#include <utility>

#include "core/workers/pool/endpoint_shares.h"
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

// Applies the answers of another node to the questions of the node `self`.
void applyShown(const std::string& self, const NodeNews& news, RemoteTable& table) {
  for (const auto& [key, said] : news.workers) {
    const auto shown = said.shown.find(self);
    RemoteWorker* const worker = shown == said.shown.end() ? nullptr : table.find(key);
    if (worker != nullptr) worker->shown.noteShown(momentOfQuestion(shown->second));
  }
}

}  // namespace

bool RemoteNewsAccess::isNeeded() const {
  if (!remote_.pools().all().empty()) return true;
  return remote_.read([](const RemoteState& state, Instant /*now*/) { return !state.table.all().empty(); });
}

NodeNews RemoteNewsAccess::composeNews(std::uint64_t epoch) const {
  return remote_.read([epoch](const RemoteState& state, Instant now) {
    NodeNews news{epoch, {}};
    for (const auto& [key, worker] : state.table.all()) {
      WorkerNews said;
      for (const auto& [id, job] : worker.jobs) said.jobs[id] = job.run->lease().attempt;
      for (const auto& [id, stop] : worker.stops) said.stops[id] = stop.attempt;
      said.isLeaving = isLeaving(worker.state.get()) || now < worker.leftAt + kLeavingSaid;
      if (const auto moment = worker.shown.question()) said.asks = questionOf(*moment);
      if (!said.isEmpty()) news.workers[key] = std::move(said);
    }
    for (const RemoteWorkerKey& key : state.elsewhere.namedWorkers()) {
      const auto known = state.table.all().find(key);
      const RemoteWorker* const worker = known == state.table.all().end() ? nullptr : &known->second;
      WorkerNews& said = news.workers[key];
      state.elsewhere.addAnswers(key, worker, now, said);
      if (said.isEmpty()) news.workers.erase(key);
    }
    return news;
  });
}

void RemoteNewsAccess::applyNews(const std::string& self, const OtherNodes& nodes) {
  remote_.change([&](RemoteState& state, Instant now, RemoteChanges& changes) {
    state.elsewhere.setNews(nodes, state.table, now, changes);
    for (const auto& [name, other] : nodes) {
      if (other.isAlive) applyShown(self, other.news, state.table);
    }
    state.elsewhere.resumeStops(state.table, now, changes);
  });
}

std::vector<RunQuestion> RemoteNewsAccess::collectQuestions(std::size_t most) {
  std::vector<RunQuestion> questions;
  std::map<EndpointId, std::deque<RunQuestion>> stops;
  remote_.change([&](RemoteState& state, Instant now, RemoteChanges& /*changes*/) {
    std::size_t found = 0;
    for (const auto& [key, worker] : state.table.all()) {
      for (const auto& [id, stop] : worker.stops) {
        if (stop.isChecked) continue;
        auto& ofEndpoint = stops[key.endpoint];
        if (ofEndpoint.size() >= most) break;
        ofEndpoint.push_back({key, {id, stop.attempt}, true});
        ++found;
      }
    }
    // Neither kind of question waits until no question of the other kind is left.
    const std::size_t ofPings = std::max(most / 2, most - std::min(most, found));
    for (auto& [key, job] : state.elsewhere.collectUnknown(ofPings, now)) {
      questions.push_back({std::move(key), {std::move(job), 0}, false});
    }
  });
  while (questions.size() < most && !stops.empty()) {
    const auto next = nextInTurn(stops, lastAsked_);
    questions.push_back(std::move(next->second.front()));
    next->second.pop_front();
    if (next->second.empty()) stops.erase(next);
  }
  return questions;
}

void RemoteNewsAccess::endQuestion(const RunQuestion& question) {
  remote_.change([&](RemoteState& state, Instant /*now*/, RemoteChanges& /*changes*/) {
    if (!question.isStop) return state.elsewhere.forgetUnknown(question.key, question.lease.job);
    RemoteWorker* const worker = state.table.find(question.key);
    if (worker == nullptr) return;
    const auto stop = worker->stops.find(question.lease.job);
    if (stop != worker->stops.end() && stop->second.attempt == question.lease.attempt) worker->stops.erase(stop);
  });
}

void RemoteNewsAccess::stopJob(const RemoteWorkerKey& key, const LeaseRef& lease) {
  remote_.change([&](RemoteState& state, Instant now, RemoteChanges& changes) {
    const bool isNew = state.table.find(key) == nullptr;
    RemoteWorker* const worker = state.table.findOrAdd(key, now);
    if (worker == nullptr) return;
    if (isNew) worker->link.begin(now - RemoteLink::kUnseen);  // the worker has never been here
    state.elsewhere.forgetUnknown(key, lease.job);
    if (worker->jobs.contains(lease.job) || worker->stops.size() >= kMostStopsOfWorker) return;
    const auto [stop, isAdded] =
        worker->stops.try_emplace(lease.job, RemoteWorker::Stop{now, now, 0, lease.attempt, true, {}, now});
    if (!isAdded) stop->second.isChecked = true;
    if (worker->stopWait) changes.calls.push_back(worker->stopWait->call);
  });
}

bool RemoteNewsAccess::isStopped(const RemoteWorkerKey& key, const JobId& job) const {
  return remote_.read([&](const RemoteState& state, Instant /*now*/) {
    const auto worker = state.table.all().find(key);
    if (worker != state.table.all().end() && worker->second.stops.contains(job)) return true;
    return state.elsewhere.isStopped(key, job);
  });
}

void RemoteNewsAccess::noteReporter(const RemoteWorkerKey& key) {
  remote_.change(
      [&](RemoteState& state, Instant now, RemoteChanges& /*changes*/) { (void)state.table.findOrAdd(key, now); });
}

}  // namespace jobq
