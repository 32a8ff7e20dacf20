// The death of a server with workers: a process that holds a launcher is killed, and all processes of its workers end.
#include <fcntl.h>
#include <gtest/gtest.h>
#include <signal.h>
#include <spawn.h>
#include <sys/wait.h>
#include <unistd.h>

#include <filesystem>
#include <string>

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

  void kill() {
    if (pid_ <= 0) return;
    ::kill(pid_, SIGKILL);
    testkit::waitFor("the killed process to end", [this] { return ::waitpid(pid_, nullptr, WNOHANG) == pid_; });
    pid_ = -1;
  }

 private:
  pid_t pid_ = -1;
};

TEST(LauncherDeath, AllProcessesOfAKilledServerEnd) {
  const testkit::TemporaryFolder data;
  const testkit::TemporaryFolder folder;
  const testkit::LifePipe life(folder / "life");
  const std::string name = "held-" + std::to_string(::getpid());
  Holder holder(data, folder, name);
  for (const char* const file : {"a", "b"}) {
    testkit::waitFor("the processes of a worker", [&] { return std::filesystem::exists(folder / file); });
  }
  EXPECT_TRUE(life.isHeld());
  EXPECT_GE(processesWith(folder.path().string()).size(), 9U) << "the holder, and four processes of each worker";
  EXPECT_EQ(processesWith("jobq-guard" + std::string(1, '\0') + name).size(), 2U);
  holder.kill();
  testkit::waitFor("all processes of the workers to end", [&] { return !life.isHeld(); });
  testkit::waitFor("no process to be left",
                   [&] { return processesWith(folder.path().string()).empty() && processesWith(name).empty(); });
}

}  // namespace
}  // namespace jobq::test
