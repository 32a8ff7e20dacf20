// The processes of workers whose guard was killed.
#pragma once

#include <filesystem>
#include <string>

namespace jobq::process {

/// Returns a text that this data directory has alone on the machine, also after a restart of the server. It ends with
/// '/'. The directory exists.
std::string markOf(const std::filesystem::path& dataDir);

/// Kills the processes whose mark (worker_environment.h) begins with `mark`, until none is found or half a second has
/// passed. The kernel kills the main process of a worker with its guard; the other processes, which the guard would
/// have killed, are found here unless they were started with another environment.
void killMarked(const std::string& mark);

}  // namespace jobq::process
