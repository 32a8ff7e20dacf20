#include "probe.h"

#include <stop_token>
#include <variant>

#include "engine.h"

namespace jobq::docker {

std::vector<CheckResult> probeDocker(const std::string& socket) {
  const auto version = Engine(socket, std::stop_token()).connect();
  if (const auto* fault = std::get_if<EngineFault>(&version)) {
    return {{"docker", CheckVerdict::failed,
             fault->reason + "; start Docker, and let this user open the socket that launcher.docker.socket names"}};
  }
  const auto& found = std::get<EngineVersion>(version);
  return {{"docker", CheckVerdict::passed, "Docker " + found.product + " with version " + found.api + " of its API"}};
}

}  // namespace jobq::docker
