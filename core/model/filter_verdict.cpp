#include "core/model/filter_verdict.h"

#include <algorithm>
#include <array>
#include <cstddef>
#include <string>

#include "core/base/json_object.h"
#include "core/model/job_policy.h"
#include "jobq/error.h"

namespace jobq {
namespace {

constexpr std::size_t kLargestInput = 20UL << 20;  // bytes; the limit of /runsync, the larger one of the two routes

}  // namespace

void checkReplacement(const Replace& change) {
  if (change.input && change.input->size() > kLargestInput)
    throw Error("the filter returned an input of more than 20 MB");
  if (change.input && !isJsonObject(*change.input))
    throw Error("the filter returned an input that is not a JSON object");
  if (!change.policy) return;
  if (const auto good = checkPolicy(*change.policy); !good) {
    throw Error("the filter returned a wrong policy: " + good.failure().message());
  }
}

void checkRefusal(const Refuse& refusal) {
  constexpr std::array kStatuses{400, 403, 409, 413, 422, 429};
  if (std::find(kStatuses.begin(), kStatuses.end(), refusal.status) != kStatuses.end()) return;
  throw Error("the filter refused with status " + std::to_string(refusal.status) +
              ": a filter may use 400, 403, 409, 413, 422 and 429");
}

}  // namespace jobq
