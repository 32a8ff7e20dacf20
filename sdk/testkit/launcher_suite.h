// The conformance suite of worker launchers: tests for each rule of sdk/include/jobq/worker_launcher.h. The test of a
// launcher provides the launcher with containers for it:
//
//     #include "testkit/launcher_suite.h"
//     class MineRig final : public jobq::testkit::LauncherRig { ... };
//     JOBQ_LAUNCHER_CONFORMANCE(Mine, testing::Values(jobq::testkit::LauncherUnderTest{
//         "mine", [] { return std::make_unique<MineRig>(); }}));
//
// A single source file of a test program includes the header. The workers are scripts of a POSIX shell that share a
// folder with the test. Graces are in real time: a launcher waits for real processes.
#pragma once

#include <gtest/gtest.h>

#include <chrono>
#include <cstddef>
#include <filesystem>
#include <fstream>
#include <functional>
#include <iterator>
#include <map>
#include <memory>
#include <optional>
#include <ostream>
#include <string>
#include <utility>
#include <vector>

#include "jobq/job.h"
#include "jobq/time.h"
#include "jobq/worker_launcher.h"
#include "jobq/worker_output.h"
#include "testkit/life_pipe.h"
#include "testkit/pace.h"
#include "testkit/wait_for.h"

namespace jobq::testkit {

/// A launcher and its surroundings, new for each test.
class LauncherRig {
 public:
  virtual ~LauncherRig() = default;

  /// Returns the launcher, owned by the rig.
  virtual WorkerLauncher& launcher() = 0;
  /// Destroys the launcher, as the server does at its end. launcher() is not called again.
  virtual void destroyLauncher() = 0;
  /// Returns a container whose main process is a POSIX shell that runs `script`, with `arguments` as $1 and so on. The
  /// shell inherits the variables of the launch.
  virtual ContainerSpec containerOf(const std::string& script, const std::vector<std::string>& arguments) = 0;
  /// Returns a container that fault() accepts and whose start fails.
  virtual ContainerSpec unstartable() = 0;
  /// Returns a container that fault() refuses.
  virtual ContainerSpec refused() = 0;
  /// Returns an empty folder, with the same path for the test and for the workers.
  virtual std::filesystem::path folder() = 0;
  /// Returns all that the launcher has written to the log of the server.
  virtual std::string logText() = 0;
};

/// A launcher for the suite.
struct LauncherUnderTest {
  std::string name;
  std::function<std::unique_ptr<LauncherRig>()> make;
};

inline std::ostream& operator<<(std::ostream& out, const LauncherUnderTest& under) { return out << under.name; }

/// Fixture of the suite: a new rig for each test.
class LauncherSuite : public testing::TestWithParam<LauncherUnderTest> {
 protected:
  static constexpr Millis kNever{3'600'000};  // a grace that no test waits for
  static constexpr std::chrono::seconds kSoon{1};

  void SetUp() override {
    rig_ = GetParam().make();
    life_ = std::make_unique<LifePipe>(rig_->folder() / "life");
  }

  /// Starts a worker with the script, which finds the shared folder in FOLDER and the pipe in LIFE.
  void start(const WorkerId& worker, const std::string& script, const std::vector<std::string>& arguments = {},
             std::map<std::string, std::string> variables = {}) {
    variables.emplace("FOLDER", rig_->folder().string());
    variables.emplace("LIFE", life_->path().string());
    startContainer(worker, rig_->containerOf(script, arguments), std::move(variables));
  }
  void startContainer(const WorkerId& worker, ContainerSpec container,
                      std::map<std::string, std::string> variables = {}) {
    rig_->launcher().start(WorkerLaunch{worker, "ep", std::move(container), std::move(variables)});
  }
  /// Starts a worker that ignores SIGTERM, and waits until the worker runs.
  void startStubborn(const WorkerId& worker) {
    start(worker, "trap '' TERM; exec 9>\"$LIFE\"; while :; do sleep 0.1; done");
    waitFor("the worker to hold its pipe", [this] { return life_->isHeld(); });
  }
  void stop(const WorkerId& worker, Millis grace) { rig_->launcher().stop(worker, grace); }

