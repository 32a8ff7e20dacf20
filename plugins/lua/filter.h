// Room 4: an admission filter that is a script, `return function(job) ... end`.
#pragma once

#include <lua.hpp>
#include <memory>
#include <string>

#include "jobq/admission_filter.h"
#include "jobq/log.h"
#include "jobq/time.h"
#include "lua_options.h"
#include "quotas.h"
#include "script.h"

namespace jobq::lua {

class Sandbox;
struct Review;

/// Adds the library `quota`. `place` says which job is under review while a script runs; without it there is none.
void openFilter(lua_State* lua, Review** place);

/// What all filters of a server share. Outlives them.
struct FilterDeps {
  ScriptFolder& scripts;
  Quotas& quotas;
  const Clock& clock;
  Log& log;
  const LuaOptions& options;
};

class LuaFilter final : public AdmissionFilter {
 public:
  LuaFilter(const FilterDeps& deps, std::string script);
  ~LuaFilter() override;

  /// Throws ScriptError when the script fails, or takes more time or memory than it has.

 private:
  Decision review(const AdmissionRequest& job) override;

  const FilterDeps deps_;
  const std::string name_;
  FollowedScript script_;
  Review* review_ = nullptr;  // while a script runs
  std::unique_ptr<Sandbox> sandbox_;
};

}  // namespace jobq::lua
