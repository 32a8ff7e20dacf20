// The removal of all containers of a server at the end of the launcher.
#pragma once

#include <chrono>
#include <cstddef>
#include <optional>
#include <string>

#include "engine.h"

namespace jobq::docker {

/// Kills and removes the containers with the label, several at a time, and returns when no container is left, or at
/// `end`. Returns a clause about the containers left, or no value. Throws only std::bad_alloc and std::system_error.
std::optional<std::string> removeAllContainers(const std::string& socket, const std::string& server,
                                               Engine::Clock::time_point end);

}  // namespace jobq::docker
