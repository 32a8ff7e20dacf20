// Readers of query parameters. Each refuses a parameter that occurs more than once: otherwise one of the values would
// be dropped unseen.
#pragma once

#include <cstdint>
#include <initializer_list>
#include <optional>
#include <set>
#include <string>
#include <string_view>
#include <utility>

#include "core/base/bounded_integer.h"
#include "core/base/result.h"
#include "core/http/api/api_request.h"

namespace jobq {

/// Fails for a query parameter that occurs more than once.
Result<void> checkOnce(const ApiRequest& request, const char* name);

/// Returns the query parameter `name`, or an empty string if the parameter is absent.
Result<std::string> readText(const ApiRequest& request, const char* name);

/// Returns the integer in the query parameter `name`, or `fallback` if the parameter is absent. A failure names
/// parameter and range.
Result<std::int64_t> readNumber(const ApiRequest& request, const char* name, const Range& range, OutOfRange otherwise,
                                std::int64_t fallback);

/// Reads two numbers with a dash between them, each of 1 to 15 digits. Returns no value for any other text.
std::optional<std::pair<std::int64_t, std::int64_t>> readNumberPair(std::string_view text);

/// Returns the names of the flags that are true. An absent flag is false. Fails, with a fault for each wrong flag, for
/// values other than true and false.
Result<std::set<std::string>> readFlags(const ApiRequest& request, std::initializer_list<const char*> names);

}  // namespace jobq
