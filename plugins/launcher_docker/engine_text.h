// Reading of the answers of Docker's Engine API. All functions are pure and throw std::bad_alloc, and jobq::Error for
// an answer in a form unknown to the API.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

namespace jobq::docker {

/// The ways in which a daemon gives GPUs to containers.
enum class GpuRequest {
  byId,      ///< by the id of a GPU
  byCount,   ///< also by a number of GPUs, which the daemon chooses: Docker has the runtime `nvidia`
  byCdiName  ///< by a name of the Container Device Interface: Podman
};

/// The versions of a daemon.
struct EngineVersion {
  std::string product;   ///< version of Docker, such as 24.0.5
  std::string api;       ///< newest version of the API, such as 1.43
  std::string leastApi;  ///< oldest version of the API spoken by the daemon
  bool isPodman = false;
};

/// A container of a list.
struct ListedContainer {
  std::string id;
  std::string worker;  ///< the label `jobq.worker`
  std::string state;   ///< created, running, paused, restarting, removing, exited or dead
};

/// The end of a container.
struct EndedState {
  std::int64_t exitCode = 0;
  bool isOutOfMemory = false;  ///< a process of the container was killed for want of memory
  std::string error;           ///< the daemon's text, often empty
};

EngineVersion readVersion(std::string_view body);
/// Returns true if the answer of /info names the runtime `nvidia`.
bool readHasGpuRuntime(std::string_view body);
std::string readCreatedId(std::string_view body);
std::vector<ListedContainer> readContainers(std::string_view body);
EndedState readEndedState(std::string_view body);

/// Returns the text of a failure as a clause: the member `message`, otherwise the body itself.
std::string readMessage(std::string_view body);

/// Returns whether the version `left` of the API, such as 1.41, is older than `right`.
bool isOlderApi(std::string_view left, std::string_view right);

}  // namespace jobq::docker
