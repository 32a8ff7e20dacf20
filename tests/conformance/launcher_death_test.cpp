// The death of a server with workers: a process with a launcher is killed, and all processes of the workers end.
#include <fcntl.h>
#include <gtest/gtest.h>
#include <signal.h>
#include <spawn.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cstddef>
#include <filesystem>
#include <string>

#include "launcher_fixture.h"
#include "launcher_processes.h"
#include "testkit/life_pipe.h"
#include "testkit/temporary_folder.h"
#include "testkit/wait_for.h"

namespace jobq::test {
namespace {

/// The program launcher_holder, killed at the end of the object.
class Holder {
 public:
  Holder(const std::filesystem::path& data, const std::filesystem::path& folder, std::string name) {
    std::string program = JOBQ_LAUNCHER_HOLDER;
    std::string first = data.string();
    std::string second = folder.string();
    char* arguments[] = {program.data(), first.data(), second.data(), name.data(), nullptr};
    EXPECT_EQ(::posix_spawn(&pid_, program.c_str(), nullptr, nullptr, arguments, environ), 0);
  }
  ~Holder() { kill(); }
  Holder(const Holder&) = delete;
  Holder& operator=(const Holder&) = delete;

  void suspend() {
    ::kill(pid_, SIGSTOP);
    testkit::waitFor("the process to be suspended", [this] {
      int status = 0;
      return ::waitpid(pid_, &status, WNOHANG | WUNTRACED) == pid_ && WIFSTOPPED(status);
    });
  }
  void kill() {
    if (pid_ <= 0) return;
    ::kill(pid_, SIGKILL);
    testkit::waitFor("the killed process to end", [this] { return ::waitpid(pid_, nullptr, WNOHANG) == pid_; });
    pid_ = -1;
  }

 private:
  pid_t pid_ = -1;
};

/// A holder with two workers, and the facts seen by the test.
class LauncherDeath : public testing::Test {
 protected:
  void SetUp() override {
    for (const char* const file : {"a", "b"}) {
      testkit::waitFor("the processes of a worker", [&] { return std::filesystem::exists(folder_ / file); });
    }
    ASSERT_TRUE(life_.isHeld());
    testkit::waitFor("the holder, and four processes of each worker",
                     [&] { return processesWith(folder_.path().string()).size() >= 9; });
    ASSERT_EQ(guards(), 2U);
  }
  std::size_t guards() const { return processesWith("jobq-guard" + std::string(1, '\0') + name_).size(); }
  void awaitEnd() const {
    testkit::waitFor("all processes of the workers to end", [this] { return !life_.isHeld(); });
  }

  const testkit::TemporaryFolder data_;
  const testkit::TemporaryFolder folder_;
  const testkit::LifePipe life_{folder_ / "life"};
  const std::string name_ = "held-" + std::to_string(::getpid());
  Holder holder_{data_, folder_, name_};
};

TEST_F(LauncherDeath, AllProcessesOfAKilledServerEnd) {
  holder_.kill();
  awaitEnd();
  testkit::waitFor("no process to be left",
                   [this] { return processesWith(folder_.path().string()).empty() && processesWith(name_).empty(); });
}

TEST_F(LauncherDeath, ProcessesOutlivingServerAndGuardsEndAtTheNextStart) {
  holder_.suspend();
  for (const char* const worker : {"-a", "-b"}) ASSERT_EQ(::kill(guardOf(name_ + worker), SIGKILL), 0);
  holder_.kill();
  testkit::waitFor("the guards to end", [this] { return guards() == 0; });
  EXPECT_TRUE(life_.isHeld());
  testkit::SilentLog log;
  const testkit::TemporaryFolder elsewhere;
  loadProcessLauncher(log, elsewhere);
  EXPECT_TRUE(life_.isHeld()) << "a launcher with a different data directory kills no worker";
  loadProcessLauncher(log, data_);
  awaitEnd();
}

}  // namespace
}  // namespace jobq::test
