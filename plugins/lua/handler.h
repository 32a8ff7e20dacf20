// The job handler in Lua: a script `return function(input, job) ... end`.
#pragma once

#include <lua.hpp>
#include <memory>
#include <string>
#include <string_view>

#include "jobq/job_handler.h"
#include "jobq/time.h"
#include "lua_options.h"
#include "script_folder.h"

namespace jobq::lua {

class Sandbox;

/// Adds the libraries of handlers to a state for a trial run without a job. Calls of http are refused there.
void openForTrial(lua_State* lua);

/// References and settings shared by all workers of a server. The objects outlive the handlers.
struct HandlerDeps {
  ScriptFolder& scripts;
  Clock& clock;
  const LuaOptions& options;
  bool allowPrivateAddresses;
};

/// The handler of one worker. Keeps its sandbox from job to job until the sandbox is spent (Sandbox::isSpent).
class LuaHandler final : public JobHandler {
 public:
  /// Throws ScriptError if the script does not exist or never compiled.
  LuaHandler(const HandlerDeps& deps, HandlerEnv env);
  ~LuaHandler() override;

  /// Runs the newest text of the script on `input`. Returns the output as JSON text. Throws JobFailed if the script
  /// fails or is ended.
  std::string run(std::string_view input, JobContext& context) override;

 private:
  const HandlerDeps deps_;
  const HandlerEnv env_;
  FollowedScript script_;
  std::unique_ptr<Sandbox> sandbox_;
};

}  // namespace jobq::lua
