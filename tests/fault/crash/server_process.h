// Processes of jobqd over the same data directory, one after the other, started and killed.
#pragma once

#include <sys/types.h>

#include <chrono>
#include <filesystem>
#include <optional>
#include <string>

#include "http_client.h"

namespace jobq::fault {

/// Used only by the thread of its creation, because the server is tied to the life of this thread. Throws
/// std::runtime_error if the server cannot be started, ends by itself or hangs; the message has the end of its log.
class ServerProcess {
 public:
  /// `settings` are lines of jobq.properties. `folder` exists and receives the server's data, log and settings.
  ServerProcess(std::filesystem::path program, std::filesystem::path folder, const std::string& settings);
  ~ServerProcess();
  ServerProcess(const ServerProcess&) = delete;
  ServerProcess& operator=(const ServerProcess&) = delete;

  /// Starts the server without waiting for readiness; returns the process id.
  pid_t start();

  /// Returns true once the server is ready, false at `deadline`.
  bool awaitReady(std::chrono::steady_clock::time_point deadline);

  /// Return the address of the server and the key of the admin. Require a ready server.
  Address address() const;
  std::string key() const;

  /// Sends SIGKILL and returns after the end of the process.
  void kill();

  /// Sends SIGTERM and expects an exit with 0.
  void stop();

 private:
  std::string logTail() const;

  const std::filesystem::path program_;
  const std::filesystem::path folder_;
  pid_t process_ = 0;
};

}  // namespace jobq::fault
