// http.get and http.post, for handlers only:
//
//   http.get(url [, options]), http.post(url, body [, options])
//     options: headers (name = value), timeout (seconds, at most lua.httpTimeout)
//     body: a string, sent as it is, or a table, sent as JSON
//   give {status = 200, body = "...", headers = {["content-type"] = "..."}} for every HTTP answer, or nil and a message
//   where there is none; a wrong argument is an error of the script.
#pragma once

#include <cstdint>
#include <lua.hpp>

#include "jobq/time.h"

namespace jobq::lua {

struct HttpRules {
  const char* refusal = nullptr;  ///< a literal: why every call raises; null: calls are made
  std::uint64_t maxBody = 0;      ///< bytes of an answer's body
  Millis timeout{0};              ///< of a call; a script may ask for less
  bool allowPrivate = false;      ///< net_guard.h
};

constexpr const char* kHttpOff = "http is switched off: set lua.http = true";

/// Adds the library `http` to those of the state, which keeps a copy of the rules. Once per state.
void openHttp(lua_State* lua, const HttpRules& rules);

}  // namespace jobq::lua
