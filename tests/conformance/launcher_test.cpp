// The launcher `process` under the conformance suite of launchers.
#include "testkit/launcher_suite.h"

#include <filesystem>
#include <memory>
#include <string>
#include <vector>

#include "launcher_fixture.h"
#include "testkit/recording_log.h"
#include "testkit/temporary_folder.h"

namespace jobq::test {
namespace {

class ProcessRig final : public testkit::LauncherRig {
 public:
  WorkerLauncher& launcher() override { return *launcher_; }
  void destroyLauncher() override { launcher_.reset(); }
  ContainerSpec containerOf(const std::string& script, const std::vector<std::string>& arguments) override {
    return shellContainer(script, arguments);
  }
  ContainerSpec unstartable() override {
    ContainerSpec container;
    container.command = {"no-such-program-of-jobq"};
    return container;
  }
  ContainerSpec refused() override { return {}; }
  std::filesystem::path folder() override { return shared_; }
  std::string logText() override { return log_.text(); }

 private:
  testkit::RecordingLog log_;
  const testkit::TemporaryFolder data_;
  const testkit::TemporaryFolder shared_;
  std::unique_ptr<WorkerLauncher> launcher_ = loadProcessLauncher(log_, data_);
};

}  // namespace
}  // namespace jobq::test

JOBQ_LAUNCHER_CONFORMANCE(Process, testing::Values(jobq::testkit::LauncherUnderTest{
                                       "process", [] { return std::make_unique<jobq::test::ProcessRig>(); }}));
