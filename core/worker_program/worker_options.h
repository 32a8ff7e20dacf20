// The command line of jobq-worker.
#pragma once

#include <cstddef>
#include <filesystem>
#include <map>
#include <string>
#include <vector>

#include "core/client/arguments.h"
#include "core/worker_program/call_addresses.h"
#include "jobq/time.h"

namespace jobq::worker {

/// The handler that a worker runs.
struct HandlerChoice {
  std::string plugin;  ///< name of the handler plugin
  std::string script;  ///< name of the script of `lua/<script>`; empty for `plugin/<handler>`
};

/// Where the handlers run.
enum class Isolation {
  thread,  ///< on threads of the worker
  process  ///< in a process for each handler
};

struct WorkerOptions {
  CallAddresses addresses;
  std::string key;  ///< empty for none
  HandlerChoice handler;
  Isolation isolation = Isolation::thread;
  std::map<std::string, std::string> variables;  ///< of the handler
  std::size_t concurrency = 1;                   ///< jobs that run at once
  std::size_t batch = 1;                         ///< most jobs of one call
  Millis drain{};                                ///< time for running jobs at the end
  Millis pingInterval{};
  std::filesystem::path scripts;  ///< folder with `handlers/<name>.lua`
};

/// Returns the options, for the help and for parseArguments().
const std::vector<cli::OptionRow>& workerOptionRows();

/// Returns the names of the variables that readOptions() knows.
const std::vector<std::string>& workerVariables();

/// Checks the parsed command line. `environment` has the variables of workerVariables() that are set. Reads the file of
/// the key. Throws CommandError(usage) with the option and the remedy.
WorkerOptions readOptions(const cli::Arguments& arguments, const std::map<std::string, std::string>& environment);

}  // namespace jobq::worker
