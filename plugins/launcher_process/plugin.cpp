// Plugin `launcher_process`: workers as processes of the server's machine. The guard of a worker ends all processes of
// the worker (guard/guard.cpp). The setting `launcher = process` selects the plugin.
#include <array>
#include <chrono>
#include <cstdint>
#include <filesystem>
#include <optional>
#include <string>
#include <system_error>
#include <utility>
#include <vector>

#include "guard_path.h"
#include "jobq/abi.h"
#include "jobq/worker_launcher.h"
#include "jobq/worker_output.h"
#include "launcher_thread.h"
#include "mailbox.h"
#include "marked_processes.h"
#include "process_user.h"
#include "worker_environment.h"

namespace {

using namespace jobq;

struct LauncherOptions {
  explicit LauncherOptions(const PluginConfig& config)
      : directory(config.text("directory", "",
                              "the working directory of the workers; relative to the data directory, by default the "
                              "folder from which the server was started")),
        maxLog(config.size("maxLog", 1024 * 1024, 4096, 1024 * 1024 * 1024,
                           "the largest file with the output of a worker; one older file is kept")),
        user(process::userNumbersOf(
            config.text("user", "",
                        "the user of the workers, such as nobody; by default that of the server, who can read "
                        "secret.key and admin.key"))) {}
  std::string directory;
  std::uint64_t maxLog;
  std::string user;  // numbers of the user and the groups
};

std::filesystem::path workingDirectory(const std::filesystem::path& data, const std::string& directory) {
  std::error_code unknown;
  if (directory.empty()) return std::filesystem::current_path();
  const std::filesystem::path path = std::filesystem::absolute(data / directory);
  if (std::filesystem::is_directory(path, unknown)) return path;
  throw ConfigError("launcher.process.directory: " + path.string() +
                    " is no folder: create it, or name an existing folder");
}

process::LauncherPlan planOf(const PluginEnv& env) {
  const LauncherOptions options(env.config);
  const std::string mark = process::markOf(env.dataDir);
  process::killMarked(mark);  // the previous server may have been killed together with guards
  return {.guard = process::guardPath(),
          .directory = workingDirectory(env.dataDir, options.directory),
          .user = options.user,
          .logs = env.dataDir / "workers",
          .maxLog = options.maxLog,
          .variables = process::inheritedVariables(),
          .mark = mark};
}

class ProcessLauncher final : public WorkerLauncher {
 public:
  using Options = LauncherOptions;

  explicit ProcessLauncher(const PluginEnv& env) : thread_(planOf(env), mailbox_, env.log) {}

  std::optional<std::string> fault(const ContainerSpec& container) const override {
    const auto& program = container.entrypoint.empty() ? container.command : container.entrypoint;
    if (program.empty()) {
      return "The template names no program, and a process has no image that would name one: give the template a "
             "dockerStartCmd such as [\"jobq-worker\"].";
    }
    if (program.front().empty()) {
      return "The first text of the template's command is empty: name a program there.";
    }
    return std::nullopt;
  }

  void start(WorkerLaunch launch) override { mailbox_.addStart(std::move(launch)); }

  void stop(const WorkerId& worker, Millis grace) override {
    constexpr Millis kLongest = std::chrono::hours(24 * 365);
    mailbox_.addStop(worker, std::chrono::steady_clock::now() + std::min(grace, kLongest));
  }

  std::vector<WorkerExit> collectExits() override { return mailbox_.drainExits(); }
  std::vector<WorkerOutput> collectOutput() override { return mailbox_.outputs().drain(); }

 private:
  process::Mailbox mailbox_;
  process::LauncherThread thread_;
};

constexpr abi::Entry kEntries[] = {abi::entry<WorkerLauncher, ProcessLauncher>("process", "1.0.0")};

}  // namespace

JOBQ_PLUGIN(kEntries)
