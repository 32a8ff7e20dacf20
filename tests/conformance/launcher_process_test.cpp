// Tests of the promises of launcher_process beyond the contract of launchers: the surroundings of a worker's process,
// its log, and the end of all processes.
#include <fcntl.h>
#include <gmock/gmock.h>
#include <signal.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cerrno>
#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <iterator>
#include <map>
#include <memory>
#include <string>
#include <vector>

#include "jobq/error.h"
#include "launcher_fixture.h"
#include "launcher_processes.h"
#include "testkit/life_pipe.h"
#include "testkit/recording_log.h"
#include "testkit/temporary_folder.h"
#include "testkit/thrown_text.h"
#include "testkit/wait_for.h"

namespace jobq::test {
namespace {

using testing::HasSubstr;

class LauncherProcess : public testing::Test {
 protected:
  using Settings = std::map<std::string, std::string, std::less<>>;

  void load(const Settings& settings = {}) { launcher_ = loadProcessLauncher(log_, data_, settings); }
  void startContainer(const WorkerId& worker, const ContainerSpec& container,
                      std::map<std::string, std::string> variables = {}) {
    if (launcher_ == nullptr) load();
    variables.emplace("FOLDER", folder_.path().string());
    launcher_->start({worker, "ep", container, std::move(variables)});
  }
  void start(const WorkerId& worker, const std::string& script, std::map<std::string, std::string> variables = {}) {
    startContainer(worker, shellContainer(script), std::move(variables));
  }
  /// Waits for the next exit.
  WorkerExit nextExit() {
    std::vector<WorkerExit> exits;
    testkit::waitFor("an exit", [&] { return !(exits = launcher_->collectExits()).empty(); });
    EXPECT_EQ(exits.size(), 1U);
    return exits.front();
  }
  std::string reasonOf(const std::string& script, std::map<std::string, std::string> variables = {}) {
    start("w1", script, std::move(variables));
    return nextExit().reason;
  }
  void awaitFile(const std::string& name) {
    testkit::waitFor("the file " + name, [&] { return std::filesystem::exists(folder_ / name); });
  }
  static std::string content(const std::filesystem::path& file) {
    std::ifstream in(file, std::ios::binary);
    return {std::istreambuf_iterator<char>(in), {}};
  }
  std::filesystem::path logOf(const WorkerId& worker) { return data_ / "workers" / "ep" / (worker + ".log"); }
  std::string refusalOf(const Settings& settings) {
    return testkit::thrownText<ConfigError>([&] { return load(settings); });
  }

