// The name of this node in the storage.
#pragma once

#include <filesystem>
#include <string>

namespace jobq {

/// Returns `configured` if it is not empty. Otherwise returns the name of the host and an id of this data directory,
/// which the file `node-id` keeps, so the name is the same at each start. At most 64 bytes. Throws Error if the file
/// cannot be read or written.
std::string nodeName(const std::string& configured, const std::filesystem::path& dataDir);

}  // namespace jobq
