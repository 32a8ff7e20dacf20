// The process's limit of open files and connections.
#pragma once

#include <cstdint>

namespace jobq {

/// Raises the soft limit to the hard limit: each connection is a descriptor, and the usual soft limit is 1,024
/// descriptors. Returns the limit now in force.
std::uint64_t raiseDescriptorLimit() noexcept;

/// Returns the lowest number of a descriptor that connections of callers must not have. The server keeps 256
/// descriptors, or an eighth of the limit of the process if less, for files and calls of the server.
std::uint64_t descriptorsForConnections() noexcept;

/// Returns the greatest number of connections for calls to receivers (jobq/call_descriptors.h).
std::uint64_t descriptorsForCalls() noexcept;

}  // namespace jobq
