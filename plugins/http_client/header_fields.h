// Header fields of a request, checked for the characters permitted by HTTP.
#pragma once

#include <initializer_list>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

namespace jobq::http_client {

/// Names and values of header fields, in the order in which they are sent.
using Headers = std::vector<std::pair<std::string, std::string>>;

/// Returns true if the text may be the name of a header field (a token of RFC 9110). Pure; any thread.
bool isHeaderName(std::string_view text);

/// Returns true if the text may be the value of a header field: no control characters except tabs. libcurl sends a
/// value unchanged, and a line break inside would begin another header. Pure; any thread.
bool isHeaderValue(std::string_view text);

/// Returns true if the name is one of the names, apart from the case of their letters. Pure; any thread.
bool isOneOf(std::string_view name, std::initializer_list<std::string_view> names);

/// Returns true if the headers have a field of the name. Pure; any thread.
bool hasHeader(const Headers& headers, std::string_view name);

}  // namespace jobq::http_client
