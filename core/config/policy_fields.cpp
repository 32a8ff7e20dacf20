#include "core/config/policy_fields.h"

#include "core/config/form_rows.h"
#include "core/model/job_policy.h"

namespace jobq {

const FormFields<JobPolicy>& policyFields() {
  using P = JobPolicy;
  constexpr Millis kUnit{1};
  static const FormFields<P> kFields{
      durationField<P>("executionTimeout", &P::executionTimeout, kUnit, kExecutionTimeoutBounds.range)
          .means("The longest run of the job, from the claim by a worker. A longer run makes the job TIMED_OUT.")
          .defaulting("the endpoint's `executionTimeoutMs`"),
      durationField<P>("ttl", &P::ttl, kUnit, kTtlBounds.range)
          .means("The time to live of the job from its submission, waiting and running together. The server then "
                 "deletes the job, even while the job runs."),
      flagField<P>("lowPriority", &P::lowPriority).means("The job runs when no other job waits, and starts no worker."),
      wholeField<P>("priority", &P::priority, kPriorityBounds.range)
          .means("A job with a higher value runs earlier if the endpoint's queue policy is `priority`."),
  };
  return kFields;
}

}  // namespace jobq
