#include "core/handler_process/child_process.h"

#include <fcntl.h>
#include <poll.h>
#include <signal.h>
#include <spawn.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cerrno>
#include <string_view>
#include <system_error>
#include <vector>

namespace jobq::worker {
namespace {

constexpr const char* kProgram = "/proc/self/exe";  // the running file, also after an upgrade

[[noreturn]] void fail(int error, const char* what) { throw std::system_error(error, std::generic_category(), what); }

/// The settings of posix_spawn(). A terminal or a supervisor may signal all processes, and the worker alone decides
/// about the jobs. SIGTERM, SIGINT and SIGHUP are therefore blocked until surviveSignals().
class ChildPlan {
 public:
  explicit ChildPlan(int socket) {
    ::posix_spawn_file_actions_init(&actions_);
    ::posix_spawnattr_init(&attributes_);
    sigset_t signals;
    sigemptyset(&signals);
    for (const int signal : {SIGTERM, SIGINT, SIGHUP}) sigaddset(&signals, signal);
    ::posix_spawnattr_setsigmask(&attributes_, &signals);
    ::posix_spawnattr_setflags(&attributes_, POSIX_SPAWN_SETPGROUP | POSIX_SPAWN_SETSIGMASK);
    ::posix_spawnattr_setpgroup(&attributes_, 0);
    ::posix_spawn_file_actions_addopen(&actions_, STDIN_FILENO, "/dev/null", O_RDONLY, 0);
    ::posix_spawn_file_actions_adddup2(&actions_, socket, kHandlerSocket);
    ::posix_spawn_file_actions_addclosefrom_np(&actions_, kHandlerSocket + 1);
  }
  ~ChildPlan() {
    ::posix_spawn_file_actions_destroy(&actions_);
    ::posix_spawnattr_destroy(&attributes_);
  }
  ChildPlan(const ChildPlan&) = delete;
  ChildPlan& operator=(const ChildPlan&) = delete;

  /// Returns 0 or the error.
  int run(pid_t& process) {
    std::string name = "jobq-worker";
    std::string only = kHandlerArgument;
    char* arguments[] = {name.data(), only.data(), nullptr};
    std::vector<char*> environment;
    for (char** at = environ; *at != nullptr; ++at) {
      const std::string_view variable = *at;
      if (!variable.starts_with("JOBQ_KEY=") && !variable.starts_with("RUNPOD_AI_API_KEY=")) environment.push_back(*at);
    }
    environment.push_back(nullptr);
    return ::posix_spawn(&process, kProgram, &actions_, &attributes_, arguments, environment.data());
  }

 private:
  posix_spawn_file_actions_t actions_{};
  posix_spawnattr_t attributes_{};
};

std::string describe(int status) {
  if (WIFEXITED(status)) return "exit code " + std::to_string(WEXITSTATUS(status));
  const char* const name = ::sigabbrev_np(WTERMSIG(status));
  return name == nullptr ? "signal " + std::to_string(WTERMSIG(status)) : std::string("SIG") + name;
}

/// Blocks until the descriptor is readable, or for `time`.
void awaitReadable(int descriptor, Millis time) {
  pollfd waiting{descriptor, POLLIN, 0};
  (void)::poll(&waiting, 1, static_cast<int>(time.count()));
}

}  // namespace

ChildProcess::ChildProcess() {
  int ends[2];
  if (::socketpair(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0, ends) != 0) fail(errno, "no socket can be made");
  socket_ = FileDescriptor(ends[0]);
  const FileDescriptor low(ends[1]);
  // dup2() would keep the flag to close the descriptor if the number were the same already.
  const FileDescriptor theirs(::fcntl(low.number(), F_DUPFD_CLOEXEC, kHandlerSocket + 1));
  if (!theirs.isOpen()) fail(errno, "no socket can be made");
  if (::fcntl(socket_.number(), F_SETFL, O_NONBLOCK) != 0) fail(errno, "no socket can be made");
  ChildPlan plan(theirs.number());
  if (const int error = plan.run(process_); error != 0) fail(error, "no process can be started");
  ended_ = FileDescriptor(static_cast<int>(::syscall(SYS_pidfd_open, process_, 0)));
}

std::string ChildProcess::end(Millis grace) {
  if (process_ < 0) return description_;
  socket_.close();
  if (grace > Millis(0)) awaitReadable(ended_.number(), grace);
  // The number of the group is the number of the first process, which is not reaped yet.
  ::kill(-process_, SIGKILL);
  int status = 0;
  while (::waitpid(process_, &status, 0) < 0 && errno == EINTR) continue;
  process_ = -1;
  ended_.close();
  return description_ = describe(status);
}

}  // namespace jobq::worker
