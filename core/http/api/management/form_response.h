// The answer of the management API to a call that failed.
#pragma once

#include "core/base/result.h"
#include "core/http/api/api_request.h"

namespace jobq {

/// Returns the answer to a call that failed: 404, or 400 with `message`, which joins one sentence for each wrong field,
/// and `errors`, which lists the sentences by field.
ApiResponse failureResponse(const ApiRequest& request, const Failure& failure);

}  // namespace jobq
