// The launcher's calls of Docker's Engine API.
#pragma once

#include <chrono>
#include <cstdint>
#include <optional>
#include <stop_token>
#include <string>
#include <string_view>
#include <variant>
#include <vector>

#include "docker_socket.h"
#include "engine_text.h"
#include "image_reference.h"
#include "jobq/mutex.h"

namespace jobq::docker {

inline constexpr int kNotModified = 304;  ///< the container runs already
inline constexpr int kNotFound = 404;     ///< no such container, or no such image
inline constexpr int kConflict = 409;     ///< the container does not run, or the name is taken

/// A failed call.
struct EngineFault {
  int status = 0;      ///< 0: no complete answer came
  std::string reason;  ///< a clause, such as "Docker answered 404: no such image"
  /// Docker did not carry out the call and never will.
  bool isWithoutEffect = false;
};

/// A daemon. Each function blocks for its call, at most 10 s if nothing else is said, and throws only std::bad_alloc.
/// Any thread, many calls at once.
class Engine {
 public:
  using Clock = std::chrono::steady_clock;

  /// `stop` ends all calls. Each call ends at `end`.
  Engine(std::string socket, std::stop_token stop, Clock::time_point end = Clock::time_point::max());

  /// Asks for the daemon's versions, and takes the version 1.41 of the API for later calls, or the oldest version of a
  /// newer daemon. Called before all other functions, and again after a failure.
  std::variant<EngineVersion, EngineFault> connect();

  /// Asks how the daemon gives GPUs to containers. Called after connect(), before the first start. A daemon that gives
  /// no answer counts as a Docker without the runtime `nvidia`.
  void readGpuRequest();
  /// Returns the result of the last readGpuRequest().
  GpuRequest gpuRequest() const;

  /// Creates a container with the JSON text of containerBody(), and returns its id. Blocks for at most 60 s.
  std::variant<std::string, EngineFault> createContainer(std::string_view name, std::string body);

  /// Pulls an image with the value of the header X-Registry-Auth, which may be empty. Blocks for hours at most, and for
  /// 10 minutes at most without news from the daemon. Ends with `stop`, too.
  std::optional<EngineFault> pullImage(const ImageReference& image, const std::string& registryAuth,
                                       const std::stop_token& stop);

  /// Starts a container. A running container is not a failure. Blocks for at most 60 s.
  std::optional<EngineFault> startContainer(std::string_view id);

  /// Sends a signal such as SIGTERM. A stopped container is not a failure.
  std::optional<EngineFault> signalContainer(std::string_view id, std::string_view signal);

  /// Kills and removes a container; named volumes stay. A missing container is not a failure.
  std::optional<EngineFault> removeContainer(std::string_view id);

  /// Returns the containers whose label kServerLabel has the value, in any state.
  std::variant<std::vector<ListedContainer>, EngineFault> listContainers(std::string_view server);

  /// Returns how a container has ended.
  std::variant<EndedState, EngineFault> readEnd(std::string_view id);

  /// Gives `sink` the frames of a container's output (log_frames.h) from the second `since` on, or from the begin on,
  /// and blocks until the container has ended. Ends with `stop`, too.
  std::optional<EngineFault> followLog(std::string_view id, std::optional<std::int64_t> since, BodySink& sink,
                                       const std::stop_token& stop);

  /// Returns the last line of the container's output that is not blank. The result is empty if the last five lines are
  /// blank or the output cannot be read.
  std::string readLastLine(std::string_view id);

 private:
  std::variant<std::string, EngineFault> answerTo(SocketCall call);
  std::variant<std::string, EngineFault> answerTo(SocketCall call, const std::stop_token& stop);
  std::string prefix() const;

  const std::string socket_;
  const std::stop_token stop_;
  const Clock::time_point end_;
  mutable Mutex mutex_;
  std::string api_ JOBQ_GUARDED_BY(mutex_);
  bool isPodman_ JOBQ_GUARDED_BY(mutex_) = false;
  GpuRequest gpuRequest_ JOBQ_GUARDED_BY(mutex_) = GpuRequest::byId;
};

}  // namespace jobq::docker
