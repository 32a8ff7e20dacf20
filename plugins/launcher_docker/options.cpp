#include "options.h"

#include <sys/un.h>

#include <cstddef>

#include "jobq/error.h"

namespace jobq::docker {

Options::Options(const PluginConfig& config)
    : socket(config.text("socket", "/var/run/docker.sock", "path of the Unix socket of Docker")),
      network(config.text("network", "",
                          "network of the containers, such as host or the name of a network; empty for Docker's "
                          "default network")),
      auths(config.text("auths", "",
                        "a JSON file with the credentials that containerRegistryAuthId of a template names; relative "
                        "to the data directory, mode 0600")) {
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
