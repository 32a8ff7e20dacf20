// The removal of all containers of a server when its launcher ends.
#pragma once

#include <chrono>
#include <cstddef>
#include <optional>
#include <string>

#include "engine.h"

namespace jobq::docker {

/// Kills and removes the containers with this label, several at a time, and returns when none is left, or at `end`.
/// Returns a clause about what is left, or no value. Throws only std::bad_alloc and std::system_error.
std::optional<std::string> removeAllContainers(const std::string& socket, const std::string& server,
                                               Engine::Clock::time_point end);

}  // namespace jobq::docker
