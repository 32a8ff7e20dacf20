#include "stdlib/http_functions.h"

#include <cmath>
#include <cstddef>
#include <new>
#include <optional>
#include <string>
#include <string_view>
#include <type_traits>
#include <utility>

#include "http_client/transfer.h"
#include "json/json_bridge.h"
#include "sandbox/environment.h"
#include "sandbox/lua_text.h"
#include "sandbox/sandbox.h"

namespace jobq::lua {
namespace {

constexpr int kMostRedirects = 5;
constexpr std::size_t kMostHeaders = 100;
constexpr std::size_t kMostHeaderBytes = 64 * 1024;

/// Ends the call when the script has to end. The thread of the script makes the call.
class LimiterCheck final : public http_client::CancelCheck {
 public:
  explicit LimiterCheck(ExecutionLimiter& limiter) : limiter_(limiter) {}
  bool isOver() override { return limiter_.isOver(); }

 private:
  ExecutionLimiter& limiter_;
};

// Returns the reason why a script must not send the header, as a clause, or no value if the header is allowed.
std::optional<std::string> headerFault(std::string_view name, std::string_view value) {
  if (!http_client::isHeaderName(name)) return "a header's name has characters that HTTP forbids";
  if (http_client::isOneOf(name, {"Host", "Content-Length", "Transfer-Encoding", "Connection", "Expect", "Keep-Alive",
                                  "TE", "Trailer", "Upgrade", "Proxy-Connection"})) {
    return "the header " + std::string(name) + " cannot be set by a script";
  }
  if (http_client::isHeaderValue(value)) return std::nullopt;
  return "the value of the header " + std::string(name) + " has a line break or control character";
}

std::string_view textAt(lua_State* lua, int index) {
  std::size_t size = 0;
  const char* bytes = lua_tolstring(lua, index, &size);
  return {bytes, size};
}

const HttpRules& rulesOf(lua_State* lua) {
  const auto& rules = *static_cast<const HttpRules*>(lua_touserdata(lua, lua_upvalueindex(1)));
  if (rules.refusal != nullptr) throw ScriptError(rules.refusal);
  return rules;
}

// Reads the table on top of the stack.
void readHeaders(lua_State* lua, http_client::Request& request) {
  if (!lua_istable(lua, -1)) throw ScriptError("options.headers is not a table");
  std::size_t bytes = 0;
  for (lua_pushnil(lua); lua_next(lua, -2) != 0; lua_pop(lua, 1)) {
    if (lua_type(lua, -2) != LUA_TSTRING) throw ScriptError("options.headers has a name that is not a string");
    const std::string name(textAt(lua, -2));
    if (lua_type(lua, -1) != LUA_TSTRING) {
      const auto fault = headerFault(name, {});
      throw ScriptError(fault.value_or("the value of the header " + name + " is not a string"));
    }
    const std::string_view value = textAt(lua, -1);
    const auto fault = headerFault(name, value);
    if (fault) throw ScriptError(*fault);
    bytes += name.size() + value.size();
    if (request.headers.size() == kMostHeaders || bytes > kMostHeaderBytes) {
      throw ScriptError("options.headers has more than 100 headers or 64 KB");
    }
    request.headers.emplace_back(name, value);
  }
}

// Reads the value on top of the stack.
void readTimeout(lua_State* lua, http_client::Request& request) {
  const double most = static_cast<double>(request.timeout.count()) / 1'000;
  const double seconds = lua_type(lua, -1) == LUA_TNUMBER ? lua_tonumber(lua, -1) : 0;
  if (!(seconds >= 0.001 && seconds <= most)) {
    lua_pushfstring(lua, "options.timeout must be a number of seconds from 0.001 to %f (lua.httpTimeout)", most);
    throw ScriptError(lua_tostring(lua, -1));
  }
  request.timeout = Millis(std::llround(seconds * 1'000));
}

http_client::Request readRequest(lua_State* lua, const HttpRules& rules, int options) {
  http_client::Request request;
  request.url = textAt(lua, 1);
  request.userAgent = "jobq-lua/1";
  request.bodyBounds.kept = rules.maxBody;
  request.maxRedirects = kMostRedirects;
  request.timeout = rules.timeout;
  request.allowPrivate = rules.allowPrivate;
  if (lua_isnil(lua, options)) return request;
  for (lua_pushnil(lua); lua_next(lua, options) != 0; lua_pop(lua, 1)) {
    const std::string_view name = lua_type(lua, -2) == LUA_TSTRING ? textAt(lua, -2) : typeName(lua, -2);
    if (name == "headers") {
      readHeaders(lua, request);
    } else if (name == "timeout") {
      readTimeout(lua, request);
    } else {
      throw ScriptError("options has the unknown field " + std::string(name.substr(0, 64)) +
                        ": headers and timeout are known");
    }
  }
  return request;
}

void pushAnswer(lua_State* lua, const http_client::Answer& answer) {
  ExecutionLimiter::of(lua).spend(lua, 1 + answer.body.size() / 8);
  lua_createtable(lua, 0, 3);
  lua_pushinteger(lua, answer.status);
  lua_setfield(lua, -2, "status");
  pushText(lua, answer.body);
  lua_setfield(lua, -2, "body");
  lua_createtable(lua, 0, static_cast<int>(answer.headers.size()));
  for (const auto& [name, value] : answer.headers) {
    pushText(lua, name);
    pushText(lua, value);
    lua_rawset(lua, -3);
  }
  lua_setfield(lua, -2, "headers");
}

int call(lua_State* lua, const http_client::Request& request) {
  using http_client::FaultKind;
  ExecutionLimiter& limiter = ExecutionLimiter::of(lua);
  LimiterCheck check(limiter);
  const http_client::Outcome outcome = http_client::transferPatiently(request, {}, &check);
  if (!outcome.fault) {
    pushAnswer(lua, outcome.answer);
    return 1;
  }
  if (outcome.fault->kind == FaultKind::outOfMemory) throw std::bad_alloc();
  limiter.spend(lua, 1);  // raises if the call was given up
  lua_pushnil(lua);
  pushText(lua, outcome.fault->reason + (outcome.fault->kind == FaultKind::bodyTooLarge ? " (lua.httpBody)" : ""));
  return 2;
}

int get(lua_State* lua) {
  const HttpRules& rules = rulesOf(lua);
  luaL_checktype(lua, 1, LUA_TSTRING);
  luaL_argexpected(lua, lua_isnoneornil(lua, 2) || lua_istable(lua, 2), 2, "nil or table");
  lua_settop(lua, 2);
  return call(lua, readRequest(lua, rules, 2));
}

int post(lua_State* lua) {
  const HttpRules& rules = rulesOf(lua);
  luaL_checktype(lua, 1, LUA_TSTRING);
  luaL_argexpected(lua, lua_istable(lua, 2) || lua_type(lua, 2) == LUA_TSTRING, 2, "string or table");
  luaL_argexpected(lua, lua_isnoneornil(lua, 3) || lua_istable(lua, 3), 3, "nil or table");
  lua_settop(lua, 3);
  http_client::Request request = readRequest(lua, rules, 3);
  request.method = http_client::Method::post;
  std::string json;
  if (lua_istable(lua, 2)) {
    json = toJson(lua, 2);
    if (!http_client::hasHeader(request.headers, "Content-Type")) {
      request.headers.emplace_back("Content-Type", "application/json");
    }
    request.body = json;
  } else {
    request.body = textAt(lua, 2);
  }
  return call(lua, std::move(request));
}

}  // namespace

void openHttp(lua_State* lua, const HttpRules& rules) {
  static_assert(std::is_trivially_destructible_v<HttpRules>, "Lua frees its copy without a destructor");
  constexpr luaL_Reg kFunctions[] = {{"get", guarded<get>}, {"post", guarded<post>}, {nullptr, nullptr}};
  lua_createtable(lua, 0, 2);
  new (lua_newuserdatauv(lua, sizeof rules, 0)) HttpRules(rules);
  luaL_setfuncs(lua, kFunctions, 1);
  addLibrary(lua, "http");
}

}  // namespace jobq::lua
