// The launcher `docker` under the conformance suite of launchers, with a fake of Docker.
#include <filesystem>
#include <memory>
#include <string>
#include <vector>

#include "fake_docker.h"
#include "testkit/launcher_suite.h"
#include "testkit/recording_log.h"
#include "testkit/temporary_folder.h"

namespace jobq::test {
namespace {

class DockerRig final : public testkit::LauncherRig {
 public:
  WorkerLauncher& launcher() override { return *launcher_; }
  void destroyLauncher() override { launcher_.reset(); }
  ContainerSpec containerOf(const std::string& script, const std::vector<std::string>& arguments) override {
    ContainerSpec container = dockerShell(script);
    container.command = arguments;
    return container;
  }
  ContainerSpec unstartable() override {
    ContainerSpec container;
    container.image = "registry.example/absent:1";
    return container;
  }
  ContainerSpec refused() override { return {}; }
  std::filesystem::path folder() override { return shared_; }
  std::string logText() override { return log_.text(); }

 private:
  testkit::RecordingLog log_;
  const testkit::TemporaryFolder data_;
  const testkit::TemporaryFolder shared_;
  const FakeDocker docker_{kShellImage};
  std::unique_ptr<WorkerLauncher> launcher_ = loadDockerLauncher(log_, data_, docker_.socket());
};

}  // namespace
}  // namespace jobq::test

JOBQ_LAUNCHER_CONFORMANCE(Docker, testing::Values(jobq::testkit::LauncherUnderTest{
                                      "docker", [] { return std::make_unique<jobq::test::DockerRig>(); }}));
