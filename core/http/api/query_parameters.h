// Readers of query parameters. Each refuses a parameter that occurs more than once: otherwise one of the values would
// be dropped unseen.
#pragma once

#include <cstddef>
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
#include "jobq/time.h"

namespace jobq {

/// Fails for a query parameter that occurs more than once.
Result<void> checkOnce(const ApiRequest& request, const char* name);

/// Returns the query parameter `name`, or an empty string if the parameter is absent.
Result<std::string> readText(const ApiRequest& request, const char* name);

/// Returns the integer in the query parameter `name`, or `fallback` if the parameter is absent. A failure names
/// parameter and range.
Result<std::int64_t> readNumber(const ApiRequest& request, const char* name, const Range& range, OutOfRange otherwise,
                                std::int64_t fallback);

/// Returns the duration in milliseconds in the query parameter `name`, as readNumber() does. A failure asks about the
/// unit if the number looks like seconds.
Result<Millis> readMillis(const ApiRequest& request, const char* name, const Range& range, OutOfRange otherwise,
                          Millis fallback);

/// A part of a list in the order of the ids.
struct ListPart {
  std::string cursor;            ///< the last id before the part; empty: the part begins with the list
  std::size_t limit = SIZE_MAX;  ///< most elements
};
/// Reads the query parameters `cursor` and `limit` of a list; without the two the part is the whole list.
Result<ListPart> readListPart(const ApiRequest& request);

/// Reads two numbers with a dash between them, each of 1 to 15 digits. Returns no value for any other text.
std::optional<std::pair<std::int64_t, std::int64_t>> readNumberPair(std::string_view text);

/// Returns the names of the flags that are true. An absent flag is false. Fails, with a fault for each wrong flag, for
/// values other than true and false.
Result<std::set<std::string>> readFlags(const ApiRequest& request, std::initializer_list<const char*> names);

}  // namespace jobq
