// A thread of a worker that runs jobs, one after the other.
#pragma once

#include <stop_token>

#include "core/handler_process/job_runner.h"
#include "core/worker_program/jobs_in_hand.h"
#include "core/worker_program/report_sender.h"
#include "core/worker_program/result_queue.h"

namespace jobq::worker {

/// Makes a runner and runs jobs until JobsInHand::awaitJob() returns null, or until `end` while a handler that has died
/// is replaced. The outcomes are added to `results`; a job is reported as lost after the death of the handler. Ends the
/// worker if no handler can be made.
void runHandlerLoop(const CallDeps& deps, JobRunners& runners, JobsInHand& jobs, ResultQueue& results,
                    const std::stop_token& end) noexcept;

}  // namespace jobq::worker
