// http.get and http.post, for handlers only:
//
//   http.get(url [, options]), http.post(url, body [, options])
//     options: headers (name = value), timeout (seconds, at most lua.httpTimeout)
//     body: a string, sent unchanged, or a table, sent as JSON
//
// Both return {status = 200, body = "...", headers = {["content-type"] = "..."}} for every HTTP answer, or nil and a
// message without an answer. A wrong argument is an error of the script.
#pragma once

#include <cstdint>
#include <lua.hpp>

#include "jobq/time.h"

namespace jobq::lua {

struct HttpRules {
  const char* refusal = nullptr;  ///< a literal with the reason why every call raises; null: calls are made
  std::uint64_t maxBody = 0;      ///< limit in bytes of an answer's body
  Millis timeout{0};              ///< limit of a call; a script may ask for less
  bool allowPrivate = false;      ///< sdk/include/jobq/net_guard.h
};

constexpr const char* kHttpOff = "http is switched off: set lua.http = true";

/// Adds the library `http` to the libraries of the state, once per state. The state keeps a copy of the rules.
void openHttp(lua_State* lua, const HttpRules& rules);

}  // namespace jobq::lua