  testkit::RecordingLog log_;
  const testkit::TemporaryFolder data_;
  const testkit::TemporaryFolder folder_;
  std::unique_ptr<WorkerLauncher> launcher_;
};

TEST_F(LauncherProcess, AnOutputIsInTheLogAndItsLastLineInTheReason) {
  EXPECT_EQ(reasonOf("echo one; echo two >&2; echo three; echo >&2; exit 3"), "it ended with exit code 3: three");
  EXPECT_EQ(content(logOf("w1")), "one\ntwo\nthree\n\n");
  EXPECT_EQ(log_.text(), "");
}

TEST_F(LauncherProcess, AWorkerHasASessionAndNoDescriptorOfTheServer) {
  const int inherited = ::open("/dev/null", O_RDONLY);  // NOLINT: without O_CLOEXEC
  ASSERT_GT(inherited, 2);
  reasonOf("ls /proc/$$/fd; readlink /proc/$$/fd/0; cut -d' ' -f6 /proc/$$/stat; echo $$");
  ::close(inherited);
  const std::string log = content(logOf("w1"));
  EXPECT_THAT(log, testing::StartsWith("0\n1\n2\n/dev/null\n"));
  const std::string numbers = log.substr(std::string("0\n1\n2\n/dev/null\n").size());
  const std::size_t half = numbers.size() / 2;
  EXPECT_EQ(numbers.substr(0, half), numbers.substr(half)) << "the worker is the session leader";
}

TEST_F(LauncherProcess, AWorkerHasNoSignalBlockedOrIgnored) {
  sigset_t blocked;
  sigset_t before;
  sigemptyset(&blocked);
  sigaddset(&blocked, SIGUSR1);
  pthread_sigmask(SIG_BLOCK, &blocked, &before);
  const auto handler = ::signal(SIGPIPE, SIG_IGN);
  reasonOf("exec grep -E 'Sig(Blk|Ign)' /proc/self/status");
  ::signal(SIGPIPE, handler);
  pthread_sigmask(SIG_SETMASK, &before, nullptr);
  // The C library ignores its two internal signals, 32 and 33, in each program started by posix_spawn().
  EXPECT_THAT(content(logOf("w1")), testing::MatchesRegex("SigBlk:\t0+\nSigIgn:\t0000000[01][08]0000000\n"));
}

TEST_F(LauncherProcess, AWorkerHasFewOfTheServersVariables) {
  ::setenv("JOBQ_TEST_SECRET", "1", 1);
  reasonOf("exec env", {{"HOME", "/elsewhere"}, {"A", "b"}});
  ::unsetenv("JOBQ_TEST_SECRET");
  const std::string log = content(logOf("w1"));
  EXPECT_THAT(log, HasSubstr("HOME=/elsewhere\n"));
  EXPECT_THAT(log, HasSubstr("A=b\n"));
  EXPECT_THAT(log, HasSubstr("PATH=" + std::string(std::getenv("PATH")) + "\n"));
  EXPECT_THAT(log, testing::Not(HasSubstr("JOBQ_TEST_SECRET")));
}

TEST_F(LauncherProcess, AWorkerSeesItsGpusAlone) {
  load();
  launcher_->start({.worker = "w1",
                    .endpoint = "ep",
                    .container = shellContainer("exec env"),
                    .env = {{"CUDA_VISIBLE_DEVICES", "7"}},
                    .gpuCount = 2,
                    .gpus = {"0", "GPU-b"}});
  (void)nextExit();
  EXPECT_THAT(content(logOf("w1")), HasSubstr("CUDA_VISIBLE_DEVICES=0,GPU-b\n"));
}

TEST_F(LauncherProcess, AProgramIsSearchedInThePathOfTheWorker) {
  std::ofstream(folder_ / "own-program") << "#!/bin/sh\necho own \"$1\"\n";
  std::filesystem::permissions(folder_ / "own-program", std::filesystem::perms::owner_all);
  ContainerSpec container;
  container.command = {"own-program", "x y"};
  startContainer("w1", container, {{"PATH", folder_.path().string() + ":/bin:/usr/bin"}});
  EXPECT_EQ(nextExit().reason, "it ended with exit code 0: own x y");
}

TEST_F(LauncherProcess, AFailedStartNamesTheProgram) {
  std::ofstream(folder_ / "no-program") << "x";
  ContainerSpec container;
  for (const auto& [program, reason] : std::map<std::string, std::string>{
           {"no-such-program", "no-such-program: No such file or directory"},
           {"/", "/: Permission denied"},
           {(folder_ / "no-program").string(), (folder_ / "no-program").string() + ": Permission denied"}}) {
    container.entrypoint = {program};
    startContainer("w1", container);
    const WorkerExit exit = nextExit();
    EXPECT_EQ(exit.reason, "it could not be started: " + reason);
    EXPECT_TRUE(exit.isFailure);
  }
  start("w1", "exit 0", {{"A", std::string("\0", 1)}});
  EXPECT_EQ(nextExit().reason, "it could not be started: the variable A has a NUL character");
  start("w1", "exit 0", {{"A", std::string(1'000'000, 'x')}});
  EXPECT_EQ(nextExit().reason, "it could not be started: sh: Argument list too long");
}

TEST_F(LauncherProcess, ATemplateWithoutAProgramHasAFault) {
  load();
  EXPECT_THAT(launcher_->fault({}).value_or(""), HasSubstr("give the template a dockerStartCmd"));
  ContainerSpec container;
  container.command = {""};
  EXPECT_NE(launcher_->fault(container), std::nullopt);
}

TEST_F(LauncherProcess, TheWorkingDirectory) {
  reasonOf("pwd -P");
  EXPECT_EQ(content(logOf("w1")), std::filesystem::current_path().string() + "\n");
  std::filesystem::create_directory(data_ / "models");
  load({{"directory", "models"}});
  EXPECT_EQ(reasonOf("exit 0"), "it ended with exit code 0");
  std::filesystem::remove(data_ / "models");
  EXPECT_EQ(reasonOf("exit 0"), "it could not be started: the working directory " + (data_ / "models").string() +
                                    ": No such file or directory");
  EXPECT_THAT(refusalOf({{"directory", "none"}}), HasSubstr("launcher.process.directory: "));
}

TEST_F(LauncherProcess, AnotherUserReadsNoKeyOfTheServer) {
  EXPECT_THAT(refusalOf({{"user", "no such user"}}), HasSubstr("launcher.process.user: there is no user no such user"));
  if (::geteuid() != 0) GTEST_SKIP() << "may not start processes as another user";
  const std::filesystem::path key = data_ / "secret.key";
  std::ofstream(key) << "sealed";
  std::filesystem::permissions(key, std::filesystem::perms::owner_read);
  load({{"user", "nobody"}, {"directory", "/"}});
  EXPECT_EQ(reasonOf("id -un; cat " + key.string() + " || echo unread; kill -STOP $PPID || echo apart; exit 3"),
            "it ended with exit code 3: apart");
  EXPECT_THAT(content(logOf("w1")), testing::StartsWith("nobody\n"));
  EXPECT_THAT(content(logOf("w1")), testing::AllOf(HasSubstr("unread"), testing::Not(HasSubstr("sealed"))));
}

TEST_F(LauncherProcess, AMissingGuardIsRefusedWithTheRemedy) {
  const std::filesystem::path copy = folder_ / "libjobq_launcher_process.so";
  std::filesystem::copy_file(JOBQ_PLUGIN_DIR "/libjobq_launcher_process.so", copy);
  static testkit::ManualClock clock;
  const testkit::MapConfig config;
  EXPECT_THAT(
      testkit::thrownText<ConfigError>([&] {
        return testkit::loadPlugin<WorkerLauncher>(copy, "process", PluginEnv{config, clock, log_, data_, false});
      }),
      HasSubstr("jobq-guard, which is missing or may not be executed: install jobq anew"));
}

TEST_F(LauncherProcess, AnEndlessOutputIsBounded) {
  load({{"maxLog", "100000"}});
  EXPECT_EQ(reasonOf("head -c 300000000 /dev/zero; printf '\\nthe end\\n'"), "it ended with exit code 0: the end");
  EXPECT_LE(std::filesystem::file_size(logOf("w1")), 100'000U);
  EXPECT_EQ(std::filesystem::file_size(logOf("w1") += ".1"), 100'000U);
}

TEST_F(LauncherProcess, AClosedOutputIsNoEnd) {
  EXPECT_EQ(reasonOf("echo before; exec >&- 2>&-; sleep 0.1; exit 4"), "it ended with exit code 4: before");
}

TEST_F(LauncherProcess, AnUnwritableOutputStopsNoWorker) {
  std::ofstream(data_ / "workers") << "no folder";
  EXPECT_EQ(reasonOf("echo one; sleep 0.1; echo two; exit 3"), "it ended with exit code 3: two");
  EXPECT_EQ(log_.lines().size(), 1U) << log_.text();
  EXPECT_THAT(log_.text(), HasSubstr("launcher.log: the output of the worker w1 of the endpoint ep cannot be written"));
}

TEST_F(LauncherProcess, TheLogsOf20EndedWorkersAreKept) {
  for (int i = 0; i < 23; ++i) {
    start("w" + std::to_string(i), "echo " + std::to_string(i));
    nextExit();
  }
  const auto logs = std::filesystem::directory_iterator(data_ / "workers/ep");
  EXPECT_EQ(std::distance(begin(logs), end(logs)), 20);
  EXPECT_EQ(content(logOf("w22")), "22\n");
}

TEST_F(LauncherProcess, AHundredChildrenIgnoringSigtermEndWithTheWorker) {
  // The worker ignores the signal before reporting its readiness.
  start("w1",
        "i=0; while [ $i -lt 100 ]; do i=$((i+1)); (trap '' TERM HUP INT; sleep 3600) & done; trap '' TERM; "
        "echo > $FOLDER/ready; while :; do sleep 0.1; done");
  awaitFile("ready");
  EXPECT_GE(processesWith(folder_.path().string()).size(), 100U);
  launcher_->stop("w1", Millis(10));
  EXPECT_EQ(nextExit().reason, "it was ended by signal 9 (Killed)");
  EXPECT_TRUE(processesWith(folder_.path().string()).empty());
}

TEST_F(LauncherProcess, AWorkerWithAKilledGuardEndsWithAllProcesses) {
  const std::string worker = "w-" + std::to_string(::getpid());
  start(worker, "(setsid sh -c 'trap \"\" TERM; sleep 3600' &); echo > $FOLDER/ready; while :; do sleep 0.1; done");
  awaitFile("ready");
  ASSERT_EQ(::kill(guardOf(worker), SIGKILL), 0);
  const WorkerExit exit = nextExit();
  EXPECT_EQ(exit.reason, "its guard was ended by signal 9 (Killed), and the worker with it");
  EXPECT_TRUE(exit.isFailure);
  testkit::waitFor("the end of the processes that were killed",
                   [&] { return processesWith(folder_.path().string()).empty(); });
}

TEST_F(LauncherProcess, AWorkerWithAStoppedGuardEndsAllTheSame) {
  start("w1",
        "(setsid sh -c 'trap \"\" TERM; sleep 3600' &); kill -STOP $PPID; echo > $FOLDER/ready; "
        "while :; do sleep 0.1; done");
  awaitFile("ready");
  launcher_->stop("w1", Millis(10));
  EXPECT_EQ(nextExit().reason, "its guard was ended by signal 9 (Killed), and the worker with it");
  testkit::waitFor("the end of the processes that were killed",
                   [&] { return processesWith(folder_.path().string()).empty(); });
}

TEST_F(LauncherProcess, AWorkerWithoutItsEnvironmentEndsWithItsGuard) {
  const testkit::LifePipe life(folder_ / "life");
  const std::string worker = "w-" + std::to_string(::getpid());
  start(worker, "exec 9>$FOLDER/life; exec env -i sleep 3600");
  testkit::waitFor("the worker to drop its environment",
                   [&] { return life.isHeld() && processesWith(folder_.path().string()).empty(); });
  ASSERT_EQ(::kill(guardOf(worker), SIGKILL), 0);
  EXPECT_TRUE(nextExit().isFailure);
  testkit::waitFor("the worker to end", [&] { return !life.isHeld(); });
}

TEST_F(LauncherProcess, AGuardOutlivesTheSignalsOfATerminal) {
  const std::string worker = "w-" + std::to_string(::getpid());
  start(worker, "echo > $FOLDER/ready; while [ ! -e $FOLDER/end ]; do sleep 0.01; done; exit 5");
  awaitFile("ready");
  const pid_t guard = guardOf(worker);
  for (const int signal : {SIGINT, SIGHUP, SIGTERM, SIGQUIT}) ASSERT_EQ(::kill(guard, signal), 0);
  std::ofstream(folder_ / "end") << "x";
  EXPECT_EQ(nextExit().reason, "it ended with exit code 5");
}

TEST_F(LauncherProcess, NoZombieIsLeft) {
  for (int i = 0; i < 5; ++i) reasonOf("sleep 3600 & exit 0");
  start("w1", "sleep 3600");
  start("w2", "no-such-program");
  launcher_.reset();
  EXPECT_EQ(::waitpid(-1, nullptr, WNOHANG), -1);
  EXPECT_EQ(errno, ECHILD);
}

}  // namespace
}  // namespace jobq::test
