// The admission filter in Lua: a script `return function(job) ... end`.
#pragma once

#include <memory>
#include <string>

#include "jobq/admission_filter.h"
#include "jobq/log.h"
#include "jobq/time.h"
#include "lua_options.h"
#include "quotas.h"
#include "sandbox/library_opener.h"
#include "script_folder.h"

namespace jobq::lua {

class Sandbox;
struct Review;

/// The libraries of every script, `quota` and `os`, and the metatable of the job.
class FilterLibraries final : public LibraryOpener {
 public:
  /// `clock` outlives the object. `place`: where the caller keeps the review of the running script; null for trial
  /// runs, which have no job.
  FilterLibraries(const Clock& clock, Review** place) : clock_(clock), place_(place) {}

  void open(lua_State* lua) const override;

 private:
  const Clock& clock_;
  Review** const place_;
};

/// References shared by all filters of a server. The objects outlive the filters.
struct FilterDeps {
  ScriptFolder& scripts;
  Quotas& quotas;
  const Clock& clock;
  Log& log;
  const LuaOptions& options;
};

/// A filter that runs one script of the folder. Serves one call at a time.
class LuaFilter final : public AdmissionFilter {
 public:
  /// `script`: name of the file without `.lua`. Throws ScriptError if the script does not exist or never compiled.
  LuaFilter(const FilterDeps& deps, std::string script);
  ~LuaFilter() override;

 private:
  /// Runs the newest text of the script on the job. Returns the decision of the script. Throws ScriptError if the
  /// script fails or exceeds its time or memory.
  Decision review(const AdmissionRequest& job) override;

  const FilterDeps deps_;
  const std::string name_;
  FollowedScript script_;
  Review* review_ = nullptr;  // set while a script runs
  const FilterLibraries libraries_;
  std::unique_ptr<Sandbox> sandbox_;
};

}  // namespace jobq::lua
