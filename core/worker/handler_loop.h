// A thread of a worker that runs jobs, one after the other.
#pragma once

#include "core/worker/jobs_in_hand.h"
#include "core/worker/report_sender.h"
#include "core/worker/result_queue.h"
#include "jobq/job_handler.h"

namespace jobq::worker {

/// Makes the handler `env` and runs jobs until JobsInHand::awaitJob() returns null. The outcomes are added to
/// `results`. Ends the worker if the handler cannot be made.
void runHandlerLoop(const CallDeps& deps, HandlerFactory& handlers, const HandlerEnv& env, JobsInHand& jobs,
                    ResultQueue& results) noexcept;

}  // namespace jobq::worker
