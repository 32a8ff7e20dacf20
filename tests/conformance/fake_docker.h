// A fake of Docker (tests/support/fake_docker.py) as a child of the test, with a socket of its own.
#pragma once

#include <sys/types.h>

#include <filesystem>
#include <memory>
#include <string>
#include <string_view>
#include <variant>

#include "jobq/log.h"
#include "jobq/worker_launcher.h"
#include "testkit/temporary_folder.h"

namespace jobq::test {

/// Used by one thread. The child and the containers end with the object.
class FakeDocker {
 public:
  /// `settings` is the JSON of tests/support/fake_docker.py. Returns when the fake answers.
  explicit FakeDocker(const std::string& settings);
  ~FakeDocker();
  FakeDocker(const FakeDocker&) = delete;
  FakeDocker& operator=(const FakeDocker&) = delete;

  std::string socket() const { return (folder_ / "docker.sock").string(); }

  /// Changes settings.
  void set(const std::string& settings) const;

  /// Returns what the fake has seen, as JSON.
  std::string report() const;

  /// Returns the report when it contains `text`. Throws testkit::WaitExpired.
  std::string reportWith(std::string_view text) const;

  /// Makes a call of the API and returns the body of the answer. Throws std::runtime_error without an answer.
  std::string call(const std::string& method, const std::string& path, const std::string& body = {}) const;

 private:
  const testkit::TemporaryFolder folder_;
  pid_t child_ = -1;
};

/// Loads the launcher from the plugin of the server, with the settings `socket` and `auths`, which may be empty.
std::unique_ptr<WorkerLauncher> loadDockerLauncher(Log& log, const std::filesystem::path& data,
                                                   const std::string& socket, const std::string& auths = {});

/// Returns a container whose main process is a shell with `script`, of an image present in the fake.
ContainerSpec dockerShell(const std::string& script);

/// Settings of a fake with the image of dockerShell().
inline constexpr const char* kShellImage = R"({"images":{"shell:1":{"state":"present"}}})";

}  // namespace jobq::test
