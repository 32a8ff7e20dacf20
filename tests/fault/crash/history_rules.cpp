#include "history_rules.h"

#include <algorithm>
#include <cstdlib>

#include "jobq/transitions.h"
#include "rule_parts.h"

namespace jobq::fault {
namespace {

std::string text(std::uint32_t number) { return std::to_string(number); }
std::string attemptOf(const Run& run) { return "attempt " + text(run.attempt); }
std::string seen(const Sight& sight) {
  std::string words(nameOf(sight.state));
  if (sight.whole) words += " with " + text(sight.retries) + " retries";
  return words + inLife(sight.life);
}

bool before(const Span& a, const Span& b) { return a.answered < b.asked; }

/// A claim not stored before the start of its handler would come again with the same attempt.
void attemptsGrow(const JobHistory& job, Faults& faults) {
  for (std::size_t i = 1; i < job.runs.size(); ++i) {
    const Run& last = job.runs[i - 1];
    const Run& run = job.runs[i];
    if (run.attempt > last.attempt) continue;
    faults.push_back(attemptOf(run) + " began" + inLife(run.life) + " although " + attemptOf(last) + " had begun" +
                     inLife(last.life));
  }
}

void oneRunALife(const JobHistory& job, Faults& faults) {
  for (std::size_t i = 1; i < job.runs.size(); ++i) {
    const Run& last = job.runs[i - 1];
    const Run& run = job.runs[i];
    if (run.life != last.life) continue;
    if (last.end == Run::End::none || last.ended > run.began) {
      faults.push_back(attemptOf(run) + " began while " + attemptOf(last) + " still ran" + inLife(run.life));
    } else if (!mayHaveBeenRetried(job, last.began, run.began)) {
      faults.push_back(attemptOf(run) + " began after " + attemptOf(last) + " had ended" + inLife(run.life) +
                       ", and no call of /retry asked for it");
    }
  }
}

/// Returns true for a run that was claimed before the cancel and began after the answer to the cancel. The order of the
/// steps: the worker finds the stop token of its claim not requested; the cancel is stored, requests the token, and is
/// answered; the worker enters the handler. Such a run has to end with the stop.
bool isCancelledOnItsWay(const Sight& sight, const Run& run) {
  return sight.state == JobState::cancelled && sight.life == run.life && run.end == Run::End::stopped;
}

void nothingRunsAfterItsEnd(const JobHistory& job, Faults& faults) {
  for (const Sight& sight : job.sights) {
    if (!terminal(sight.state)) continue;
    for (const Run& run : job.runs) {
      if (run.began <= sight.span.answered) continue;
      if (sight.state == JobState::failed && mayHaveBeenRetried(job, sight.span.asked, run.began)) continue;
      if (isCancelledOnItsWay(sight, run)) continue;
      faults.push_back(attemptOf(run) + " began" + inLife(run.life) + " after the job had been seen " + seen(sight));
    }
  }
}

bool sameEnd(const Sight& a, const Sight& b) {
  if (a.state != b.state) return false;
  return !a.whole || !b.whole || (a.retries == b.retries && a.output == b.output && a.error == b.error);
}

/// Requires: `a` has ended.
void endStays(const JobHistory& job, const Sight& a, const Sight& b, Faults& faults) {
  const bool excused = a.state == JobState::failed && mayHaveBeenRetried(job, a.span.asked, b.span.answered);
  if (before(a.span, b.span)) {
    if (sameEnd(a, b) || excused) return;
    faults.push_back("it was seen " + seen(a) + " and later " + seen(b) +
                     (a.state == b.state ? ", with another output, error or number of retries" : ""));
  } else if (!before(b.span, a.span) && terminal(b.state) && a.state != b.state && !excused &&
             b.state != JobState::failed) {
    faults.push_back("it was seen " + seen(a) + " and at the same time " + seen(b));
  }
}

/// Requires: `a` is earlier and has not ended.
void stateGoesForward(const JobHistory& job, const Sight& a, const Sight& b, Faults& faults) {
  if (a.whole && b.whole && b.retries < a.retries) {
    faults.push_back("its retries went back: it was seen " + seen(a) + " and later " + seen(b));
    return;
  }
  if (a.state != JobState::inProgress || terminal(b.state)) return;
  const bool died = b.life > a.life;
  if (!died && b.state == JobState::inProgress) return;
  if (!died && !mayHaveBeenRetried(job, a.span.asked, b.span.answered)) {
    faults.push_back("it went back from " + seen(a) + " to " + seen(b) + " although no server died");
  } else if (a.whole && b.whole && b.retries == a.retries) {
    faults.push_back("the death of its worker was not counted: it was seen " + seen(a) + " and later " + seen(b));
  }
}

void statesFollow(const JobHistory& job, Faults& faults) {
  for (const Sight& a : job.sights) {
    for (const Sight& b : job.sights) {
      if (&a == &b) continue;
      if (terminal(a.state)) {
        endStays(job, a, b, faults);
      } else if (before(a.span, b.span)) {
        stateGoesForward(job, a, b, faults);
      }
    }
  }
}

void retriesAreReal(const JobHistory& job, Faults& faults) {
  for (const Sight& sight : job.sights) {
    if (!sight.whole) continue;
    const auto deaths = static_cast<std::uint32_t>(sight.life - job.life);
    const std::uint32_t asked = retriesAsked(job, sight.span.answered);
    if (sight.retries > deaths + asked) {
      faults.push_back("it was seen " + seen(sight) + " after only " + text(deaths) + " deaths and " + text(asked) +
                       " calls of /retry");
    }
    const auto began = std::count_if(job.runs.begin(), job.runs.end(),
                                     [&sight](const Run& run) { return run.began < sight.span.asked; });
    if (terminal(sight.state) && began > static_cast<std::int64_t>(sight.retries) + 1) {
      faults.push_back("it was seen " + seen(sight) + " although " + std::to_string(began) + " runs had begun");
    }
  }
}

bool endedBefore(const JobHistory& job, Run::End end, Nanos moment) {
  return std::any_of(job.runs.begin(), job.runs.end(),
                     [&](const Run& run) { return run.end == end && run.ended < moment; });
}

void completionIsEarned(const JobHistory& job, const Sight& sight, Faults& faults) {
  if (!endedBefore(job, Run::End::output, sight.span.answered)) {
    faults.push_back("it was seen " + seen(sight) + ", but no run of it had returned an output");
  }
  const std::string own = outputOf(job.plan.number);
  if (sight.whole && sight.output != own) {
    faults.push_back("its output is " + (sight.output.empty() ? "missing" : sight.output) + ", its own would be " +
                     own);
  }
}

void lossIsEarned(const JobHistory& job, const Sight& sight, std::uint32_t losses, const Rules& rules, Faults& faults) {
  const auto limit = rules.maxAttempts.find(job.plan.endpoint);
  if (limit == rules.maxAttempts.end() || losses != limit->second) {
    faults.push_back("it FAILED because \"" + sight.error + "\", which is not its endpoint's maxAttempts");
  }
  const auto deaths = static_cast<std::uint32_t>(sight.life - job.life);
  if (losses > deaths) {
    faults.push_back("it FAILED because \"" + sight.error + "\" after only " + text(deaths) + " deaths");
  }
  // Fewer runs than losses are possible, because a kill may cut off a claim before its handler begins. More runs than
  // losses are a fault.
  const auto cutOff =
      std::count_if(job.runs.begin(), job.runs.end(), [&sight](const Run& run) { return run.life < sight.life; });
  if (retriesAsked(job, sight.span.answered) == 0 && cutOff > static_cast<std::int64_t>(losses)) {
    faults.push_back("it FAILED because \"" + sight.error + "\", but " + std::to_string(cutOff) +
                     " runs of it were cut off");
  }
}

void failureIsEarned(const JobHistory& job, const Sight& sight, const Rules& rules, Faults& faults) {
  if (!sight.whole) return;
  if (const auto losses = lossesIn(sight.error)) return lossIsEarned(job, sight, *losses, rules, faults);
  const std::string own = "number " + std::to_string(job.plan.number) + " was told to fail";
  if (sight.error != own) {
    faults.push_back("it was seen " + seen(sight) + " with the error \"" + sight.error + "\", which is not its own");
  } else if (!endedBefore(job, Run::End::failed, sight.span.answered)) {
    faults.push_back("it was seen " + seen(sight) + ", but no run of it had failed");
  }
}

void endsAreEarned(const JobHistory& job, const Rules& rules, Faults& faults) {
  for (const Sight& sight : job.sights) {
    if (sight.state == JobState::completed) completionIsEarned(job, sight, faults);
    if (sight.state == JobState::failed) failureIsEarned(job, sight, rules, faults);
    if (sight.state == JobState::timedOut)
      faults.push_back("it was seen " + seen(sight) + ": no job has so short a time");
    if (sight.state == JobState::cancelled) {
      const bool asked = std::any_of(job.orders.begin(), job.orders.end(), [&sight](const Order& order) {
        return order.command == Order::Command::cancel && order.span.asked < sight.span.answered;
      });
      if (!asked) faults.push_back("it was seen " + seen(sight) + ", but no call of /cancel was sent");
    }
  }
}

void sortByTime(JobHistory& job) {
  std::sort(job.runs.begin(), job.runs.end(), [](const Run& a, const Run& b) { return a.began < b.began; });
  std::sort(job.sights.begin(), job.sights.end(),
            [](const Sight& a, const Sight& b) { return a.span.answered < b.span.answered; });
  std::sort(job.pages.begin(), job.pages.end(),
            [](const Page& a, const Page& b) { return a.span.asked < b.span.asked; });
}

}  // namespace

std::vector<std::string> faultsOf(JobHistory& job, const Rules& rules) {
  sortByTime(job);
  Faults faults;
  attemptsGrow(job, faults);
  oneRunALife(job, faults);
  nothingRunsAfterItsEnd(job, faults);
  statesFollow(job, faults);
  retriesAreReal(job, faults);
  endsAreEarned(job, rules, faults);
  absencesAreEarned(job, rules, faults);
  streamsAreWhole(job, faults);
  return faults;
}

std::string outputOf(std::uint64_t number) {
  return "{\"echo\":" + std::to_string(number) + ",\"square\":" + std::to_string(number * number) + "}";
}

std::optional<std::uint32_t> lossesIn(const std::string& error) {
  constexpr std::string_view kBegin = "its worker was lost ";
  if (!error.starts_with(kBegin)) return std::nullopt;
  return static_cast<std::uint32_t>(std::strtoul(error.c_str() + kBegin.size(), nullptr, 10));
}

std::uint32_t retriesAsked(const JobHistory& job, Nanos until) {
  return static_cast<std::uint32_t>(std::count_if(job.orders.begin(), job.orders.end(), [until](const Order& order) {
    return order.command == Order::Command::retry && order.effect != Order::Effect::refused &&
           order.span.asked <= until;
  }));
}

bool mayHaveBeenRetried(const JobHistory& job, Nanos from, Nanos to) {
  return std::any_of(job.orders.begin(), job.orders.end(), [from, to](const Order& order) {
    return order.command == Order::Command::retry && order.effect != Order::Effect::refused &&
           order.span.answered >= from && order.span.asked <= to;
  });
}

}  // namespace jobq::fault
