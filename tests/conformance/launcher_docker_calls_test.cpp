// The launcher `docker` with a fake of Docker that pulls, refuses, fails, and has containers of an earlier life.
#include <gtest/gtest.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <chrono>
#include <filesystem>
#include <fstream>
#include <memory>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "fake_docker.h"
#include "jobq/error.h"
#include "jobq/time.h"
#include "jobq/worker_launcher.h"
#include "jobq/worker_output.h"
#include "testkit/pace.h"
#include "testkit/recording_log.h"
#include "testkit/temporary_folder.h"
#include "testkit/thrown_text.h"
#include "testkit/wait_for.h"

namespace jobq::test {
namespace {

constexpr const char* kForever = "trap 'exit 0' TERM; while :; do sleep 0.1; done";
constexpr Millis kNever{3'600'000};

bool contains(const std::string& text, const std::string& part) { return text.find(part) != text.npos; }

class LauncherDocker : public testing::Test {
 protected:
  void open(const std::string& settings) {
    docker_ = std::make_unique<FakeDocker>(settings);
    load();
  }
  void load(const std::string& auths = {}) { launcher_ = loadDockerLauncher(log_, data_, docker_->socket(), auths); }

  void start(const WorkerId& worker, ContainerSpec container) {
    launcher_->start(WorkerLaunch{worker, "ep", std::move(container), {}});
  }
  void start(const WorkerId& worker, const std::string& image) {
    ContainerSpec container = dockerShell("exit 0");
    container.image = image;
    start(worker, container);
  }
  WorkerExit exitOf(const WorkerId& worker) {
    std::optional<WorkerExit> found;
    testkit::waitFor("the exit of " + worker, [&] {
      for (WorkerExit& exit : launcher_->collectExits()) exits_.push_back(std::move(exit));
      const auto at = std::find_if(exits_.begin(), exits_.end(),
                                   [&worker](const WorkerExit& exit) { return exit.worker == worker; });
      if (at != exits_.end()) found = *at;
      return found.has_value();
    });
    return *found;
  }
  void awaitLog(const std::string& text) {
    testkit::waitFor("a line of the log: " + text, [&] { return contains(log_.text(), text); });
  }
  std::size_t linesOf(const std::string& event) {
    const auto lines = log_.lines();
    return static_cast<std::size_t>(std::count_if(
        lines.begin(), lines.end(), [&event](const std::string& line) { return line.starts_with(event + ":"); }));
  }
  std::string writeAuths(const std::string& text, mode_t mode = 0600) {
    const std::filesystem::path file = data_ / "auths.json";
    std::ofstream(file) << text;
    ::chmod(file.c_str(), mode);
    return file.string();
  }

