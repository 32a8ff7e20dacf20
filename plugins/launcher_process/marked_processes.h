// The processes of a worker whose guard was killed.
#pragma once

#include <string>

namespace jobq::process {

/// Kills the processes whose environment has the mark (worker_environment.h), until none is found or half a second has
/// passed. The kernel kills the main process of a worker with its guard; the other processes, which the guard would
/// have killed, are found here unless they were started with another environment.
void killMarked(const std::string& mark);

}  // namespace jobq::process