  void collect() {
    for (WorkerExit& exit : rig_->launcher().collectExits()) exits_.push_back(std::move(exit));
  }
  /// Returns the exit of the worker, if the launcher has reported it so far.
  std::optional<WorkerExit> exitSoFar(const WorkerId& worker) {
    collect();
    for (const WorkerExit& exit : exits_) {
      if (exit.worker == worker) return exit;
    }
    return std::nullopt;
  }
  /// Waits for the exit of the worker.
  WorkerExit exitOf(const WorkerId& worker) {
    std::optional<WorkerExit> exit;
    waitFor("the exit of " + worker, [&] { return (exit = exitSoFar(worker)).has_value(); });
    return *exit;
  }
  std::size_t exitsOf(const WorkerId& worker) {
    std::size_t count = 0;
    for (const WorkerExit& exit : exits_) count += exit.worker == worker ? 1 : 0;
    return count;
  }

  /// Returns the content of a file of the shared folder, or an empty text.
  std::string content(const std::string& file) {
    std::ifstream in(rig_->folder() / file, std::ios::binary);
    return {std::istreambuf_iterator<char>(in), {}};
  }
  void awaitFile(const std::string& file) {
    waitFor("the worker to write " + file, [&] { return std::filesystem::exists(rig_->folder() / file); });
  }

