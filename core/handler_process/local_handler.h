// The handler of a worker, made from the installed plugins and scripts.
#pragma once

#include <memory>
#include <string>
#include <vector>

#include "core/client/local_plugins.h"
#include "jobq/job_handler.h"
#include "jobq/log.h"
#include "jobq/time.h"

namespace jobq::worker {

/// The handler of a worker, as named on the command line.
struct HandlerSetup {
  std::string plugin;  ///< name of the handler plugin
  HandlerEnv env;
  std::string scripts;                  ///< folder with `handlers/<name>.lua`
  std::string plugins{};                ///< folder of the plugins; empty for the installed ones
  std::vector<std::string> settings{};  ///< KEY=VALUE, each an option --set
};

/// Outlives the handlers that it has made. Any thread may call make().
class LocalHandler {
 public:
  /// Loads the plugin. `clock` and `log` outlive the object. Throws CommandError or ConfigError, with a sentence, if
  /// the handler cannot run.
  LocalHandler(const HandlerSetup& setup, Clock& clock, Log& log);

  /// Returns a new handler for the calling thread. Throws any std::exception if the handler cannot be made.
  std::unique_ptr<JobHandler> make() const { return factory_->make(env_); }

 private:
  const HandlerEnv env_;
  const cli::LocalPlugins plugins_;
  const std::unique_ptr<HandlerFactory> factory_;
};

}  // namespace jobq::worker
