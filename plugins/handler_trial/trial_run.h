// The steps of a trial, in the order that trial_request.h lists.
#pragma once

#include <string>

#include "jobq/job_handler.h"
#include "jobq/time.h"
#include "trial_request.h"

namespace jobq::trial {

/// Returns the job's output. The running thread only. Throws JobFailed when stopped, when memory runs out and on
/// `fail`; std::runtime_error on `throw`. A crash does not return.
std::string runTrial(const TrialRequest& request, JobContext& context, Clock& clock);

}  // namespace jobq::trial
