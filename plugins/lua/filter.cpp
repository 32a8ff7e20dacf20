#include "filter.h"

#include <algorithm>
#include <cmath>
#include <ctime>
#include <optional>
#include <utility>

#include "json/json_bridge.h"
#include "sandbox/environment.h"
#include "sandbox/hidden_names.h"
#include "sandbox/lua_text.h"
#include "sandbox/sandbox.h"
#include "stdlib/library.h"
#include "stdlib/time_functions.h"

namespace jobq::lua {

using std::chrono::nanoseconds;

// A job under review.
struct Review {
  const AdmissionRequest& job;
  Quotas& quotas;
  const std::string& script;
  nanoseconds budget;  // processor time
  bool hasDecoded = false;
};

namespace {

constexpr nanoseconds kTimeAMegabyte = std::chrono::milliseconds(20);

// Bytes that a filter may print to the server's log for one job. Callers decide how often a filter prints, and all
// users share the disk.
constexpr std::size_t kMostPrinted = 4'096;
constexpr std::size_t kPriceOfALine = 64;

// Keys of the registry, by their addresses.
const char kReview = 0;  // pointer to the place where the filter keeps the present review
const char kFilterJobMeta = 0;

// Returns null during the trial run of a new text, before any job exists.
Review* reviewOf(lua_State* lua) {
  lua_rawgetp(lua, LUA_REGISTRYINDEX, &kReview);
  auto* const* place = static_cast<Review**>(lua_touserdata(lua, -1));
  lua_pop(lua, 1);
  return place == nullptr ? nullptr : *place;
}

// Processor time of the thread since the timer was made. Reading the processor's clock costs a system call, so the
// clock is not read in the first 20 microseconds, in which most filters end. Real time cannot be less than processor
// time and replaces it up to a millisecond. At most a millisecond is counted for the time before the first reading,
// because the machine may have been busy with other work.
class CpuTimer {
 public:
  nanoseconds used() {
    const nanoseconds gone = std::chrono::steady_clock::now() - begun_;
    if (gone < kUnasked) return gone;
    if (!asked_) asked_ = {std::min(gone, kReal), now()};
    return gone < kReal ? gone : asked_->before + now() - asked_->clock;
  }

 private:
  static constexpr nanoseconds kUnasked = std::chrono::microseconds(20);
  static constexpr nanoseconds kReal = std::chrono::milliseconds(1);

  struct Asked {
    nanoseconds before;
    nanoseconds clock;
  };

  static nanoseconds now() {
    timespec time{};
    clock_gettime(CLOCK_THREAD_CPUTIME_ID, &time);
    return std::chrono::seconds(time.tv_sec) + nanoseconds(time.tv_nsec);
  }

