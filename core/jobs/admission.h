// Room 4 (reception), behind submission.h: the endpoint's filters judge a well-formed job, in their order; each sees
// what the one before has made of it.
#pragma once

#include <optional>

#include "core/endpoints/endpoint.h"
#include "core/jobs/submission.h"
#include "jobq/admission_filter.h"
#include "jobq/error.h"
#include "jobq/job.h"

namespace jobq {

/// A filter that failed or overran lets nobody in: the caller is answered 500 with this sentence, which names it.
class FilterError : public Error {
 public:
  using Error::Error;
};

/// Throws Error, in a few words: a filter may write what a caller may send, and nothing else.
void checkReplacement(const Replace& change);

/// The same for the status of a refusal.
void checkRefusal(const Refuse& refusal);

/// Any thread. Changes input and policy of `job` as the filters say. A Refusal is a filter's own word; nothing: the job
/// is welcome. Throws FilterError.
std::optional<Refusal> admit(JobSpec& job, const Endpoint& endpoint);

}  // namespace jobq
