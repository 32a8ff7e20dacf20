// The part of the management API that a key lets its reader see: a key bound to endpoints sees these endpoints only,
// and the values of environment variables are for administrators.
#pragma once

#include <map>
#include <string>
#include <vector>

#include "core/endpoints/endpoint_registry.h"
#include "core/http/api/api_request.h"
#include "core/http/api/query_parameters.h"

namespace jobq {

/// Returns the endpoints of the part of a list that the key of the request may see, sorted by id.
std::vector<EndpointEntryPtr> entriesFor(const ApiRequest& request, const EndpointRegistry& registry,
                                         const ListPart& part);

/// Hides the values of the variables unless the request has a key of an administrator. The names stay.
void hideValues(const ApiRequest& request, std::map<std::string, std::string>& env);

}  // namespace jobq
