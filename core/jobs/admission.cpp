#include "core/jobs/admission.h"

#include <exception>

#include "core/endpoints/filter_pool.h"
#include "core/model/filter_verdict.h"
#include "jobq/admission_filter.h"

namespace jobq {
namespace {

void apply(JobSpec& job, Replace&& change) {
  checkReplacement(change);
  if (change.input) job.input = *std::move(change.input);
  if (change.policy) job.policy = *change.policy;
}

}  // namespace

Result<void, Refusal> admit(JobSpec& job, const Endpoint& endpoint) {
  for (FilterPool* filter : endpoint.filters) {
    const auto failure = [&](const std::string& reason) {
      return FilterError("the filter " + filter->name() + " of this endpoint failed: " + reason);
    };
    try {
      Decision verdict = filter->review({job.endpoint, job.apiKeyId, job.input, job.policy, endpoint.spec.env});
      if (auto* plain = std::get_if<Reject>(&verdict)) verdict = Refuse{400, std::move(plain->message)};
      if (auto* refusal = std::get_if<Refuse>(&verdict)) {
        checkRefusal(*refusal);
        if (refusal->message.empty()) refusal->message = "the filter " + filter->name() + " refuses this job";
        return Refusal{std::move(refusal->message), refusal->status, refusal->retryAfter};
      }
      if (auto* change = std::get_if<Replace>(&verdict)) apply(job, std::move(*change));
    } catch (const std::exception& error) {
      throw failure(error.what());
    } catch (...) {
      throw failure("the filter threw an exception that is not a std::exception");
    }
  }
  return {};
}

}  // namespace jobq