  const std::chrono::steady_clock::time_point begun_ = std::chrono::steady_clock::now();
  std::optional<Asked> asked_;
};

void pushPolicy(lua_State* lua, const JobPolicy& policy) {
  lua_createtable(lua, 0, 4);
  lua_pushinteger(lua, policy.executionTimeout.count());
  lua_setfield(lua, -2, "executionTimeout");
  lua_pushinteger(lua, policy.ttl.count());
  lua_setfield(lua, -2, "ttl");
  lua_pushboolean(lua, policy.lowPriority);
  lua_setfield(lua, -2, "lowPriority");
  lua_pushinteger(lua, policy.priority);
  lua_setfield(lua, -2, "priority");
}

void pushEnv(lua_State* lua, const std::map<std::string, std::string>& env) {
  lua_createtable(lua, 0, static_cast<int>(env.size()));
  for (const auto& [name, value] : env) {
    pushText(lua, name);
    pushText(lua, value);
    lua_rawset(lua, -3);
  }
}

// Expensive fields are made at their first use.
int jobField(lua_State* lua) {
  Review& review = *reviewOf(lua);
  const std::string_view name = lua_type(lua, 2) == LUA_TSTRING ? lua_tostring(lua, 2) : "";
  if (name == "input") {
    // Extended once per job: a script can drop the decoded input and ask for it again without end.
    if (!std::exchange(review.hasDecoded, true)) {
      review.budget += kTimeAMegabyte * review.job.input.size() / (1U << 20);
    }
    pushJson(lua, review.job.input);
  } else if (name == "policy") {
    pushPolicy(lua, review.job.policy);
  } else if (name == "env") {
    pushEnv(lua, review.job.env);
  } else if (name == "size") {
    lua_pushinteger(lua, static_cast<lua_Integer>(review.job.input.size()));
  } else if (name == "endpoint") {
    pushText(lua, review.job.endpoint);
  } else if (name == "key") {
    pushText(lua, review.job.apiKeyId);
  } else {
    return 0;
  }
  lua_pushvalue(lua, 2);
  lua_pushvalue(lua, -2);
  lua_rawset(lua, 1);
  return 1;
}

// quota.take(name, most, seconds). Returns true, or false and the seconds until the next use is possible.
int take(lua_State* lua) {
  std::size_t size = 0;
  const char* name = luaL_checklstring(lua, 1, &size);
  const lua_Integer most = luaL_checkinteger(lua, 2);
  const lua_Number seconds = luaL_checknumber(lua, 3);
  luaL_argcheck(lua, size <= 256, 1, "a name has at most 256 bytes");
  luaL_argcheck(lua, seconds >= 0.001 && seconds <= 604'800, 3, "from 0.001 to 604800 seconds");
  Review* const review = reviewOf(lua);
  if (review == nullptr) {  // a trial run takes no quota
    lua_pushboolean(lua, 1);
    return 1;
  }
  const Millis left =
      review->quotas.reserve(review->script + '\0' + std::string(review->job.endpoint) + '\0' + std::string(name, size),
                             most, Millis(static_cast<std::int64_t>(seconds * 1'000)));
  lua_pushboolean(lua, left.count() == 0);
  if (left.count() == 0) return 1;
  lua_pushnumber(lua, static_cast<lua_Number>(left.count()) / 1'000);
  return 2;
}

std::int64_t wholeAt(lua_State* lua, const std::string& name) {
  int isWhole = 0;
  const lua_Integer number = lua_tointegerx(lua, -1, &isWhole);
  if (isWhole == 0 || lua_type(lua, -1) != LUA_TNUMBER) throw ScriptError("policy." + name + " is not a whole number");
  return number;
}

// Reads the table at `index` with the fields to replace. All other fields keep the values of `policy`.
JobPolicy readPolicy(lua_State* lua, int index, JobPolicy policy) {
  if (lua_type(lua, index) != LUA_TTABLE) throw ScriptError("the policy returned by the filter is not a table");
  for (lua_pushnil(lua); lua_next(lua, index) != 0; lua_pop(lua, 1)) {
    const std::string name = lua_type(lua, -2) == LUA_TSTRING ? lua_tostring(lua, -2) : typeName(lua, -2);
    if (name == "executionTimeout") {
      policy.executionTimeout = Millis(wholeAt(lua, name));
    } else if (name == "ttl") {
      policy.ttl = Millis(wholeAt(lua, name));
    } else if (name == "priority") {
      policy.priority = static_cast<std::int32_t>(std::clamp<std::int64_t>(wholeAt(lua, name), INT32_MIN, INT32_MAX));
    } else if (name == "lowPriority") {
      if (!lua_isboolean(lua, -1)) throw ScriptError("policy.lowPriority is neither true nor false");
      policy.lowPriority = lua_toboolean(lua, -1) != 0;
    } else {
      throw ScriptError("the policy returned by the filter has the unknown field " + name);
    }
  }
  return policy;
}

// Reads {status = 429, retryAfter = 30}; both fields are optional. The host decides which statuses a filter may use.
void readRefusalOptions(lua_State* lua, int index, Refuse& refusal) {
  for (lua_pushnil(lua); lua_next(lua, index) != 0; lua_pop(lua, 1)) {
    const std::string name = lua_type(lua, -2) == LUA_TSTRING ? lua_tostring(lua, -2) : typeName(lua, -2);
    int isWhole = 0;
    const lua_Integer status = lua_tointegerx(lua, -1, &isWhole);
    const lua_Number seconds = lua_tonumber(lua, -1);
    if (lua_type(lua, -1) != LUA_TNUMBER) throw ScriptError("the " + name + " of the refusal is not a number");
    if (name == "status") {
      if (isWhole == 0 || status < 0 || status > 999)
        throw ScriptError("the status of the refusal is not an HTTP status");
      refusal.status = static_cast<int>(status);
    } else if (name == "retryAfter") {
      if (!(seconds >= 0 && seconds <= 604'800))
        throw ScriptError("retryAfter must be a number from 0 to 604800 seconds");
      refusal.retryAfter = Millis(static_cast<std::int64_t>(std::ceil(seconds * 1'000)));
    } else {
      throw ScriptError("the refusal has the unknown field " + name + ": status and retryAfter are known");
    }
  }
  if (refusal.retryAfter > Millis(0) && refusal.status != 429)
    throw ScriptError("retryAfter is allowed only with status = 429");
}

Refuse readRefusal(lua_State* lua, int message, const std::string& script) {
  Refuse refusal;
  std::size_t size = 0;
  const char* text = lua_type(lua, message) == LUA_TSTRING ? lua_tolstring(lua, message, &size) : "";
  refusal.message =
      size == 0 ? "the filter " + script + " refuses this job" : std::string(text, std::min<std::size_t>(size, 4'096));
  const int options = message + 1;
  if (lua_istable(lua, options)) {
    readRefusalOptions(lua, options, refusal);
  } else if (!lua_isnil(lua, options)) {
    throw ScriptError("the refusal has a " + std::string(typeName(lua, options)) +
                      " after the message, not a table like {status = 403}");
  }
  return refusal;
}

// Reads the script's results: no result or true, or false with a message and a table with the status, or a table with
// the fields of the job to replace.
Decision readVerdict(lua_State* lua, const AdmissionRequest& job, const std::string& script) {
  const int first = lua_absindex(lua, -3);
  if (lua_isnil(lua, first) && !lua_isnil(lua, first + 1)) {
    // `return nil, reason` is the failure of a function in Lua, and a failed filter accepts nothing.
    throw ScriptError("the filter returned nil and a message: return false and the message to refuse a job");
  }
  if (lua_isnil(lua, first)) return Accept{};
  if (lua_isboolean(lua, first)) {
    if (lua_toboolean(lua, first) != 0) return Accept{};
    return readRefusal(lua, first + 1, script);
  }
  if (!lua_istable(lua, first)) throw ScriptError("the filter returned a " + std::string(typeName(lua, first)));
  Replace change;
  for (lua_pushnil(lua); lua_next(lua, first) != 0; lua_pop(lua, 1)) {
    if (isHiddenName(lua, -2)) continue;
    const std::string name = lua_type(lua, -2) == LUA_TSTRING ? lua_tostring(lua, -2) : typeName(lua, -2);
    if (name == "input") {
      change.input = toJson(lua, -1);
    } else if (name == "policy") {
      change.policy = readPolicy(lua, lua_absindex(lua, -1), job.policy);
    } else {
      throw ScriptError("the filter returned a table with the unknown field " + name + ": input and policy are known");
    }
  }
  return change;
}

// Ends a script when it has used the processor time of its review.
class ReviewEnd final : public EndCondition {
 public:
  explicit ReviewEnd(const Review& review) : review_(review) {}

  std::optional<std::string> reasonToEnd() override {
    if (timer_.used() < review_.budget) return std::nullopt;
    return "the script took more than " + std::to_string(std::chrono::duration_cast<Millis>(review_.budget).count()) +
           " ms of processor time (lua.filterTime)";
  }

 private:
  const Review& review_;
  CpuTimer timer_;
};

// Writes the first lines of a script to the log of the server.
class ReviewLines final : public LineSink {
 public:
  ReviewLines(Log& log, const std::string& script) : log_(log), script_(script) {}

  void writeLine(std::string_view line) override {
    if (room_ == 0) return;
    log_.write(LogLevel::information, "filter.print", script_ + ": " + std::string(line.substr(0, room_)));
    room_ -= std::min(room_, line.size() + kPriceOfALine);
  }

 private:
  Log& log_;
  const std::string& script_;
  std::size_t room_ = kMostPrinted;
};

}  // namespace

void FilterLibraries::open(lua_State* lua) const {
  openStandardLibraries(lua);
  lua_pushlightuserdata(lua, place_);
  lua_rawsetp(lua, LUA_REGISTRYINDEX, &kReview);
  lua_createtable(lua, 0, 2);
  lua_pushcfunction(lua, guarded<jobField>);
  lua_setfield(lua, -2, "__index");
  lua_pushboolean(lua, 0);
  lua_setfield(lua, -2, "__metatable");
  lua_rawsetp(lua, LUA_REGISTRYINDEX, &kFilterJobMeta);
  lua_createtable(lua, 0, 1);
  lua_pushcfunction(lua, guarded<take>);
  lua_setfield(lua, -2, "take");
  addLibrary(lua, "quota");
  openTime(lua, clock_);
}

LuaFilter::LuaFilter(const FilterDeps& deps, std::string script)
    : deps_(deps), name_(std::move(script)), script_(deps_.scripts, name_), libraries_(deps_.clock, &review_) {}

LuaFilter::~LuaFilter() = default;

Decision LuaFilter::review(const AdmissionRequest& job) {
  const ScriptPtr& script = script_.newest();
  if (!sandbox_ || sandbox_->isSpent()) {
    sandbox_.reset();
    sandbox_ = std::make_unique<Sandbox>(deps_.options.memory, Sandbox::kPlainOfFilters, libraries_);
  }
  Review review{job, deps_.quotas, name_, deps_.options.filterTime};
  review_ = &review;  // the script's first lines may read the review already
  ReviewEnd end(review);
  ReviewLines lines(deps_.log, name_);
  Decision verdict;
  const auto body = [&](lua_State* lua) {
    lua_createtable(lua, 0, 1);
    lua_rawgetp(lua, LUA_REGISTRYINDEX, &kFilterJobMeta);
    lua_setmetatable(lua, -2);
    lua_call(lua, 1, 3);
    verdict = readVerdict(lua, job, name_);
  };
  sandbox_->run(script, end, &lines, std::ref(body));
  return verdict;
}

}  // namespace jobq::lua
