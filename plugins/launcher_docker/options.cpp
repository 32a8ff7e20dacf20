#include "options.h"

#include <sys/un.h>

#include <cstddef>
#include <cstdint>

#include "jobq/error.h"

namespace jobq::docker {
namespace {

constexpr std::uint64_t kLargest = std::uint64_t{1} << 44;  // 16 TB
constexpr std::int64_t kMostPids = 4'194'304;               // the most of Linux

}  // namespace

Options::Options(const PluginConfig& config)
    : socket(config.text("socket", "/var/run/docker.sock", "path of the Unix socket of Docker")),
      network(config.text("network", "",
                          "network of the containers, such as host or the name of a network; empty for Docker's "
                          "default network")),
      auths(config.text("auths", "",
                        "a JSON file with the credentials that containerRegistryAuthId of a template names; relative "
                        "to the data directory, mode 0600")),
      shm(config.size("shm", 0, 0, kLargest, "size of /dev/shm of a container; 0B for Docker's default, 64MB")),
      memory(config.size("memory", 0, 0, kLargest, "most memory of a container, at least 6MB; 0B for no bound")),
      pids(config.integer("pids", 0, 0, kMostPids, "most processes and threads of a container; 0 for no bound")) {
  constexpr std::size_t kLongestPath = sizeof(sockaddr_un::sun_path) - 1;
  if (socket.empty() || socket.front() != '/' || socket.size() > kLongestPath) {
    throw ConfigError("launcher.docker.socket is \"" + socket +
                      "\"; write the absolute path of the socket, of at most " + std::to_string(kLongestPath) +
                      " bytes");
  }
  // `jobqd --check` runs only this constructor. The base of a relative path is known only when the launcher is created.
  if (std::filesystem::path(auths).is_absolute()) (void)readRegistryAuths(auths);
}

RegistryAuths Options::readAuths(const std::filesystem::path& dataDir) const {
  return auths.empty() ? RegistryAuths() : readRegistryAuths(dataDir / auths);
}

}  // namespace jobq::docker
