#include "handler.h"

#include <algorithm>
#include <chrono>
#include <optional>
#include <stop_token>
#include <string_view>

#include "jobq/lease_store.h"
#include "json/json_bridge.h"
#include "sandbox/lua_text.h"
#include "sandbox/sandbox.h"
#include "stdlib/library.h"
#include "stdlib/time_functions.h"

namespace jobq::lua {
namespace {

// Time for a script that checks job:stopped() to end by itself after a stop.
constexpr std::chrono::milliseconds kStopGrace{250};

// Keys of the registry, by their addresses.
const char kContext = 0;  // the JobContext of the running job
const char kClock = 0;
const char kHandlerJobMeta = 0;

JobContext& contextOf(lua_State* lua) {
  luaL_argcheck(lua, lua_istable(lua, 1), 1, "use job:emit(...), with a colon");
  lua_rawgetp(lua, LUA_REGISTRYINDEX, &kContext);
  auto* context = static_cast<JobContext*>(lua_touserdata(lua, -1));
  lua_pop(lua, 1);
  return *context;
}

int emit(lua_State* lua) {
  JobContext& context = contextOf(lua);
  luaL_checkany(lua, 2);
  const std::string chunk = toJson(lua, 2);
  const std::string metrics = lua_isnoneornil(lua, 3) ? std::string() : toJson(lua, 3);
  context.emit(chunk, metrics);
  return 0;
}

int progress(lua_State* lua) {
  JobContext& context = contextOf(lua);
  luaL_checkany(lua, 2);
  context.progress(toJson(lua, 2));
  return 0;
}

// job:log(...). print(...) does the same unless the script defines its own print.
int log(lua_State* lua) {
  (void)contextOf(lua);
  lua_remove(lua, 1);
  return printLine(lua);
}

int stopped(lua_State* lua) {
  lua_pushboolean(lua, contextOf(lua).stopToken().stop_requested());
  return 1;
}

// job:deadline(). Returns the milliseconds left.
int deadline(lua_State* lua) {
  const Instant end = contextOf(lua).deadline();
  lua_rawgetp(lua, LUA_REGISTRYINDEX, &kClock);
  const Instant now = static_cast<Clock*>(lua_touserdata(lua, -1))->now();
  lua_pushinteger(lua, std::max(end - now, Millis(0)).count());
  return 1;
}

// Fields that are not in the table of the job: the methods, and the id. The host may have to store the job before a
// handler reads the id (jobq/job_handler.h), so the id is read when a script asks for it.
int fieldOfJob(lua_State* lua) {
  const char* const name = lua_type(lua, 2) == LUA_TSTRING ? lua_tostring(lua, 2) : "";
  if (std::string_view(name) != "id") {
    lua_settop(lua, 2);
    lua_rawget(lua, lua_upvalueindex(1));
    return 1;
  }
  pushText(lua, contextOf(lua).id());
  lua_pushvalue(lua, -1);
  lua_setfield(lua, 1, "id");
  return 1;
}

void openJob(lua_State* lua, Clock& clock) {
  constexpr luaL_Reg kMethods[] = {{"emit", guarded<emit>},         {"progress", guarded<progress>},
                                   {"log", guarded<log>},           {"stopped", guarded<stopped>},
                                   {"deadline", guarded<deadline>}, {nullptr, nullptr}};
  lua_pushlightuserdata(lua, &clock);
  lua_rawsetp(lua, LUA_REGISTRYINDEX, &kClock);
  lua_createtable(lua, 0, 2);
  luaL_newlib(lua, kMethods);
  lua_pushcclosure(lua, guarded<fieldOfJob>, 1);
  lua_setfield(lua, -2, "__index");
  lua_pushboolean(lua, 0);
  lua_setfield(lua, -2, "__metatable");
  lua_rawsetp(lua, LUA_REGISTRYINDEX, &kHandlerJobMeta);
}

void pushJob(lua_State* lua, const HandlerEnv& env, JobContext& context) {
  lua_pushlightuserdata(lua, &context);
  lua_rawsetp(lua, LUA_REGISTRYINDEX, &kContext);
  lua_createtable(lua, 0, 4);
  pushText(lua, env.endpoint);
  lua_setfield(lua, -2, "endpoint");
  lua_pushinteger(lua, context.attempt());
  lua_setfield(lua, -2, "attempt");
  lua_createtable(lua, 0, static_cast<int>(env.variables.size()));
  for (const auto& [name, value] : env.variables) {
    pushText(lua, name);
    pushText(lua, value);
    lua_rawset(lua, -3);
  }
  lua_setfield(lua, -2, "env");
  lua_rawgetp(lua, LUA_REGISTRYINDEX, &kHandlerJobMeta);
  lua_setmetatable(lua, -2);
}

HttpRules httpRules(const HandlerDeps& deps) {
  const LuaOptions& options = deps.options;
  return {options.http ? nullptr : kHttpOff, options.httpBody, options.httpTimeout, deps.allowPrivateAddresses};
}

// Ends a script at the deadline of its job, and some time after a stop.
class JobEnd final : public EndCondition {
 public:
  JobEnd(const Clock& clock, const JobContext& context)
      : clock_(clock), context_(context), stop_(context.stopToken()) {}

