#include "core/worker_program/worker_threads.h"

#include <algorithm>
#include <string>

#include "core/client/exit_code.h"
#include "core/worker_program/handler_loop.h"
#include "core/worker_program/report_text.h"
#include "core/worker_program/result_sender.h"
#include "core/worker_program/server_connection.h"
#include "core/worker_program/server_loops.h"

namespace jobq::worker {
namespace {

constexpr Millis kKillTime{1'000};      // time for killed handler processes to end
constexpr Millis kPollsEnd{5'000};      // time for parked calls to end
constexpr Millis kLeaveAgain{250};      // time between two requests to end parked calls
constexpr Millis kLeaveSilence{2'000};  // a server that is silent for longer does not end the calls

}  // namespace

WorkerThreads::WorkerThreads(const CallDeps& deps, JobRunners& runners, Plan plan)
    : deps_(deps),
      runners_(runners),
      plan_(plan),
      jobs_(plan_.concurrency),
      taking_(deps.clock),
      handlers_(deps.clock),
      sending_(deps.clock),
      watching_(deps.clock) {}

void WorkerThreads::start() {
  for (std::size_t i = 0; i < plan_.concurrency; ++i) {
    handlers_.start("handler", [this] { runHandlerLoop(deps_, runners_, jobs_, results_, takingOver_.get_token()); });
  }
  sending_.start("results", [this] { runResultLoop(deps_, results_, jobs_, sendingOver_.get_token()); });
  watching_.start("stops", [this] { runStopLoop(deps_, jobs_, over_.get_token()); });
  watching_.start("pings", [this] { runPingLoop(deps_, plan_.pingInterval, jobs_, over_.get_token()); });
  taking_.start("takes", [this] { runTakeLoop(deps_, plan_.batch, jobs_, takingOver_.get_token()); });
}

bool WorkerThreads::stop(Millis drain) {
  const Instant end = deps_.clock.now() + drain;
  jobs_.endTaking();
  takingOver_.request_stop();
  bool areEnded = endParkedCalls(taking_);
  jobs_.endHandlers();
  if (!endHandlers(end)) {
    const std::size_t left = jobs_.abandonAll();
    results_.abandon();
    sendingOver_.request_stop();
    if (left > 0) {
      deps_.log.write(LogLevel::warning, "worker.abandoned",
                      std::to_string(left) + " jobs have not ended in time: the server gives them to other workers");
    }
    areEnded = endHandlers(deps_.clock.now() + kStopGrace + kKillTime) && areEnded;
  }
  over_.request_stop();
  return endParkedCalls(watching_) && areEnded;
}

// Lets the handlers end, and then the thread that sends the results. Returns false if a thread has not ended.
bool WorkerThreads::endHandlers(Instant latest) {
  if (!handlers_.awaitEnd(latest)) return false;
  results_.endAdding();
  return sending_.awaitEnd(latest);
}

// The report asks the server for an answer to the parked calls. A thread that has not noticed the stop may call once
// more, and the call is parked, too, so the report is repeated. Returns true if all threads have ended.
bool WorkerThreads::endParkedCalls(BoundedThreads& threads) {
  ServerConnection connection(deps_.addresses.server(), deps_.key, kLeaveSilence, deps_.clock);
  const Instant latest = deps_.clock.now() + kPollsEnd;
  do {
    try {
      (void)connection.post(deps_.addresses.result(JobId(kNoJob)), std::string(kLeaving));
    } catch (const cli::CommandError&) {
      continue;  // the parked calls have failed, too, or fail at their own limit
    }
  } while (!threads.awaitEnd(std::min(deps_.clock.now() + kLeaveAgain, latest)) && deps_.clock.now() < latest);
  return threads.awaitEnd(deps_.clock.now());
}

}  // namespace jobq::worker
