// The route that a caller of an unknown path probably means, for the sentence of the 404.
#pragma once

#include <string>
#include <string_view>
#include <vector>

#include "core/http/api/router.h"

namespace jobq {

/// Returns the route with the fewest changes of letters and segments between its path and `path`, or an empty text if
/// each route is far, or has no segment in common with the path but placeholders. `routes` are texts such as
/// "GET /v1/keys/{id}"; among equally near ones, a route with `method` comes first. A long path has no near route, so
/// that the time is bounded. Pure; any thread.
std::string nearestRoute(const std::vector<std::string>& routes, std::string_view method, std::string_view path);
/// Returns the same for the routes of the table.
std::string nearestRoute(const Router& router, std::string_view method, std::string_view path);

}  // namespace jobq
