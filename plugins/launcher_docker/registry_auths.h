// Credentials for registries of images, by name. Templates refer to the names.
#pragma once

#include <filesystem>
#include <map>
#include <optional>
#include <string>
#include <string_view>

#include "jobq/worker_launcher.h"

namespace jobq::docker {

/// Credentials for a single registry.
struct RegistryAuth {
  std::string header;    ///< the value of X-Registry-Auth
  std::string registry;  ///< name in the form of registryOfServer()
};

/// The credentials of each name.
using RegistryAuths = std::map<std::string, RegistryAuth>;

/// Return the registry of an image and of the `server` of credentials: the host in small letters, with the port if one
/// is given, and `docker.io` for each name of Docker's own registry. Pure.
std::string registryOfImage(std::string_view image);
std::string registryOfServer(std::string_view server);

/// Returns a sentence if the container names unknown credentials, or credentials of a registry other than the image's:
/// the image's registry would get the credentials.
std::optional<std::string> authFault(const RegistryAuths& auths, const ContainerSpec& container);

/// Reads the file: a JSON object whose members are {"server": ..., "user": ..., "password": ...}. Throws ConfigError
/// with the remedy if the file cannot be read, if other users may read it, or if the text has another form. No message
/// repeats a value.
RegistryAuths readRegistryAuths(const std::filesystem::path& file);

}  // namespace jobq::docker
