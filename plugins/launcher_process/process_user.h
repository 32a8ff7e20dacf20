// The user of the launched processes.
#pragma once

#include <string>

namespace jobq::process {

/// Returns the numbers of the user and of the user's groups for the guard (guard/protocol.h). An empty name stands for
/// the user of the server; the result is empty then. Throws ConfigError if there is no such user, or if the server may
/// not start processes as a different user.
std::string userNumbersOf(const std::string& name);

}  // namespace jobq::process
