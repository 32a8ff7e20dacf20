#include "history.h"

#include <algorithm>
#include <iterator>
#include <set>
#include <utility>

#include "jobq/transitions.h"

namespace jobq::fault {
namespace {

/// A purge changes no ended job.
bool mayChangeAnEnd(const Order& order) { return order.command != Order::Command::purge; }

/// Returns the last sight if the job had ended by then and no later order could change the end; otherwise null.
const Sight* lastEnd(const JobHistory& job) {
  if (job.sights.empty() || !terminal(job.sights.back().state)) return nullptr;
  const Sight& last = job.sights.back();
  const bool settled = std::all_of(job.orders.begin(), job.orders.end(), [&last](const Order& order) {
    return !mayChangeAnEnd(order) || order.span.answered < last.span.asked;
  });
  if (!settled) return nullptr;
  // A whole sight is preferred: /stream and /cancel tell the state alone.
  for (auto sight = job.sights.rbegin(); sight != job.sights.rend() && sight->state == last.state; ++sight) {
    const bool isLater = std::none_of(job.orders.begin(), job.orders.end(), [&sight](const Order& order) {
      return mayChangeAnEnd(order) && order.span.answered >= sight->span.asked;
    });
    if (sight->whole && isLater) return &*sight;
  }
  return &last;
}

/// Returns the number of lives with a sight of this end after the last order.
std::size_t livesOf(const JobHistory& job, const Sight& end) {
  Nanos since = 0;
  for (const Order& order : job.orders) {
    if (mayChangeAnEnd(order)) since = std::max(since, order.span.answered);
  }
  std::set<int> lives;
  for (const Sight& sight : job.sights) {
    if (sight.state == end.state && sight.span.asked > since) lives.insert(sight.life);
  }
  return lives.size();
}

std::string nameOf(const JobHistory& job) {
  return "job " + job.id + " (number " + std::to_string(job.plan.number) + ", " + job.plan.endpoint + ")";
}

}  // namespace

void History::lifeBegins(int process) { processes_.push_back(process); }

JobHistory* History::find(std::uint64_t number) {
  const auto found = jobs_.find(number);
  return found == jobs_.end() ? nullptr : &found->second;
}

void History::sent(const Plan& plan, const Span& span, const std::string& id) {
  const auto [at, isNew] = jobs_.try_emplace(plan.number);
  JobHistory& job = at->second;
  if (isNew) {
    job.plan = plan;
    job.sent = span;
    job.life = life();
    if (id.empty()) ++totals_.unknown;
  }
  if (id.empty()) return;
  if (!isNew) ++(job.acknowledged ? totals_.answeredTwice : totals_.sentAgain);
  if (!job.acknowledged) ++totals_.acknowledged;
  job.acknowledged = true;
  if (job.id.empty()) job.id = id;
  if (job.id != id)
    addViolation(nameOf(job), "its Idempotency-Key was answered with job " + id + " too", describe(job));
}

void History::saw(std::uint64_t number, Sight sight) {
  if (JobHistory* job = find(number)) job->sights.push_back(std::move(sight));
}

void History::ordered(std::uint64_t number, Order order) {
  if (order.command == Order::Command::ttl && order.effect == Order::Effect::done) ++totals_.ttls;
  if (JobHistory* job = find(number)) job->orders.push_back(order);
}

void History::missed(std::uint64_t number, Absence absence) {
  if (JobHistory* job = find(number)) job->absences.push_back(absence);
}

void History::streamed(std::uint64_t number, Page page) {
  JobHistory* job = find(number);
  if (job == nullptr) return;
  ++totals_.pages;
  totals_.pieces += page.pieces.size();
  if (!page.consumes && page.state == JobState::completed) ++totals_.streamed;
  job->pages.push_back(std::move(page));
}

void History::purged(const Order& order) {
  ++totals_.purges;
  for (auto& [number, job] : jobs_) {
    if (job.plan.endpoint == rules_.fleeting && job.sent.asked <= order.span.answered) job.orders.push_back(order);
  }
}

std::vector<Plan> History::unanswered() const {
  std::vector<Plan> plans;
  for (const auto& [number, job] : jobs_) {
    if (job.plan.keyed && !job.acknowledged) plans.push_back(job.plan);
  }
  return plans;
}

void History::noted(const JournalLine& line) {
  const std::string who = "job " + line.id + " (number " + std::to_string(line.number) + ")";
  if (line.process != processes_.back()) {
    addViolation(
        who, "process " + std::to_string(line.process) + " works in the life of " + std::to_string(processes_.back()),
        "");
  }
  JobHistory* job = find(line.number);
  if (job == nullptr) {
    const bool known = line.number < closed_.size() && terminal(closed_[line.number].state);
    if (line.begins && known) {
      const Closed& closed = closed_[line.number];
      addViolation(who,
                   "attempt " + std::to_string(line.attempt) + " began in life " + std::to_string(life()) +
                       ", long after it had been seen " + std::string(jobq::nameOf(closed.state)) +
                       " in two lives; attempt " + std::to_string(closed.attempt) + " was its last",
                   "");
    } else if (line.begins) {
      addViolation(who, "no submission was sent", "");
    }
    return;
  }
  if (job->id.empty()) {
    job->id = line.id;
    ++totals_.unknownFound;
  }
  if (job->id != line.id) addViolation(who, "the same submission runs as job " + job->id + " too", describe(*job));
  if (line.begins) {
    job->runs.push_back({line.attempt, life(), line.at, 0, Run::End::none});
    ++totals_.runs;
  } else {
    end(*job, line);
  }
}

void History::end(JobHistory& job, const JournalLine& line) {
  const auto run = std::find_if(job.runs.rbegin(), job.runs.rend(), [&](const Run& one) {
    return one.attempt == line.attempt && one.life == life() && one.end == Run::End::none;
  });
  if (run == job.runs.rend()) {
    addViolation(nameOf(job), "attempt " + std::to_string(line.attempt) + " ended without having begun", describe(job));
    return;
  }
  run->end = line.end;
  run->ended = line.at;
}

std::vector<Violation> History::lifeEnds() {
  for (auto at = jobs_.begin(); at != jobs_.end();) {
    JobHistory& job = at->second;
    for (const Run& run : job.runs) totals_.cutOff += run.life == life() && run.end == Run::End::none ? 1 : 0;
    const std::vector<std::string> faults = faultsOf(job, rules_);
    for (const std::string& fault : faults) addViolation(nameOf(job), fault, describe(job));
    at = close(job, !faults.empty()) ? jobs_.erase(at) : std::next(at);
  }
  return std::exchange(violations_, {});
}

bool History::close(const JobHistory& job, bool accused) {
  const Sight* end = lastEnd(job);
  const bool expired = !job.absences.empty();
  const bool unanswered = job.plan.keyed && !job.acknowledged;  // its key will be used again
  // An end with a known state only is asked about again: its output and retries count too.
  const bool known = end != nullptr && end->whole && livesOf(job, *end) >= 2;
  if (!accused && !expired && (!known || unanswered)) return false;
  if (closed_.size() <= job.plan.number) closed_.resize(job.plan.number + 1);
  closed_[job.plan.number] = {job.runs.empty() ? 0 : job.runs.back().attempt,
                              end == nullptr ? JobState::timedOut : end->state};
  if (accused) return true;
  if (job.plan.webhook) webhooks_.closed(job, end);
  if (expired) totals_.addAbsent(job, end, rules_);
  if (end != nullptr) totals_.addEnd(job, *end, rules_);
  return true;
}

void History::addViolation(const std::string& who, const std::string& fault, const std::string& evidence) {
  violations_.push_back({who + ": " + fault, evidence});
}

std::vector<Violation> History::unfinished() const {
  std::vector<Violation> left;
  for (const JobHistory* job : open()) {
    const bool ended = !job->sights.empty() && terminal(job->sights.back().state);
    if (!ended) left.push_back({nameOf(*job) + ": it has not ended", describe(*job)});
  }
  return left;
}

std::vector<const JobHistory*> History::open() const {
  std::vector<const JobHistory*> open;
  for (const auto& [number, job] : jobs_) {
    if (!job.id.empty()) open.push_back(&job);
  }
  std::sort(open.begin(), open.end(),
            [](const JobHistory* a, const JobHistory* b) { return a->plan.number < b->plan.number; });
  return open;
}

}  // namespace jobq::fault
