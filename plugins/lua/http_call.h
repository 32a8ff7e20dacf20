// One HTTP call of a script: bounded in size and time, ended when the script has to end, and connected to permitted
// addresses only (jobq/net_guard.h), redirects included. No proxy, no cookie, no stored credential, no connection that
// is shared. Knows nothing of Lua.
#pragma once

#include <cstdint>
#include <functional>
#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <variant>
#include <vector>

#include "http_answer.h"
#include "jobq/time.h"

namespace jobq::lua {

struct HttpRequest {
  std::string url;
  std::optional<std::string_view> body;                      ///< a POST of it; without one a GET. Outlives the call.
  std::vector<std::pair<std::string, std::string>> headers;  ///< each judged by headerFault()
  std::uint64_t maxBody = 0;                                 ///< bytes of the answer's body
  Millis timeout{0};                                         ///< for all of it, redirects included
  bool allowPrivate = false;
};

/// There is no answer.
struct HttpFault {
  std::string reason;  ///< one clause; names neither the URL nor a header's value, which may be secret
};

/// The call was given up, because `isOver` said so.
struct HttpGivenUp {};

using HttpOutcome = std::variant<HttpAnswer, HttpFault, HttpGivenUp>;

constexpr int kMostRedirects = 5;

/// Any thread, many at once; blocks, and asks `isOver` on this thread every 50 ms or more often. Throws std::bad_alloc
/// and what `isOver` throws.
///
/// 301, 302, 303, 307 and 308 with a Location are followed. 307 and 308 keep the method and the body; the others go on
/// with a GET. Authorization and Cookie are left out from the first redirect to another scheme, host or port on.
HttpOutcome callHttp(HttpRequest request, const std::function<bool()>& isOver);

/// Why a script must not send this header, as a clause; empty when it may. Pure.
std::string headerFault(std::string_view name, std::string_view value);

}  // namespace jobq::lua
