#include "core/workers/remote/remote_exchange.h"

#include <algorithm>
#include <cstddef>
#include <iterator>
#include <optional>
#include <set>
#include <utility>
#include <variant>
#include <vector>

#include "core/workers/node/node_life.h"
#include "core/workers/node/node_lives.h"
#include "jobq/error.h"
#include "jobq/node_store.h"

namespace jobq {
namespace {

constexpr const char* kNewsKind = "remoteNews";
constexpr Millis kNewsPause{1'000};
constexpr Millis kLeftoverLife{600'000};  ///< record of a node that has died
constexpr std::size_t kMostQuestions = 100;

enum class Truth { held, settled, mustStop };

// Judges, by the answer of the storage, an attempt that the worker may run.
Truth judgeAttempt(const std::optional<Job>& job, const RunQuestion& question) {
  const std::uint32_t attempt = question.lease.attempt;
  if (!job || !isPlaceOf(job->workerId, question.key.worker)) return Truth::mustStop;
  if (attempt != 0 && job->attempt > attempt && job->state == JobState::inProgress) return Truth::settled;
  if (attempt != 0 && job->attempt != attempt) return Truth::mustStop;
  if (job->state == JobState::inProgress) return Truth::held;
  const bool isReported = job->state == JobState::completed || job->state == JobState::failed;
  return isReported ? Truth::settled : Truth::mustStop;
}

}  // namespace

RemoteExchange::RemoteExchange(const Deps& deps)
    : deps_(deps),
      isShared_(deps.storage.leaseLife().has_value()),
      remote_(deps.remote.registry()),
      periodic_("remote-news", deps.clock, deps.log, kNewsPause, *this) {}

void RemoteExchange::start() {
  if (isShared_) periodic_.start();
}

void RemoteExchange::stop() {
  periodic_.stop();
  if (!isShared_) return;
  try {
    publishNews();  // names the jobs that the drain has returned
    if (version_ == 0 || namesJobs_) return;
    deps_.records.remove(kNewsKind, deps_.node.name());
    version_ = 0;
  } catch (const StorageError& error) {
    deps_.log.write(LogLevel::warning, "remote.news",
                    std::string("the news of this node stays until another node removes it: ") + error.what());
  }
}

void RemoteExchange::run() {
  if (!isShared_ || (version_ == 0 && others_.empty() && inherited_.isEmpty() && !remote_.isNeeded())) return;
  readRecords();
  checkLives();
  OtherNodes nodes;
  for (const auto& [name, known] : others_) {
    if (known.isAlive) nodes[name] = {known.news, true};
  }
  nodes[{}] = {inherited_.news(), false};
  remote_.applyNews(deps_.node.name(), nodes);
  askInherited();
  askStorage();
  publishNews();
}

void RemoteExchange::readRecords() {
  const std::string& own = deps_.node.name();
  Changes changes = deps_.records.changedSince(kNewsKind, seen_);
  for (const std::string& name : changes.removed) {
    const auto known = others_.find(name);
    if (known == others_.end()) continue;
    if (known->second.isAlive) inherited_.add(known->second.news);
    others_.erase(known);
  }
  for (const Record& record : changes.changed) {
    if (record.id == own && version_ != 0) continue;
    NodeNews news = readNews(record.body);
    if (record.id == own) {  // record of an earlier life
      version_ = record.version;
      namesJobs_ = news.hasJobs();
      inherited_.add(news);
      continue;
    }
    Known& known = others_[record.id];
    if (known.isAlive && known.news.epoch != news.epoch) inherited_.add(known.news);
    if (known.news.epoch != news.epoch) {
      known.isAlive = true;
      known.since = deps_.clock.now();
    }
    known.news = std::move(news);
  }
  seen_ = changes.version;
}

// A node joins before the node writes a record, so a life has ended if a later list does not have the life as alive.
void RemoteExchange::checkLives() {
  const Instant now = deps_.clock.now();
  const NodeLives lives = deps_.node.lives();
  remote_.noteLives(lives);
  std::set<std::pair<std::string, std::uint64_t>> alive;
  for (const NodeInfo& node : lives.nodes) {
    if (node.isAlive) alive.emplace(node.name, node.epoch);
  }
  for (auto at = others_.begin(); at != others_.end();) {
    auto& [name, known] = *at;
    const bool isEnded = lives.askedAt > known.since && !alive.contains({name, known.news.epoch});
    const bool wasAlive = std::exchange(known.isAlive, !isEnded);
    if (wasAlive && !known.isAlive) {
      inherited_.add(known.news);
      known.deadSince = now;
    }
    const bool isLeftover = !known.isAlive && now >= known.deadSince + kLeftoverLife;
    if (isLeftover) deps_.records.remove(kNewsKind, name);
    at = isLeftover ? others_.erase(at) : std::next(at);
  }
}

void RemoteExchange::askInherited() {
  std::vector<RunQuestion> held;
  const auto keepHeld = [&] {
    for (const RunQuestion& question : held) inherited_.keep(question);
  };
  try {
    for (std::size_t asked = 0; asked < kMostQuestions && !inherited_.isEmpty(); ++asked) {
      const RunQuestion question = inherited_.next();
      const Truth truth =
          judgeAttempt(deps_.storage.jobs().find({question.key.endpoint, question.lease.job}, 0), question);
      if (truth == Truth::mustStop) remote_.stopJob(question.key, question.lease);
      if (truth == Truth::held) held.push_back(question);
      inherited_.removeNext();
    }
  } catch (...) {
    keepHeld();
    throw;
  }
  keepHeld();
}

void RemoteExchange::askStorage() {
  for (const RunQuestion& question : remote_.collectQuestions(kMostQuestions)) {
    switch (judgeAttempt(deps_.storage.jobs().find({question.key.endpoint, question.lease.job}, 0), question)) {
      case Truth::settled: remote_.endQuestion(question); break;
      case Truth::mustStop: remote_.stopJob(question.key, question.lease); break;
      case Truth::held:
        // A fenced run of this node has to be stopped while the storage still has the run.
        if (question.isStop) remote_.stopJob(question.key, question.lease);
        break;
    }
  }
}

void RemoteExchange::publishNews() {
  const NodeNews news = remote_.composeNews(deps_.node.holder().epoch);
  if (version_ == 0 && news.workers.empty()) return;
  std::string text = writeNews(news);
  if (text == published_) return;
  const Record record{kNewsKind, deps_.node.name(), "", text, 0, {}};
  if (version_ == 0) {
    const auto result = deps_.records.create(record);
    if (const auto* stored = std::get_if<Stored>(&result)) version_ = stored->version;
  } else {
    const auto result = deps_.records.update(record, version_);
    const auto* const stored = std::get_if<Stored>(&result);
    version_ = stored == nullptr ? 0 : stored->version;
  }
  if (version_ == 0) {  // a different node has removed or replaced the record
    const auto present = deps_.records.find(kNewsKind, deps_.node.name());
    version_ = present ? present->version : 0;
    published_.clear();
    return;
  }
  published_ = std::move(text);
  namesJobs_ = news.hasJobs();
}

}  // namespace jobq
