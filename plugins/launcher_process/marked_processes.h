// The processes of workers whose guard was killed.
#pragma once

#include <filesystem>
#include <string>

namespace jobq::process {

/// Returns a text for the data directory, unique on the machine and the same after a restart of the server. The text
/// ends with '/'. The directory exists.
std::string markOf(const std::filesystem::path& dataDir);

/// Kills the processes whose mark (worker_environment.h) begins with `mark`, until no process is found or half a second
/// has passed. The kernel kills the main process of a worker when the guard dies. The function finds the worker's
/// further processes, unless a process was started with a different environment.
void killMarked(const std::string& mark);

}  // namespace jobq::process
