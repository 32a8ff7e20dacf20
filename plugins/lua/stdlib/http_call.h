// An HTTP call of a script: bounded in size and time, ended when the script has to end, and connected to permitted
// addresses only (sdk/include/jobq/net_guard.h), redirects included. The call uses no proxy, no cookie, no stored
// credential and no shared connection. The code is independent of Lua.
#pragma once

#include <cstdint>
#include <functional>
#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <variant>
#include <vector>

#include "jobq/time.h"
#include "stdlib/http_answer.h"

namespace jobq::lua {

struct HttpRequest {
  std::string url;
  std::optional<std::string_view> body;  ///< sent by POST; without a body the call is a GET; outlives the call
  std::vector<std::pair<std::string, std::string>> headers;  ///< each checked by headerFault()
  std::uint64_t maxBody = 0;                                 ///< limit in bytes of the answer's body
  Millis timeout{0};                                         ///< limit of the whole call, redirects included
  bool allowPrivate = false;
};

/// The call failed without an answer.
struct HttpFault {
  std::string reason;  ///< a clause; names neither the URL nor a header's value, because both may be secret
};

/// The call was abandoned because `isOver` returned true.
struct HttpGivenUp {};

using HttpOutcome = std::variant<HttpAnswer, HttpFault, HttpGivenUp>;

constexpr int kMostRedirects = 5;

/// Performs the call and blocks until its end. Any thread, many calls at once. `isOver` is called on the calling thread
/// every 50 ms or more often. Throws std::bad_alloc and any exception of `isOver`.
///
/// Answers 301, 302, 303, 307 and 308 with a Location are followed, at most kMostRedirects in a call. 307 and 308 keep
/// the method and the body; 301, 302 and 303 continue with a GET. Authorization and Cookie are left out from the first
/// redirect to another scheme, host or port on.
HttpOutcome callHttp(HttpRequest request, const std::function<bool()>& isOver);

/// Returns the reason why a script must not send the header, as a clause, or an empty string if the header is allowed.
/// Pure.
std::string headerFault(std::string_view name, std::string_view value);

}  // namespace jobq::lua
