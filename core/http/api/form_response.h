// Functions shared by several routes of the management API.
#pragma once

#include "core/base/result.h"
#include "core/http/api/api_request.h"

namespace jobq {

/// Returns the answer to a call that failed: 404, or 400 with `message`, which joins one sentence for each wrong field,
/// and `errors`, which lists the sentences by field.
ApiResponse failureResponse(const ApiRequest& call, const Failure& failure);

/// Returns the 400 answer of failureResponse() for wrong parameters.
ApiResponse faultResponse(const FieldFaults& faults);

/// Returns the value of an optional boolean of the query, false if absent. Adds a fault if the value is neither true
/// nor false, or if the name occurs twice.
bool readFlag(const ApiRequest& call, const char* name, FieldFaults& faults);

}  // namespace jobq
