// Scripts in Lua: handlers (image `lua/<name>`) and admission filters. Reading order: sandbox/sandbox.h (where a script
// runs), sandbox/execution_limiter.h (what ends a script), stdlib/library.cpp (which functions a script has),
// handler.cpp and filter.cpp (the purpose of a script).
#include <optional>
#include <string>
#include <string_view>

#include "filter.h"
#include "handler.h"
#include "jobq/abi.h"

namespace jobq::lua {

class LuaHandlerFactory final : public HandlerFactory {
 public:
  using Options = LuaOptions;

  explicit LuaHandlerFactory(const PluginEnv& env)
      : options_(env.config),
        trialLibraries_(HandlerLibraries::forTrial(env.clock)),
        folder_(env.scriptsDir, env.log, options_.memory, trialLibraries_),
        deps_{folder_, env.clock, options_, env.allowPrivateAddresses} {}

  std::unique_ptr<JobHandler> make(const HandlerEnv& env) override { return std::make_unique<LuaHandler>(deps_, env); }

  std::optional<std::string> fault(std::string_view script) const override {
    return script.empty() ? "lua is not a handler: use lua/<script>" : folder_.fault(std::string(script));
  }
  std::vector<ScriptReport> scripts() const override { return folder_.reports(); }

 private:
  const LuaOptions options_;
  const HandlerLibraries trialLibraries_;
  mutable ScriptFolder folder_;
  const HandlerDeps deps_;
};

class LuaFilterFactory final : public AdmissionFilterFactory {
 public:
  using Options = LuaOptions;

  explicit LuaFilterFactory(const PluginEnv& env)
      : options_(env.config),
        trialLibraries_(env.clock, nullptr),
        folder_(env.scriptsDir, env.log, options_.memory, trialLibraries_),
        quotas_(env.clock),
        deps_{folder_, quotas_, env.clock, env.log, options_} {}

  std::unique_ptr<AdmissionFilter> make(std::string_view script) override {
    return std::make_unique<LuaFilter>(deps_, std::string(script));
  }

  std::optional<std::string> fault(std::string_view script) const override {
    return script.empty() ? "plugin/lua is not a filter: use the script's name" : folder_.fault(std::string(script));
  }
  std::vector<ScriptReport> scripts() const override { return folder_.reports(); }

 private:
  const LuaOptions options_;
  const FilterLibraries trialLibraries_;
  mutable ScriptFolder folder_;
  Quotas quotas_;
  const FilterDeps deps_;
};

}  // namespace jobq::lua

constexpr jobq::abi::Entry kEntries[] = {
    jobq::abi::entry<jobq::HandlerFactory, jobq::lua::LuaHandlerFactory>("lua", "1.0.0"),
    jobq::abi::entry<jobq::AdmissionFilterFactory, jobq::lua::LuaFilterFactory>("lua", "1.0.0")};
JOBQ_PLUGIN(kEntries)
