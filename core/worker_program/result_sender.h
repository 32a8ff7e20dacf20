// The thread of a worker that sends results to the server.
#pragma once

#include <stop_token>

#include "core/worker_program/jobs_in_hand.h"
#include "core/worker_program/report_sender.h"
#include "core/worker_program/result_queue.h"

namespace jobq::worker {

/// Sends results until ResultQueue::awaitBatch() returns none. While a call is under way the next results gather, and
/// go together. A result is sent again and again, with pauses that `stop` ends, until the server has it or refuses it
/// for ever, or until its job is stopped or its time is over. Removes its job from `jobs` then.
void runResultLoop(const CallDeps& deps, ResultQueue& results, JobsInHand& jobs, const std::stop_token& stop) noexcept;

}  // namespace jobq::worker
