// The process's limit of open files and connections.
#pragma once

#include <cstdint>

namespace jobq {

/// Raises the soft limit to the hard limit: each connection is a descriptor, and the usual soft limit is 1,024
/// descriptors. Returns the limit now in force.
std::uint64_t raiseDescriptorLimit() noexcept;

}  // namespace jobq
