// Checks of Docker before a server relies on Docker.
#pragma once

#include <string>
#include <vector>

#include "jobq/plugin.h"

namespace jobq::docker {

/// Asks the daemon at the socket for its version. Throws only std::bad_alloc.
std::vector<CheckResult> probeDocker(const std::string& socket);

}  // namespace jobq::docker
