// The thread of a worker that sends results to the server.
#pragma once

#include <stop_token>

#include "core/worker_program/jobs_in_hand.h"
#include "core/worker_program/report_sender.h"
#include "core/worker_program/result_queue.h"

namespace jobq::worker {

/// Sends results until ResultQueue::awaitBatch() returns none. The results that come during a call form the next batch.
/// A result is sent again and again, with pauses that `stop` ends, until the server has the result or refuses the
/// result for ever, or until the job is stopped or overdue. Then removes the job from `jobs`.
void runResultLoop(const CallDeps& deps, ResultQueue& results, JobsInHand& jobs, const std::stop_token& stop) noexcept;

}  // namespace jobq::worker
