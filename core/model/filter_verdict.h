// Bounds on the verdict of an admission filter, for the server and for `jobqctl lua run --filter`.
#pragma once

#include "jobq/admission_filter.h"

namespace jobq {

/// Throws Error with a short reason if the replacement holds data that a caller may not send: an input over 20 MB or
/// without a JSON object, or a wrong policy.
void checkReplacement(const Replace& change);

/// Throws Error if the status is none of 400, 403, 409, 413, 422 and 429.
void checkRefusal(const Refuse& refusal);

}  // namespace jobq
