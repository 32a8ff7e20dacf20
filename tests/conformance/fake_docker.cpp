#include "fake_docker.h"

#include <sys/prctl.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cerrno>
#include <csignal>
#include <map>
#include <stdexcept>
#include <stop_token>
#include <utility>

#include "docker_socket.h"
#include "jobq/plugin.h"
#include "testkit/loaded_plugin.h"
#include "testkit/manual_clock.h"
#include "testkit/wait_for.h"

namespace jobq::test {
namespace {

constexpr const char* kProgram = JOBQ_SOURCE_DIR "/tests/support/fake_docker.py";

pid_t startFake(const std::string& socket, const std::string& settings) {
  const pid_t parent = ::getpid();
  const pid_t child = ::fork();
  if (child != 0) return child;
  ::prctl(PR_SET_PDEATHSIG, SIGKILL);
  if (::getppid() != parent) ::_exit(127);
  ::execlp("python3", "python3", kProgram, socket.c_str(), settings.c_str(), nullptr);
  ::_exit(127);
}

}  // namespace

FakeDocker::FakeDocker(const std::string& settings) : child_(startFake(socket(), settings)) {
  if (child_ < 0) throw std::runtime_error("fork failed");
  testkit::waitFor("the fake of Docker to listen", [this] {
    if (::waitpid(child_, nullptr, WNOHANG) == child_) throw std::runtime_error("the fake of Docker has ended");
    return std::filesystem::exists(socket());
  });
  testkit::waitFor("the fake of Docker to answer", [this] {
    const auto answer = docker::callSocket(socket(), {"GET", "/fake", ""}, std::stop_token());
    return std::holds_alternative<docker::SocketAnswer>(answer);
  });
}

FakeDocker::~FakeDocker() {
  ::kill(child_, SIGTERM);
  const testkit::HangGuard guard("the fake of Docker to end");
  while (::waitpid(child_, nullptr, WNOHANG) == 0) ::usleep(1'000);
}

std::string FakeDocker::call(const std::string& method, const std::string& path, const std::string& body) const {
  auto answer = docker::callSocket(socket(), {method, path, body}, std::stop_token());
  if (const auto* none = std::get_if<docker::NoAnswer>(&answer)) throw std::runtime_error(none->reason);
  return std::get<docker::SocketAnswer>(answer).body;
}

void FakeDocker::set(const std::string& settings) const { (void)call("POST", "/fake", settings); }

std::string FakeDocker::report() const { return call("GET", "/fake"); }

std::string FakeDocker::reportWith(std::string_view text) const {
  std::string seen;
  testkit::waitFor("the fake of Docker to report " + std::string(text), [&] {
    seen = report();
    return seen.find(text) != seen.npos;
  });
  return seen;
}

std::unique_ptr<WorkerLauncher> loadDockerLauncher(Log& log, const std::filesystem::path& data,
                                                   const std::string& socket, const std::string& auths) {
  static testkit::ManualClock clock;
  const testkit::MapConfig config(
      std::map<std::string, std::string, std::less<>>{{"socket", socket}, {"auths", auths}});
  return testkit::loadPlugin<WorkerLauncher>(JOBQ_PLUGIN_DIR "/libjobq_launcher_docker.so", "docker",
                                             PluginEnv{config, clock, log, data, false});
}

ContainerSpec dockerShell(const std::string& script) {
  ContainerSpec container;
  container.image = "shell:1";
  container.entrypoint = {"sh", "-c", script, "sh"};
  return container;
}

}  // namespace jobq::test
