#include "core/handler_process/local_handler.h"

#include <filesystem>
#include <string_view>

#include "core/client/arguments.h"
#include "core/client/exit_code.h"

namespace jobq::worker {
namespace {

cli::Arguments pluginOptions(const HandlerSetup& setup) {
  cli::Arguments arguments;
  if (!setup.plugins.empty()) arguments.options["plugins"] = {setup.plugins};
  if (!setup.settings.empty()) arguments.options["set"] = setup.settings;
  return arguments;
}

cli::ScriptFolders scriptFolders(const std::filesystem::path& scripts) {
  return {scripts / "handlers", scripts / "filters"};
}

std::unique_ptr<HandlerFactory> makeFactory(const cli::LocalPlugins& plugins, const HandlerSetup& setup) {
  auto factory = plugins.create<HandlerFactory>(setup.plugin);
  if (const auto fault = factory->fault(setup.env.script)) throw cli::CommandError(cli::ExitCode::refused, *fault);
  return factory;
}

}  // namespace

LocalHandler::LocalHandler(const HandlerSetup& setup, Clock& clock, Log& log)
    : env_(setup.env),
      plugins_(pluginOptions(setup), scriptFolders(setup.scripts), clock, log),
      factory_(makeFactory(plugins_, setup)) {}

}  // namespace jobq::worker
