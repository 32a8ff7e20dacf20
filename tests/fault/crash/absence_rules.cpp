// Absent jobs: valid reasons for an absence, and its permanence.
#include <algorithm>

#include "jobq/transitions.h"
#include "rule_parts.h"

namespace jobq::fault {
namespace {

constexpr Nanos kMs = 1'000'000;
constexpr Nanos kClocksDiffer = 50 * kMs;  // the clocks of server and clients differ
constexpr Nanos kAnswerInTime = 1'000 * kMs;

/// Returns true if the job may have ended until `by`, even unseen. A job without an end stays for its ttl of a day.
bool mayHaveEnded(const JobHistory& job, int life, Nanos by, const Rules& rules) {
  const auto limit = rules.maxAttempts.find(job.plan.endpoint);
  const auto deaths = static_cast<std::uint32_t>(life - job.life);
  if (limit != rules.maxAttempts.end() && deaths >= limit->second && job.sent.asked <= by) return true;
  const auto ended = [by](const Run& run) { return run.end != Run::End::none && run.ended <= by; };
  const auto cancelled = [by](const Order& order) {
    return order.command == Order::Command::cancel && order.effect != Order::Effect::refused && order.span.asked <= by;
  };
  return std::any_of(job.runs.begin(), job.runs.end(), ended) ||
         std::any_of(job.orders.begin(), job.orders.end(), cancelled);
}

/// Returns true if the job was running or had ended at the request of the purge, and no event can have put the job back
/// into the queue since.
bool wasOutOfLine(const JobHistory& job, const Order& purge) {
  const auto stayed = [&](Nanos since) { return !mayHaveBeenRetried(job, since, purge.span.answered); };
  for (const Run& run : job.runs) {
    if (run.life == purge.life && run.began < purge.span.asked && stayed(run.began)) return true;
  }
  for (const Sight& sight : job.sights) {
    if (sight.span.answered >= purge.span.asked || !stayed(sight.span.asked)) continue;
    if (terminal(sight.state) || (sight.state == JobState::inProgress && sight.life == purge.life)) return true;
  }
  return false;
}

bool mayHaveBeenPurged(const JobHistory& job, const Absence& absence) {
  return std::any_of(job.orders.begin(), job.orders.end(), [&](const Order& order) {
    return order.command == Order::Command::purge && order.effect != Order::Effect::refused &&
           order.span.asked <= absence.span.answered && order.span.answered >= job.sent.asked &&
           !wasOutOfLine(job, order);
  });
}

bool mayHaveExpired(const JobHistory& job, const Absence& absence) {
  return std::any_of(job.orders.begin(), job.orders.end(), [&](const Order& order) {
    return order.command == Order::Command::ttl && order.effect != Order::Effect::refused &&
           order.span.asked + order.ttl - kClocksDiffer <= absence.span.answered;
  });
}

void goneStaysGone(const JobHistory& job, const Absence& absence, Faults& faults) {
  for (const Run& run : job.runs) {
    if (run.began <= absence.span.answered) continue;
    faults.push_back("attempt " + std::to_string(run.attempt) + " began" + inLife(run.life) +
                     " after the job had been 404" + inLife(absence.life));
  }
  for (const Sight& sight : job.sights) {
    if (sight.span.asked <= absence.span.answered) continue;
    faults.push_back("it was seen " + std::string(nameOf(sight.state)) + inLife(sight.life) + " after it had been 404" +
                     inLife(absence.life));
  }
}

/// A job acknowledged before a purge and first claimed in a later life was queued during the purge.
void purgesAreWhole(const JobHistory& job, Faults& faults) {
  if (!job.acknowledged) return;
  for (const Order& order : job.orders) {
    if (order.command != Order::Command::purge || order.effect != Order::Effect::done) continue;
    if (order.span.asked <= job.sent.answered) continue;
    for (const Run& run : job.runs) {
      if (run.attempt != 1 || run.life <= order.life) continue;
      faults.push_back("attempt 1 began" + inLife(run.life) + " although the line had been purged" +
                       inLife(order.life));
    }
  }
}

/// A later ttl replaces an earlier ttl, so the last possible ttl counts.
void nothingOutlivesItsTtl(const JobHistory& job, Faults& faults) {
  for (const Sight& sight : job.sights) {
    bool isSet = false;
    Nanos end = 0;
    for (const Order& order : job.orders) {
      if (order.command != Order::Command::ttl || order.effect == Order::Effect::refused) continue;
      isSet = isSet || (order.effect == Order::Effect::done && order.span.answered < sight.span.asked);
      if (order.span.asked <= sight.span.answered) end = std::max(end, order.span.answered + order.ttl);
    }
    if (isSet && sight.span.asked > end + kAnswerInTime) {
      faults.push_back("it was seen " + std::string(nameOf(sight.state)) + inLife(sight.life) + ", " +
                       std::to_string((sight.span.asked - end) / kMs) + " ms after its ttl had ended");
    }
  }
}

}  // namespace

void absencesAreEarned(const JobHistory& job, const Rules& rules, Faults& faults) {
  const Nanos retention = job.plan.sync ? rules.syncRetention : rules.runRetention;
  for (const Absence& absence : job.absences) {
    goneStaysGone(job, absence, faults);
    if (mayHaveEnded(job, absence.life, absence.span.answered - retention, rules)) continue;
    if (mayHaveBeenPurged(job, absence) || mayHaveExpired(job, absence)) continue;
    faults.push_back("it is lost: 404" + inLife(absence.life) + ", " +
                     std::to_string((absence.span.answered - job.sent.asked) / kMs) +
                     " ms after its submission in life " + std::to_string(job.life));
  }
  purgesAreWhole(job, faults);
  nothingOutlivesItsTtl(job, faults);
}

}  // namespace jobq::fault
