#include "core/jobs/admission.h"

#include <algorithm>
#include <array>
#include <exception>

#include "core/base/json_object.h"
#include "core/endpoints/filter_pool.h"

namespace jobq {
namespace {

constexpr std::size_t kLargestInput = 20UL << 20;  // bytes; the limit of /runsync, the larger one of the two routes

void apply(JobSpec& job, Replace&& change) {
  checkReplacement(change);
  if (change.input) job.input = *std::move(change.input);
  if (change.policy) job.policy = *change.policy;
}

}  // namespace

void checkReplacement(const Replace& change) {
  if (change.input && change.input->size() > kLargestInput)
    throw Error("the filter returned an input of more than 20 MB");
  if (change.input && !isJsonObject(*change.input))
    throw Error("the filter returned an input that is not a JSON object");
  if (!change.policy) return;
  if (const auto fault = policyFault(*change.policy)) throw Error("the filter returned a wrong policy: " + *fault);
}

void checkRefusal(const Refuse& refusal) {
  constexpr std::array kStatuses{400, 403, 409, 413, 422, 429};
  if (std::find(kStatuses.begin(), kStatuses.end(), refusal.status) != kStatuses.end()) return;
  throw Error("the filter refused with status " + std::to_string(refusal.status) +
              ": a filter may use 400, 403, 409, 413, 422 and 429");
}

std::optional<Refusal> admit(JobSpec& job, const Endpoint& endpoint) {
  for (FilterPool* filter : endpoint.filters) {
    const auto failure = [&](const std::string& reason) {
      return FilterError("the filter " + filter->name() + " of this endpoint failed: " + reason);
    };
    try {
      Decision verdict = filter->review({job.endpoint, job.apiKeyId, job.input, job.policy, endpoint.env});
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
  return std::nullopt;
}

}  // namespace jobq
