// The steps of a trial, in the order listed in `trial_request.h`.
#pragma once

#include <string>

#include "jobq/job_handler.h"
#include "jobq/time.h"
#include "trial_request.h"

namespace jobq::trial {

/// Runs the steps and returns the output of the job. Called by the thread of the job only. Throws JobFailed after a
/// stop, when memory runs out and on `fail`; throws std::runtime_error on `throw`. A crash does not return.
std::string runTrial(const TrialRequest& request, JobContext& context, Clock& clock);

}  // namespace jobq::trial
