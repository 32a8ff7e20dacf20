// The settings of the launcher.
#pragma once

#include <cstdint>
#include <filesystem>
#include <string>

#include "jobq/config.h"
#include "registry_auths.h"

namespace jobq::docker {

/// Settings `launcher.docker.*`.
struct Options {
  /// Throws ConfigError for an invalid value.
  explicit Options(const PluginConfig& config);

  /// Returns the credentials of the file `auths`, which may be relative to `dataDir`; an empty map without the setting.
  /// Throws ConfigError.
  RegistryAuths readAuths(const std::filesystem::path& dataDir) const;

  std::string socket;
  std::string network;   ///< empty: the default network of Docker
  std::string auths;     ///< may be empty
  std::uint64_t shm;     ///< bytes of /dev/shm; 0: the default of Docker
  std::uint64_t memory;  ///< bytes of memory; 0: no bound
  std::int64_t pids;     ///< processes and threads; 0: no bound
};

}  // namespace jobq::docker