  std::optional<std::string> reasonToEnd() override {
    if (clock_.now() >= context_.deadline()) return std::string(kOverTime);
    if (!stop_.stop_requested()) return std::nullopt;
    const auto now = std::chrono::steady_clock::now();
    if (!stoppedAt_) stoppedAt_ = now;
    if (now - *stoppedAt_ < kStopGrace) return std::nullopt;
    return "the job was stopped";
  }

 private:
  const Clock& clock_;
  const JobContext& context_;
  const std::stop_token stop_;
  std::optional<std::chrono::steady_clock::time_point> stoppedAt_;
};

// Writes the lines of a script to the log of its job.
class JobLines final : public LineSink {
 public:
  explicit JobLines(JobContext& context) : context_(context) {}

  void writeLine(std::string_view line) override { context_.log(LogLevel::information, line); }

 private:
  JobContext& context_;
};

}  // namespace

HandlerLibraries HandlerLibraries::forTrial(Clock& clock) {
  return {clock, {"http is available only in jobs: call http inside the returned function"}};
}

void HandlerLibraries::open(lua_State* lua) const {
  openStandardLibraries(lua);
  openJob(lua, clock_);
  openHttp(lua, http_);
  openTime(lua, clock_);
}

LuaHandler::LuaHandler(const HandlerDeps& deps, HandlerEnv env)
    : deps_(deps),
      env_(std::move(env)),
      libraries_(deps_.clock, httpRules(deps_)),
      script_(deps_.scripts, env_.script) {}

LuaHandler::~LuaHandler() = default;

std::string LuaHandler::run(std::string_view input, JobContext& context) {
  const ScriptPtr script = script_.newest();
  if (!sandbox_ || sandbox_->isSpent()) {
    sandbox_.reset();
    sandbox_ = std::make_unique<Sandbox>(deps_.options.memory, Sandbox::kPlainOfHandlers, libraries_);
  }
  JobEnd end(deps_.clock, context);
  JobLines lines(context);
  std::string output;
  const auto body = [&](lua_State* lua) {
    pushJson(lua, input);
    pushJob(lua, env_, context);
    lua_call(lua, 2, 2);
    if (lua_isnil(lua, -2) && !lua_isnil(lua, -1)) lua_error(lua);  // `return nil, reason`, as libraries of Lua do
    output = toJson(lua, -2);
  };
  try {
    sandbox_->run(script, end, &lines, std::ref(body));
  } catch (const ScriptError& error) {
    if (sandbox_->isSpent()) sandbox_.reset();
    throw JobFailed(error.what());
  }
  return output;
}

}  // namespace jobq::lua