  testkit::RecordingLog log_;
  const testkit::TemporaryFolder data_;
  std::unique_ptr<FakeDocker> docker_;
  std::unique_ptr<WorkerLauncher> launcher_;
  std::vector<WorkerExit> exits_;
};

// All four threads find the image missing before the pull begins. Without the hold, a later thread finds the pull under
// way and makes no attempt.
TEST_F(LauncherDocker, OneThreadPullsAMissingImageForAll) {
  open(
      R"({"holdsCreates":true,"holdsPulls":true,"images":{"registry.example:5000/team/worker:2":{"state":"remote"}}})");
  for (const char* const worker : {"w1", "w2", "w3", "w4"}) start(worker, "registry.example:5000/team/worker:2");
  testkit::waitFor("four attempts to create a container", [&] {
    const std::string report = docker_->report();
    std::size_t bodies = 0;
    for (std::size_t at = 0; (at = report.find("\"Image\"", at)) != report.npos; ++at) ++bodies;
    return bodies == 4;
  });
  docker_->set(R"({"holdsCreates":false})");
  (void)docker_->reportWith(R"("pulls": [["registry)");
  docker_->set(R"({"holdsPulls":false})");
  for (const char* const worker : {"w1", "w2", "w3", "w4"}) {
    EXPECT_EQ(exitOf(worker).reason, "it ended with exit code 0");
  }
  const std::string report = docker_->report();
  EXPECT_TRUE(contains(report, R"("pulls": [["registry.example:5000/team/worker:2", ""]])")) << report;
}

TEST_F(LauncherDocker, PullsTheTagLatestOrADigest) {
  const std::string digest = "one@sha256:" + std::string(64, 'a');
  open(R"({"images":{"two:latest":{"state":"remote"},")" + digest + R"(":{"state":"remote"}}})");
  start("w1", digest);
  start("w2", "two");
  EXPECT_FALSE(exitOf("w1").isFailure) << exitOf("w1").reason;
  EXPECT_FALSE(exitOf("w2").isFailure) << exitOf("w2").reason;
}

TEST_F(LauncherDocker, AWorkerDoesNotWaitForTheImageOfAnother) {
  open(R"({"holdsPulls":true,"images":{"slow:1":{"state":"remote"},"shell:1":{"state":"present"}}})");
  for (const char* const worker : {"w1", "w2", "w3", "w4", "w5"}) start(worker, "slow:1");
  (void)docker_->reportWith("slow:1");
  start("fast", "shell:1");
  EXPECT_FALSE(exitOf("fast").isFailure);
}

TEST_F(LauncherDocker, AStopEndsAPull) {
  open(R"({"holdsPulls":true,"images":{"slow:1":{"state":"remote"}}})");
  start("w1", "slow:1");
  (void)docker_->reportWith(R"("pulls": [["slow:1")");
  const testkit::PaceWatch watch;
  launcher_->stop("w1", kNever);
  const WorkerExit exit = exitOf("w1");
  watch.end("the stop of a pull", std::chrono::seconds(1));
  EXPECT_FALSE(exit.isFailure);
  EXPECT_EQ(exit.reason, "it was stopped before it began");
  EXPECT_TRUE(contains(docker_->report(), R"("containers": [])"));
}

TEST_F(LauncherDocker, AnErrorInsideAPullIsTheReason) {
  open(R"({"pullError":"no space left on device","images":{"big:1":{"state":"remote"}}})");
  start("w1", "big:1");
  EXPECT_EQ(exitOf("w1").reason, "it could not be started: the image big:1 cannot be pulled: no space left on device");
  EXPECT_TRUE(exitOf("w1").isFailure);
}

TEST_F(LauncherDocker, AnUnknownImageIsTheReason) {
  open(R"({})");
  start("w1", "absent:1");
  EXPECT_TRUE(contains(exitOf("w1").reason, "pull access denied for absent")) << exitOf("w1").reason;
}

TEST_F(LauncherDocker, SendsTheCredentialsOfTheTemplate) {
  docker_ = std::make_unique<FakeDocker>(
      R"({"images":{"r.example/a:1":{"state":"remote","user":"me","password":"pa?ss>word"}}})");
  load(
      writeAuths("\xEF\xBB\xBF"
                 R"({"mine": {"server": "r.example", "user": "me", "password": "pa?ss>word"}})"));
  ContainerSpec container = dockerShell("exit 0");
  container.image = "r.example/a:1";
  start("without", container);
  EXPECT_TRUE(exitOf("without").isFailure);
  container.registryAuthId = "mine";
  EXPECT_EQ(launcher_->fault(container), std::nullopt);
  start("with", container);
  EXPECT_FALSE(exitOf("with").isFailure) << exitOf("with").reason;
  container.registryAuthId = "other";
  EXPECT_TRUE(contains(launcher_->fault(container).value_or(""), "launcher.docker.auths"));
  container.registryAuthId = "mine";
  for (const char* image : {"r.example:5000/a:1", "evil.example/r.example/a:1", "a:1", "team/a:1"}) {
    container.image = image;
    EXPECT_TRUE(contains(launcher_->fault(container).value_or(""), "these credentials are for r.example, while"))
        << image;
  }
  start("elsewhere", container);
  EXPECT_TRUE(contains(exitOf("elsewhere").reason, "while the image is of docker.io")) << exitOf("elsewhere").reason;
  EXPECT_FALSE(contains(docker_->report(), "team/a:1\", \"me")) << docker_->report();
  EXPECT_FALSE(contains(log_.text(), "word"));
}

TEST_F(LauncherDocker, RefusesCredentialsReadableByOtherUsers) {
  docker_ = std::make_unique<FakeDocker>("{}");
  const std::string file = writeAuths("{}", 0644);
  const std::string text = testkit::thrownText<ConfigError>([&] { load(file); });
  EXPECT_TRUE(contains(text, "chmod 600 " + file)) << text;
}

TEST_F(LauncherDocker, StartsWithoutABoundOfTheDiskIfTheDriverHasNoBounds) {
  open(R"({"refusesDisk":true,"images":{"shell:1":{"state":"present"}}})");
  ContainerSpec container = dockerShell("exit 0");
  container.diskInGb = 50;
  for (const char* const worker : {"w1", "w2", "w3"}) start(worker, container);
  for (const char* const worker : {"w1", "w2", "w3"}) EXPECT_FALSE(exitOf(worker).isFailure) << exitOf(worker).reason;
  EXPECT_EQ(linesOf("launcher.disk"), 1U) << log_.text();
}

TEST_F(LauncherDocker, AProgramMissingInTheImageIsTheReason) {
  open(kShellImage);
  ContainerSpec container = dockerShell("");
  container.entrypoint = {"no-such-program"};
  start("w1", container);
  const std::string reason = exitOf("w1").reason;
  EXPECT_TRUE(contains(reason, "executable file not found in $PATH")) << reason;
  EXPECT_TRUE(contains(docker_->report(), R"("containers": [])"));
}

TEST_F(LauncherDocker, TheLastLineOfTheOutputIsInTheReason) {
  open(kShellImage);
  start("w1", dockerShell("echo one; echo 'no module named torch' >&2; echo; exit 1"));
  EXPECT_EQ(exitOf("w1").reason, "it ended with exit code 1: no module named torch");
}

TEST_F(LauncherDocker, ATakenNameIsTheReason) {
  open(kShellImage);
  (void)docker_->call("POST", "/containers/create?name=jobq-w1", R"({"Image":"shell:1"})");
  start("w1", "shell:1");
  EXPECT_TRUE(contains(exitOf("w1").reason, "already in use")) << exitOf("w1").reason;
  EXPECT_TRUE(contains(docker_->report(), R"("name": "jobq-w1")")) << "the container of a different program stays";
}

TEST_F(LauncherDocker, AVanishedContainerIsAnExit) {
  open(kShellImage);
  start("w1", dockerShell(kForever));
  (void)docker_->reportWith(R"("state": "running")");
  (void)docker_->call("DELETE", "/containers/jobq-w1?force=true");
  EXPECT_TRUE(exitOf("w1").isFailure);
}

TEST_F(LauncherDocker, AnUnreachableDaemonIsNotAnExit) {
  open(kShellImage);
  const testkit::TemporaryFolder folder;
  const std::string ready = (folder / "ready").string();
  start("w1", dockerShell("trap 'exit 0' TERM; echo > " + ready + "; while :; do sleep 0.1; done"));
  testkit::waitFor("the worker's answer to SIGTERM to be set", [&] { return std::filesystem::exists(ready); });
  docker_->set(R"({"isDown":true})");
  awaitLog("launcher.unreachable");
  start("w2", "shell:1");
  launcher_->stop("w1", kNever);
  docker_->set(R"({"isDown":false})");
  EXPECT_FALSE(exitOf("w1").isFailure) << "the stop arrives when Docker answers again";
  awaitLog("launcher.reachable");
  exitOf("w2");
  EXPECT_EQ(linesOf("launcher.unreachable"), 1U);
  EXPECT_EQ(exits_.size(), 2U);
}

TEST_F(LauncherDocker, AnOutputGoesOnAfterABrokenConnection) {
  open(kShellImage);
  const testkit::TemporaryFolder folder;
  const std::string go = (folder / "go").string();
  start("w1", dockerShell("echo one; while [ ! -e " + go + " ]; do sleep 0.1; done; echo two; exec sleep 600"));
  std::string seen;
  const auto hasSeen = [&](const std::string& text) {
    for (const WorkerOutput& output : launcher_->collectOutput()) seen += output.bytes;
    return contains(seen, text);
  };
  testkit::waitFor("the first line", [&] { return hasSeen("one\n"); });
  docker_->set(R"({"isDown":true})");
  awaitLog("launcher.unreachable");
  std::ofstream(go).put('x');
  docker_->set(R"({"isDown":false})");
  testkit::waitFor("the second line", [&] { return hasSeen("two\n"); });
}

TEST_F(LauncherDocker, WithoutADaemonAStartFails) {
  launcher_ = loadDockerLauncher(log_, data_, (data_ / "none.sock").string());
  start("w1", "shell:1");
  const std::string reason = exitOf("w1").reason;
  EXPECT_TRUE(contains(reason, "Docker does not answer at " + (data_ / "none.sock").string())) << reason;
  awaitLog("launcher.unreachable");  // the line comes behind the exit
  EXPECT_EQ(linesOf("launcher.unreachable"), 1U);
}

TEST_F(LauncherDocker, RemovesTheContainersOfAnEarlierLifeBeforeAStart) {
  open(kShellImage);
  start("w1", dockerShell(kForever));
  const std::string report = docker_->reportWith(R"("state": "running")");
  const std::string labels = report.substr(report.find(R"("labels": )") + 10);
  const std::string body = R"({"Image":"shell:1","Entrypoint":["sh","-c","while :; do sleep 0.1; done"],"Labels":)" +
                           labels.substr(0, labels.find('}') + 1) + "}";
  launcher_.reset();
  EXPECT_TRUE(contains(docker_->report(), R"("containers": [])"));
  EXPECT_TRUE(contains(docker_->report(), R"("volumes": [])")) << "no anonymous volume is left";

  (void)docker_->call("POST", "/containers/create?name=jobq-former", body);
  (void)docker_->call("POST", "/containers/jobq-former/start");
  (void)docker_->call("POST", "/containers/create?name=other", R"({"Image":"shell:1","Labels":{"jobq.server":"x"}})");
  docker_->set(R"({"refusesRemoval":true})");
  load();
  start("w2", dockerShell(kForever));
  awaitLog("launcher.leftover");
  EXPECT_FALSE(contains(docker_->report(), "jobq-w2")) << "no worker starts beside an earlier container";
  docker_->set(R"({"refusesRemoval":false})");
  const std::string later = docker_->reportWith("jobq-w2");
  EXPECT_FALSE(contains(later, "jobq-former"));
  EXPECT_EQ(linesOf("launcher.leftover"), 1U) << "a container has a single line despite repeated failures";
  EXPECT_TRUE(contains(later, R"("name": "other")")) << "the containers of other servers stay";
}

TEST_F(LauncherDocker, SpeaksTheOldestVersionOfANewerDaemon) {
  open(R"({"minApi":"1.44","api":"1.52","images":{"shell:1":{"state":"present"}}})");
  start("w1", "shell:1");
  EXPECT_FALSE(exitOf("w1").isFailure) << exitOf("w1").reason;
}

TEST_F(LauncherDocker, NamesTheVersionOfATooOldDaemon) {
  open(R"({"api":"1.40"})");
  start("w1", "shell:1");
  EXPECT_TRUE(contains(exitOf("w1").reason, "use Docker 20.10 or newer")) << exitOf("w1").reason;
}

TEST_F(LauncherDocker, TheDestructorEndsAPull) {
  open(R"({"holdsPulls":true,"images":{"slow:1":{"state":"remote"}}})");
  start("w1", "slow:1");
  (void)docker_->reportWith(R"("pulls": [["slow:1")");
  const testkit::PaceWatch watch;
  launcher_.reset();
  watch.end("the destructor during a pull", std::chrono::seconds(2));
}

TEST_F(LauncherDocker, TheDestructorIsBoundedWithoutAnAnswer) {
  open(kShellImage);
  start("w1", dockerShell(kForever));
  (void)docker_->reportWith(R"("state": "running")");
  docker_->set(R"({"isSilent":true})");
  const testkit::HangGuard guard("the destructor with a silent daemon");
  launcher_.reset();
  EXPECT_EQ(linesOf("launcher.leftover"), 1U) << log_.text();
}

}  // namespace
}  // namespace jobq::test
