// The threads of a worker that call the server: for jobs, for stops, and with pings.
#pragma once

#include <cstddef>
#include <stop_token>

#include "core/worker_program/jobs_in_hand.h"
#include "core/worker_program/report_sender.h"
#include "jobq/time.h"

namespace jobq::worker {

/// Asks for at most `batch` jobs at a time, for the free handlers, until JobsInHand::awaitDemand() returns an empty
/// optional or `stop`. Ends the worker if the server refuses the call for ever.
void runTakeLoop(const CallDeps& deps, std::size_t batch, JobsInHand& jobs, const std::stop_token& stop) noexcept;

/// Asks for the jobs to stop, and stops them, until `stop`.
void runStopLoop(const CallDeps& deps, JobsInHand& jobs, const std::stop_token& stop) noexcept;

/// Tells the server in each interval which jobs are in hand, until `stop`.
void runPingLoop(const CallDeps& deps, Millis interval, const JobsInHand& jobs, const std::stop_token& stop) noexcept;

}  // namespace jobq::worker
