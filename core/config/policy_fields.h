// The fields of `policy` in the body of a job (core/http/API.md, "Policy"). The bounds are in core/model/job_policy.h.
#pragma once

#include "core/config/form.h"
#include "jobq/job.h"

namespace jobq {

/// Returns the table of all fields; constant.
const FormFields<JobPolicy>& policyFields();

}  // namespace jobq
