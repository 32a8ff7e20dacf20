// One jobqd after the other over the same data directory, started and killed.
#pragma once

#include <sys/types.h>

#include <chrono>
#include <filesystem>
#include <optional>
#include <string>

#include "http_client.h"

namespace jobq::fault {

/// Used by one thread, the one that made it: the server is tied to that thread's life. Throws std::runtime_error when
/// the server cannot be started, ends by itself or hangs; the message has the end of its log.
class ServerProcess {
 public:
  /// `settings` are lines of jobq.properties. `folder` exists; the server's data, log and settings go there.
  ServerProcess(std::filesystem::path program, std::filesystem::path folder, const std::string& settings);
  ~ServerProcess();
  ServerProcess(const ServerProcess&) = delete;
  ServerProcess& operator=(const ServerProcess&) = delete;

  /// Returns at once; the process id.
  pid_t start();

  /// True once the server is ready, false at `deadline`.
  bool awaitReady(std::chrono::steady_clock::time_point deadline);

  /// Where it listens and the admin's key. Call them when it is ready.
  Address address() const;
  std::string key() const;

  /// SIGKILL. Nothing of the process is left when it returns.
  void kill();

  /// SIGTERM, and an exit with 0.
  void stop();

 private:
  std::string logTail() const;

  const std::filesystem::path program_;
  const std::filesystem::path folder_;
  pid_t process_ = 0;
};

}  // namespace jobq::fault
