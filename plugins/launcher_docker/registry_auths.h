// Credentials for registries of images, by the names that templates refer to.
#pragma once

#include <filesystem>
#include <map>
#include <string>

namespace jobq::docker {

/// The value of the header X-Registry-Auth of each name.
using RegistryAuths = std::map<std::string, std::string>;

/// Reads the file: a JSON object whose members are {"server": ..., "user": ..., "password": ...}. Throws ConfigError
/// with the remedy if the file cannot be read, if other users may read it, or if its text is something else. No message
/// repeats a value.
RegistryAuths readRegistryAuths(const std::filesystem::path& file);

}  // namespace jobq::docker
