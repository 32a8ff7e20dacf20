#include "core/worker_program/server_loops.h"

#include <algorithm>
#include <exception>
#include <string>
#include <utility>

#include "core/base/backoff.h"
#include "core/client/exit_code.h"
#include "core/worker_program/call_pauses.h"
#include "core/worker_program/taken_job.h"

namespace jobq::worker {
namespace {

constexpr Millis kLongestHold{90'000};  // a server keeps a call for jobs or stops open for 20 to 30 s
constexpr Millis kPingLimit{5'000};
constexpr Millis kEmptyTooSoon{1'000};  // a server that answers sooner without a job does not keep the call open
constexpr Millis kBusyPause{5'000};

// Makes a call. Returns the answer of a success. After a failure pauses, and returns an answer with the status 0 or the
// refusal.
Answer callOnce(const CallDeps& deps, ServerConnection& connection, const std::string& path, CallPauses& pauses,
                const std::stop_token& stop) {
  const Instant asked = deps.clock.now();
  try {
    Answer answer = connection.get(path);
    if (answer.status == 429) {
      (void)pauseUntil(deps.clock, deps.clock.now() + kBusyPause, stop);
    } else if (answer.isTransient()) {
      (void)pauses.pause(answer.refusal);
    } else if (answer.status == 204 && deps.clock.now() < asked + kEmptyTooSoon) {
      (void)pauses.pause("");
    } else if (answer.isSuccess()) {
      pauses.noteSuccess();
    }
    return answer;
  } catch (const cli::CommandError& error) {
    (void)pauses.pause(error.what());
    return {};
  }
}

// Returns false if a later call for jobs would be refused, too.
bool addJobs(const CallDeps& deps, JobsInHand& jobs, const Answer& answer) {
  if (answer.status == 0 || answer.status == 204 || answer.isTransient()) return true;
  if (isKeyRefused(deps, answer)) return false;
  if (!answer.isSuccess()) {
    deps.end.fail("the server refuses the call for jobs of " + deps.addresses.endpoint() + ": " + answer.refusal);
    return false;
  }
  auto taken = readTakenJobs(answer.body);
  if (!taken) {
    deps.end.fail(taken.failure().message());
    return false;
  }
  for (const JobId& job : jobs.add(*std::move(taken))) {
    deps.log.write(LogLevel::warning, "job.again", "the server handed out " + job + " again, whose handler still runs");
  }
  return true;
}

template <class Loop>
void endOnException(const CallDeps& deps, const Loop& loop) noexcept {
  try {
    loop();
  } catch (const std::exception& error) {
    deps.end.fail(std::string("the worker cannot go on: ") + error.what());
  }
}

}  // namespace

void runTakeLoop(const CallDeps& deps, std::size_t batch, JobsInHand& jobs, const std::stop_token& stop) noexcept {
  endOnException(deps, [&] {
    ServerConnection connection(deps.addresses.server(), deps.key, kLongestHold, deps.clock);
    CallPauses pauses("calls for jobs", deps.clock, deps.log, stop);
    while (const auto demand = jobs.awaitDemand()) {
      const std::string path = deps.addresses.jobs(std::min(batch, demand->free), demand->holdsJobs);
      if (!addJobs(deps, jobs, callOnce(deps, connection, path, pauses, stop))) return;
    }
  });
}

void runStopLoop(const CallDeps& deps, JobsInHand& jobs, const std::stop_token& stop) noexcept {
  endOnException(deps, [&] {
    ServerConnection connection(deps.addresses.server(), deps.key, kLongestHold, deps.clock);
    CallPauses pauses("calls for stops", deps.clock, deps.log, stop);
    while (!stop.stop_requested()) {
      const Answer answer = callOnce(deps, connection, deps.addresses.stops(), pauses, stop);
      if (isKeyRefused(deps, answer)) return;
      if (answer.status >= 300 && !answer.isTransient()) (void)pauses.pause(answer.refusal);
      if (answer.status != 200) continue;
      for (const JobId& job : readStops(answer.body)) jobs.stopJob(job);
    }
  });
}

void runPingLoop(const CallDeps& deps, Millis interval, const JobsInHand& jobs, const std::stop_token& stop) noexcept {
  endOnException(deps, [&] {
    ServerConnection connection(deps.addresses.server(), deps.key, kPingLimit, deps.clock);
    while (pauseUntil(deps.clock, deps.clock.now() + interval, stop)) {
      try {
        (void)connection.get(deps.addresses.ping(jobs.ids()));
      } catch (const cli::CommandError&) {
        continue;  // the calls for jobs and stops log that the server is lost
      }
    }
  });
}

}  // namespace jobq::worker
