// Functions shared by several routes of the management API.
#pragma once

#include "core/config/form.h"
#include "core/http/api/api_request.h"

namespace jobq {

/// Returns a 400 answer: `message` joins one sentence for each wrong field, `errors` lists the sentences by field.
ApiResponse faultResponse(const FieldFaults& faults);

/// Returns the value of an optional boolean of the query, false if absent. Adds a fault if the value is neither true
/// nor false, or if the name occurs twice.
bool readFlag(const ApiRequest& call, const char* name, FieldFaults& faults);

}  // namespace jobq
