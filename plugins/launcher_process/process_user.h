// The user of the launched processes.
#pragma once

#include <string>

namespace jobq::process {

/// Returns the numbers of the user and of its groups for the guard (guard/protocol.h), and an empty text for an empty
/// name, which stands for the user of the server. Throws ConfigError if there is no such user, or if this process may
/// not start processes as another one.
std::string userNumbersOf(const std::string& name);

}  // namespace jobq::process
