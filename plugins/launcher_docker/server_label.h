// The name of a data directory. By the name a server finds its containers again after a crash.
#pragma once

#include <filesystem>
#include <string>

namespace jobq::docker {

/// Returns the name of the directory: 32 hexadecimal digits, drawn at the first call and kept in the file
/// `launcher.docker.id`. Throws Error if the file can neither be read nor written. One process at a time.
std::string serverLabelOf(const std::filesystem::path& dataDir);

}  // namespace jobq::docker
