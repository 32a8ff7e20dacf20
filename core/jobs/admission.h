// Room 4 (reception), behind submission.h: the endpoint's filters judge a well-formed job, in their order; each sees
// what the one before has made of it.
#pragma once

#include <string>
#include <variant>

#include "core/jobs/submission.h"

namespace jobq {

struct Welcome {};
/// A filter that failed or overran lets nobody in: the caller is answered 500 with this sentence, which names it.
struct FilterFailure {
  std::string message;
};

/// Any thread. Changes input and policy of `job` as the filters say. A Refusal is a filter's own word.
std::variant<Welcome, Refusal, FilterFailure> admit(JobSpec& job, const Endpoint& endpoint);

}  // namespace jobq