  std::unique_ptr<LauncherRig> rig_;
  std::unique_ptr<LifePipe> life_;
  std::vector<WorkerExit> exits_;
};

TEST_P(LauncherSuite, AFaultIsASentenceAndStartsNoWorker) {
  const ContainerSpec good = rig_->containerOf("exit 0", {});
  for (int i = 0; i < 3; ++i) {
    EXPECT_EQ(rig_->launcher().fault(good), std::nullopt);
    EXPECT_EQ(rig_->launcher().fault(rig_->unstartable()), std::nullopt);
    const std::optional<std::string> fault = rig_->launcher().fault(rig_->refused());
    ASSERT_TRUE(fault.has_value());
    EXPECT_GT(fault->size(), 20U) << *fault;
    EXPECT_EQ(fault->back(), '.') << *fault;
    EXPECT_EQ(rig_->launcher().fault(rig_->refused()), fault);
  }
  collect();
  EXPECT_TRUE(exits_.empty());
}

TEST_P(LauncherSuite, AWorkerHasItsArgumentsAndVariables) {
  const std::string strange = "a 'b' \"c\" $HOME `d` \\ = \n \xc3\xa4";
  start("w1", "printf '%s|%s|%s|%s' \"$#\" \"$1\" \"$2\" \"$STRANGE\" > \"$FOLDER/seen\"", {strange, ""},
        {{"STRANGE", strange}});
  EXPECT_FALSE(exitOf("w1").isFailure) << exitOf("w1").reason;
  EXPECT_EQ(content("seen"), "2|" + strange + "||" + strange);
}

TEST_P(LauncherSuite, TheOutputOfARunningWorkerIsCollected) {
  start("w1", "echo begun; echo failing >&2; exec 9>\"$LIFE\"; while :; do sleep 0.1; done");
  std::string seen;
  waitFor("the output of the worker", [&] {
    for (const WorkerOutput& output : rig_->launcher().collectOutput()) seen += output.bytes;
    return seen == "begun\nfailing\n";
  });
  EXPECT_FALSE(exitSoFar("w1").has_value());
}

TEST_P(LauncherSuite, TheOutputOfAnEndedWorkerIsWhole) {
  start("w1", "i=0; while [ $i -lt 200 ]; do i=$((i+1)); echo line $i; done; printf last; exit 3");
  std::string seen;
  bool hasEnded = false;
  waitFor("the end of the worker", [&] {
    hasEnded = exitSoFar("w1").has_value();
    for (const WorkerOutput& output : rig_->launcher().collectOutput()) {
      EXPECT_EQ(output.worker, "w1");
      seen += output.bytes;
    }
    return hasEnded;
  });
  EXPECT_TRUE(seen.starts_with("line 1\nline 2\n")) << seen.substr(0, 100);
  EXPECT_TRUE(seen.ends_with("line 200\nlast")) << seen;
  EXPECT_TRUE(rig_->launcher().collectOutput().empty());
}

TEST_P(LauncherSuite, AnExitWithCode0IsNoFailure) {
  start("w1", "exit 0");
  const WorkerExit exit = exitOf("w1");
  EXPECT_FALSE(exit.isFailure);
  EXPECT_FALSE(exit.reason.empty());
}

TEST_P(LauncherSuite, AnExitCodeOtherThanZeroIsAFailureWithTheCode) {
  start("w1", "exit 37");
  const WorkerExit exit = exitOf("w1");
  EXPECT_TRUE(exit.isFailure);
  EXPECT_NE(exit.reason.find("37"), std::string::npos) << exit.reason;
}

TEST_P(LauncherSuite, AnEndByASignalIsAFailure) {
  start("w1", "kill -9 $$");
  const WorkerExit exit = exitOf("w1");
  EXPECT_TRUE(exit.isFailure);
  EXPECT_FALSE(exit.reason.empty());
}

TEST_P(LauncherSuite, AFailedStartIsAnExitWithTheReason) {
  startContainer("w1", rig_->unstartable());
  const WorkerExit exit = exitOf("w1");
  EXPECT_TRUE(exit.isFailure);
  EXPECT_GT(exit.reason.size(), 10U) << exit.reason;
}

TEST_P(LauncherSuite, AReasonIsAClause) {
  start("w1", "exit 1");
  start("w2", "printf 'one\\n\\033[31mtwo\\007\\n\\n' >&2; exit 2");
  startContainer("w3", rig_->unstartable());
  for (const char* const worker : {"w1", "w2", "w3"}) {
    const std::string reason = exitOf(worker).reason;
    EXPECT_EQ(reason.substr(0, 3), "it ") << reason;
    for (const char c : reason) EXPECT_GE(static_cast<unsigned char>(c), ' ') << reason;
  }
}

TEST_P(LauncherSuite, EachWorkerAppearsOnce) {
  const std::string longest(64, 'w');
  std::vector<WorkerId> workers{longest, "A-9"};
  for (int i = 0; i < 6; ++i) workers.push_back("w" + std::to_string(i));
  for (const WorkerId& worker : workers) start(worker, "exit 0");
  startContainer("unstartable", rig_->unstartable());
  workers.push_back("unstartable");
  for (const WorkerId& worker : workers) exitOf(worker);
  for (const WorkerId& worker : workers) stop(worker, Millis(0));
  start("last", "exit 0");
  exitOf("last");
  collect();
  EXPECT_EQ(exits_.size(), workers.size() + 1);
  for (const WorkerId& worker : workers) EXPECT_EQ(exitsOf(worker), 1U) << worker;
}

TEST_P(LauncherSuite, ARunningWorkerDoesNotAppear) {
  startStubborn("w1");
  start("w2", "exit 0");
  exitOf("w2");
  collect();
  EXPECT_EQ(exitsOf("w1"), 0U);
  EXPECT_TRUE(life_->isHeld());
}

TEST_P(LauncherSuite, AStopAsksTheWorkerToEnd) {
  start("w1",
        "trap 'echo asked > \"$FOLDER/asked\"; exit 0' TERM; echo > \"$FOLDER/ready\"; while :; do sleep 0.1; done");
  awaitFile("ready");
  stop("w1", kNever);
  const WorkerExit exit = exitOf("w1");
  EXPECT_FALSE(exit.isFailure) << exit.reason;
  EXPECT_EQ(content("asked"), "asked\n");
}

TEST_P(LauncherSuite, AWorkerIsKilledWhenTheGraceHasPassed) {
  startStubborn("w1");
  const PaceWatch watch;
  stop("w1", Millis(300));
  const WorkerExit exit = exitOf("w1");
  EXPECT_GE(watch.elapsed(), Millis(290));
  EXPECT_TRUE(exit.isFailure);
  EXPECT_FALSE(life_->isHeld());
}

TEST_P(LauncherSuite, AGraceOf0KillsAtOnce) {
  startStubborn("w1");
  stop("w1", Millis(0));
  EXPECT_TRUE(exitOf("w1").isFailure);
}

TEST_P(LauncherSuite, ALaterStopShortensTheGrace) {
  startStubborn("w1");
  stop("w1", kNever);
  stop("w1", Millis(50));
  EXPECT_TRUE(exitOf("w1").isFailure);
}

TEST_P(LauncherSuite, ALaterStopNeverExtendsTheGrace) {
  startStubborn("w1");
  stop("w1", Millis(100));
  stop("w1", kNever);
  EXPECT_TRUE(exitOf("w1").isFailure);
}

TEST_P(LauncherSuite, AWorkerStoppedAtTheStartDoesNotBegin) {
  for (int i = 0; i < 10; ++i) {
    const WorkerId worker = "w" + std::to_string(i);
    start(worker, "trap '' TERM; exec 9>\"$LIFE\"; while :; do sleep 0.1; done");
    stop(worker, Millis(0));
  }
  for (int i = 0; i < 10; ++i) exitOf("w" + std::to_string(i));
  EXPECT_FALSE(life_->isHeld());
  collect();
  EXPECT_EQ(exits_.size(), 10U);
}

TEST_P(LauncherSuite, AStopConcernsOneWorker) {
  startStubborn("w1");
  start("w2", "echo > \"$FOLDER/ready\"; while :; do sleep 0.1; done");
  awaitFile("ready");
  stop("unknown", Millis(0));
  stop("w2", Millis(0));
  exitOf("w2");
  EXPECT_TRUE(life_->isHeld());
  EXPECT_EQ(exitsOf("w1"), 0U);
}

TEST_P(LauncherSuite, NoFunctionWaitsForAWorker) {
  const PaceWatch starting;
  start("w1", "trap '' TERM; exec 9>\"$LIFE\"; while :; do sleep 0.1; done");
  starting.end("start()", kSoon);
  waitFor("the worker to hold its pipe", [this] { return life_->isHeld(); });
  const PaceWatch stopping;
  stop("w1", kNever);
  stopping.end("stop() of a worker that does not end", kSoon);
  const PaceWatch collecting;
  collect();
  collecting.end("collectExits() before the end of a worker", kSoon);
  EXPECT_EQ(exitsOf("w1"), 0U);
}

TEST_P(LauncherSuite, DescendantsHaveEndedBeforeTheExit) {
  start("w1",
        "exec 9>\"$LIFE\"; for i in 1 2 3; do (trap '' TERM HUP; sleep 3600) & done; echo > \"$FOLDER/ready\"; exit 0");
  exitOf("w1");
  EXPECT_FALSE(life_->isHeld());
  awaitFile("ready");
}

TEST_P(LauncherSuite, DescendantsOutsideTheSessionEndBeforeTheExit) {
  start("w1",
        "exec 9>\"$LIFE\"; (setsid sh -c 'trap \"\" TERM HUP; echo > \"$FOLDER/ready\"; sleep 3600' &) ; "
        "until [ -e \"$FOLDER/ready\" ]; do sleep 0.01; done; exit 0");
  exitOf("w1");
  EXPECT_FALSE(life_->isHeld());
  awaitFile("ready");
}

TEST_P(LauncherSuite, TheDestructorKillsTheWorkers) {
  startStubborn("w1");
  start("w2", "exec 9>\"$LIFE\"; (setsid sleep 3600 &); while :; do sleep 0.1; done");
  start("w3", "exec 9>\"$LIFE\"; exit 0");
  {
    const HangGuard guard("the destructor of the launcher");
    rig_->destroyLauncher();
  }
  EXPECT_FALSE(life_->isHeld());
}

TEST_P(LauncherSuite, TheKeyIsInNoLogAndInNoReason) {
  const std::string key = "jq-secret-4711";
  start("w1", "exit 3", {}, {{"RUNPOD_AI_API_KEY", key}});
  startContainer("w2", rig_->unstartable(), {{"RUNPOD_AI_API_KEY", key}});
  for (const char* const worker : {"w1", "w2"}) EXPECT_EQ(exitOf(worker).reason.find(key), std::string::npos);
  EXPECT_EQ(rig_->logText().find(key), std::string::npos);
}

}  // namespace jobq::testkit

/// Runs the suite against launchers: `JOBQ_LAUNCHER_CONFORMANCE(Mine, testing::Values(...))`, once, at namespace scope.
#define JOBQ_LAUNCHER_CONFORMANCE(prefix, launchers)                                                             \
  namespace jobq::testkit {                                                                                      \
  inline std::string nameOfLauncher(const testing::TestParamInfo<LauncherUnderTest>& i) { return i.param.name; } \
  INSTANTIATE_TEST_SUITE_P(prefix, LauncherSuite, launchers, nameOfLauncher);                                    \
  }                                                                                                              \
  static_assert(true)
