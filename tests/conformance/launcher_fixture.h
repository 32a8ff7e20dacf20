// The launcher `process` without a server.
#pragma once

#include <filesystem>
#include <functional>
#include <map>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "jobq/log.h"
#include "jobq/plugin.h"
#include "jobq/worker_launcher.h"
#include "testkit/loaded_plugin.h"
#include "testkit/manual_clock.h"
#include "testkit/recording_log.h"
#include "testkit/temporary_folder.h"

namespace jobq::test {

/// A container whose main process is a shell with `script`, and `arguments` as $1 and so on.
inline ContainerSpec shellContainer(const std::string& script, const std::vector<std::string>& arguments = {}) {
  ContainerSpec container;
  container.image = "any";
  container.entrypoint = {"sh", "-c", script, "sh"};
  container.command = arguments;
  return container;
}

/// Loads the launcher from the plugin that the server loads. `data` is the data directory.
inline std::unique_ptr<WorkerLauncher> loadProcessLauncher(
    Log& log, const std::filesystem::path& data, std::map<std::string, std::string, std::less<>> settings = {}) {
  static testkit::ManualClock clock;
  const testkit::MapConfig config(std::move(settings));
  return testkit::loadPlugin<WorkerLauncher>(JOBQ_PLUGIN_DIR "/libjobq_launcher_process.so", "process",
                                             PluginEnv{config, clock, log, data, false});
}

}  // namespace jobq::test
