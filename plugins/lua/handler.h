// Room 9: a job's handler that is a script, `return function(input, job) ... end`.
#pragma once

#include <lua.hpp>
#include <memory>
#include <string>
#include <string_view>

#include "jobq/job_handler.h"
#include "jobq/time.h"
#include "lua_options.h"
#include "script.h"

namespace jobq::lua {

class Sandbox;

/// The libraries of handlers, for a look at a script without a job: what they do is refused.
void openForTrial(lua_State* lua);

/// What all workers of a server share. Outlives them.
struct HandlerDeps {
  ScriptFolder& scripts;
  Clock& clock;
  const LuaOptions& options;
  bool allowPrivateAddresses;
};

/// A worker: keeps its sandbox from job to job, as long as that is as good as new.
class LuaHandler final : public JobHandler {
 public:
  /// Throws ScriptError when there is no such script, or it never compiled.
  LuaHandler(const HandlerDeps& deps, HandlerEnv env);
  ~LuaHandler() override;

  std::string run(std::string_view input, JobContext& context) override;

 private:
  const HandlerDeps deps_;
  const HandlerEnv env_;
  FollowedScript script_;
  std::unique_ptr<Sandbox> sandbox_;
};

}  // namespace jobq::lua
