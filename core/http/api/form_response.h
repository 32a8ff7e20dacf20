// Answers that several routes of the management API have in common.
#pragma once

#include "core/endpoints/form.h"
#include "core/http/api/api_request.h"

namespace jobq {

/// 400: `message` has one sentence for every wrong field, `errors` has them one by one.
ApiResponse faultResponse(const FieldFaults& faults);

/// An optional query boolean; anything but true and false is a fault.
bool readFlag(const ApiRequest& call, const char* name, FieldFaults& faults);

}  // namespace jobq
