// The job handler in Lua: a script `return function(input, job) ... end`.
#pragma once

#include <memory>
#include <string>
#include <string_view>

#include "jobq/job_handler.h"
#include "jobq/time.h"
#include "lua_options.h"
#include "sandbox/library_opener.h"
#include "script_folder.h"
#include "stdlib/http_functions.h"

namespace jobq::lua {

class Sandbox;

/// The libraries of every script, `http` and `os`, and the metatable of the job. `clock` outlives the object.
class HandlerLibraries final : public LibraryOpener {
 public:
  HandlerLibraries(Clock& clock, const HttpRules& http) : clock_(clock), http_(http) {}

  /// Returns the libraries for a trial run without a job. Calls of http are refused there.
  static HandlerLibraries forTrial(Clock& clock);

  void open(lua_State* lua) const override;

 private:
  Clock& clock_;
  const HttpRules http_;
};

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
  const HandlerLibraries libraries_;
  FollowedScript script_;
  std::unique_ptr<Sandbox> sandbox_;
};

}  // namespace jobq::lua
