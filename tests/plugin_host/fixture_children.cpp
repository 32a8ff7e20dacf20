// A handler that starts programs and processes, in a library with a thread in a static object.
#include <spawn.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

#include <chrono>
#include <csignal>
#include <memory>
#include <string>
#include <string_view>
#include <thread>

#include "jobq/abi.h"
#include "jobq/job_handler.h"

namespace {

using namespace jobq;

// A foreign library may look like the fixture. The destructor of an unjoined thread ends the process.
const std::thread background([] { std::this_thread::sleep_for(std::chrono::hours(24)); });

std::string endOf(pid_t child) {
  int status = 0;
  if (child <= 0 || ::waitpid(child, &status, 0) != child) return "\"lost\"";
  return "\"" +
         (WIFSIGNALED(status) ? std::string(::sigabbrev_np(WTERMSIG(status)))
                              : "exit " + std::to_string(WEXITSTATUS(status))) +
         "\"";
}

/// Starts a shell that sends the signal to itself. A shell cannot undo a signal ignored at the start.
std::string endOfProgram(const char* signal) {
  std::string script = std::string("kill -") + signal + " $$; exit 7";
  char shell[] = "sh";
  char option[] = "-c";
  char* arguments[] = {shell, option, script.data(), nullptr};
  pid_t child = 0;
  if (::posix_spawnp(&child, shell, nullptr, nullptr, arguments, environ) != 0) return "\"not started\"";
  return endOf(child);
}

std::string endOfFork() {
  const pid_t child = ::fork();
  if (child == 0) {
    for (const int signal : {SIGTERM, SIGINT}) ::raise(signal);
    ::_exit(7);
  }
  return endOf(child);
}

class Children final : public JobHandler {
 public:
  std::string run(std::string_view, JobContext&) override {
    std::string ends = "[" + endOfFork();
    for (const char* signal : {"TERM", "INT", "HUP", "PIPE", "XFSZ"}) ends += "," + endOfProgram(signal);
    return ends + "]";
  }
};

class Factory final : public HandlerFactory {
 public:
  explicit Factory(const PluginEnv&) {}
  std::unique_ptr<JobHandler> make(const HandlerEnv&) override { return std::make_unique<Children>(); }
};

constexpr abi::Entry kEntries[] = {abi::entry<HandlerFactory, Factory>("children", "1.0.0")};

}  // namespace

JOBQ_PLUGIN(kEntries)
