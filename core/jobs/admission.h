// The stage admission, after core/jobs/submission.h: the filters of an endpoint judge a well-formed job one after the
// other. Each filter sees the job as changed by the filters before.
#pragma once

#include <string>

#include "core/base/result.h"
#include "core/endpoints/endpoint.h"
#include "jobq/error.h"
#include "jobq/job.h"
#include "jobq/time.h"

namespace jobq {

/// A filter failed or overran its time, so the job is refused: the caller receives 500 with the message, which names
/// the filter.
class FilterError : public Error {
 public:
  using Error::Error;
};

/// The answer of a filter that refuses a job: a sentence for the caller, and the status.
struct Refusal {
  std::string message;
  int status = 400;
  Millis retryAfter{0};  ///< used with status 429
};

/// Changes input and policy of `job` as the filters of `endpoint` decide. Fails with the refusal of the first filter
/// that refuses. Throws FilterError. Any thread.
Result<void, Refusal> admit(JobSpec& job, const Endpoint& endpoint);

}  // namespace jobq
