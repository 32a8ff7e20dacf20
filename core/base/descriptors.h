// The process's limit of open files and connections.
#pragma once

#include <cstdint>

namespace jobq {

/// Raises the soft limit to the hard one: each connection is a descriptor, and the usual soft limit is 1,024 of them.
/// Returns the limit that is in force now.
std::uint64_t raiseDescriptorLimit() noexcept;

}  // namespace jobq
