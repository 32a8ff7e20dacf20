// jobq-worker, a remote worker: runs the jobs of an endpoint with a handler plugin or a Lua script, on any machine,
// over HTTP. core/worker_program/worker_threads.cpp has the threads.
#include <unistd.h>

#include <cstdlib>
#include <exception>
#include <iostream>
#include <map>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "core/base/clock.h"
#include "core/base/logger.h"
#include "core/client/exit_code.h"
#include "core/client/table_print.h"
#include "core/handler_process/child_process.h"
#include "core/handler_process/handler_child.h"
#include "core/handler_process/handler_process.h"
#include "core/handler_process/handler_thread.h"
#include "core/handler_process/local_handler.h"
#include "core/process/process_signals.h"
#include "core/worker_program/worker_options.h"
#include "core/worker_program/worker_threads.h"

namespace jobq::worker {
namespace {

using cli::CommandError;
using cli::ExitCode;

constexpr const char* kUsage =
    "Usage: jobq-worker --url URL --endpoint ENDPOINT --image plugin/NAME|lua/NAME [OPTION]...\n"
    "Runs the jobs of an endpoint with remote workers, until SIGTERM. The server needs no plugin for them.\n\n"
    "Without --endpoint the addresses, the name and the key come from the variables that\n"
    "`jobqctl worker env ENDPOINT` prints.\n\n";
constexpr const char* kCodes =
    "\nEnds with 0 after SIGTERM or SIGINT, with 1 after a fault such as a refused key, with 2 after wrong usage.\n";

std::map<std::string, std::string> readEnvironment() {
  std::map<std::string, std::string> known;
  for (const std::string& name : workerVariables()) {
    const char* value = std::getenv(name.c_str());
    if (value != nullptr && *value != '\0') known[name] = value;
  }
  return known;
}

ExitCode printText(const std::string& text) {
  std::cout << text << std::flush;
  return ExitCode::ok;
}

HandlerSetup setupOf(const WorkerOptions& options, const cli::Arguments& arguments) {
  const CallAddresses& addresses = options.addresses;
  return {options.handler.plugin,
          {addresses.endpoint(), addresses.worker(), options.variables, options.handler.script},
          options.scripts.string(),
          arguments.value("plugins"),
          arguments.values("set")};
}

/// The handlers of the option --isolation.
struct Handlers {
  std::optional<LocalHandler> local;  // empty for processes: no code of a plugin is loaded then
  std::unique_ptr<JobRunners> runners;
};

void makeHandlers(Isolation isolation, const HandlerSetup& setup, Clock& clock, Log& log, Handlers& handlers) {
  if (isolation == Isolation::process) {
    handlers.runners = std::make_unique<HandlerProcesses>(setup, clock, log);
    return;
  }
  handlers.runners = std::make_unique<HandlerThreads>(handlers.local.emplace(setup, clock, log));
}

ExitCode serve(const cli::Arguments& arguments) {
  const WorkerOptions options = readOptions(arguments, readEnvironment());
  EndRequest end;
  Logger log(LogLevel::debug, LogFormat::text);
  SystemClock clock;
  Handlers handlers;
  makeHandlers(options.isolation, setupOf(options, arguments), clock, log, handlers);
  const CallAddresses& addresses = options.addresses;
  WorkerThreads threads({addresses, options.key, clock, log, end}, *handlers.runners,
                        {options.concurrency, options.batch, options.pingInterval});
  log.write(LogLevel::information, "worker.started",
            addresses.worker() + " takes the jobs of " + addresses.endpoint() + " at " + addresses.server().url);
  threads.start();
  end.await();
  if (!end.failure()) log.write(LogLevel::information, "worker.stopping", "running jobs get the time of --drain");
  const bool isClean = threads.stop(end.failure() ? Millis(0) : options.drain);
  const auto failure = end.failure();
  if (failure) std::cerr << "jobq-worker: " << cli::harmless(*failure) << std::endl;
  const ExitCode code = failure ? ExitCode::refused : ExitCode::ok;
  if (!isClean) ::_exit(static_cast<int>(code));  // a thread still runs in code about to be torn down
  return code;
}

ExitCode perform(const std::vector<std::string>& given) {
  const cli::Arguments arguments = cli::parseArguments(given, workerOptionRows());
  if (arguments.has("help")) return printText(kUsage + cli::describeOptions(workerOptionRows()) + kCodes);
  if (arguments.has("version")) return printText("jobq-worker " JOBQ_VERSION "\n");
  return serve(arguments);
}

int run(const std::vector<std::string>& given) {
  try {
    return static_cast<int>(perform(given));
  } catch (const CommandError& failure) {
    std::cerr << cli::faultMessage("jobq-worker", failure.what());
    return static_cast<int>(failure.code());
  } catch (const std::exception& error) {
    std::cerr << cli::faultMessage("jobq-worker", error.what());
    return static_cast<int>(ExitCode::refused);
  }
}

}  // namespace
}  // namespace jobq::worker

int main(int argc, char** argv) {
  const std::vector<std::string> given(argv + 1, argv + argc);
  const bool isChild = given == std::vector<std::string>{jobq::worker::kHandlerArgument};
  jobq::leaveProcess(isChild ? jobq::worker::runHandlerChild() : jobq::worker::run(given));
}
