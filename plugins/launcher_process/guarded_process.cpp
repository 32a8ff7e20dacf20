#include "guarded_process.h"

#include <fcntl.h>
#include <signal.h>
#include <spawn.h>
#include <sys/mman.h>
#include <sys/socket.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cerrno>
#include <cstddef>
#include <string_view>
#include <utility>

#include "guard/protocol.h"

namespace jobq::process {

namespace {

struct Pipe {
  FileDescriptor readEnd;
  FileDescriptor writeEnd;
};

/// Returns the descriptor with a number above the descriptors of the guard, so no dup2() replaces the descriptor.
FileDescriptor raised(const FileDescriptor& low) {
  constexpr int kLowest = 10;
  return FileDescriptor(::fcntl(low.number(), F_DUPFD_CLOEXEC, kLowest));
}

/// Returns the two ends, or no value and errno. No other program inherits the ends.
std::optional<Pipe> raisedPipe(const int (&ends)[2]) {
  const FileDescriptor low(ends[0]);
  const FileDescriptor other(ends[1]);
  Pipe pipe{raised(low), raised(other)};
  if (!pipe.readEnd.isOpen() || !pipe.writeEnd.isOpen()) return std::nullopt;
  return pipe;
}

std::optional<Pipe> makePipe() {
  int ends[2];
  if (::pipe2(ends, O_CLOEXEC) != 0) return std::nullopt;
  return raisedPipe(ends);
}

/// Returns a pipe for commands. A write to a socket without a reader raises no SIGPIPE.
std::optional<Pipe> makeSockets() {
  int ends[2];
  if (::socketpair(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0, ends) != 0) return std::nullopt;
  return raisedPipe(ends);
}

std::string textOf(const ProcessLaunch& launch) {
  std::string text;
  const auto add = [&text](const std::string& part) {
    text += part;
    text += '\0';
  };
  add(std::to_string(launch.arguments.size()));
  add(launch.directory.string());
  add(launch.user);
  for (const std::string& argument : launch.arguments) add(argument);
  for (const auto& [name, value] : launch.environment) add(name + "=" + value);
  return text;
}

/// Returns a file in memory with the text, or a closed descriptor and errno.
FileDescriptor fileWith(std::string_view text) {
  const FileDescriptor file(::memfd_create("jobq-worker", MFD_CLOEXEC));
  while (file.isOpen() && !text.empty()) {
    const ssize_t written = ::write(file.number(), text.data(), text.size());
    if (written < 0 && errno != EINTR) return FileDescriptor();
    if (written > 0) text.remove_prefix(static_cast<std::size_t>(written));
  }
  return raised(file);
}

/// The settings of posix_spawn() for a guard.
class SpawnPlan {
 public:
  SpawnPlan() {
    ::posix_spawn_file_actions_init(&actions_);
    ::posix_spawnattr_init(&attributes_);
    // The server ignores or blocks some signals. A program of the server starts with the default handling of signals.
    sigset_t signals;
    sigemptyset(&signals);
    ::posix_spawnattr_setsigmask(&attributes_, &signals);
    sigfillset(&signals);
    ::posix_spawnattr_setsigdefault(&attributes_, &signals);
    ::posix_spawnattr_setflags(&attributes_, POSIX_SPAWN_SETSIGMASK | POSIX_SPAWN_SETSIGDEF | POSIX_SPAWN_SETSID);
    ::posix_spawn_file_actions_addopen(&actions_, STDIN_FILENO, "/dev/null", O_RDONLY, 0);
  }
  ~SpawnPlan() {
    ::posix_spawn_file_actions_destroy(&actions_);
    ::posix_spawnattr_destroy(&attributes_);
  }
  SpawnPlan(const SpawnPlan&) = delete;
  SpawnPlan& operator=(const SpawnPlan&) = delete;

  void pass(const FileDescriptor& descriptor, int as) {
    ::posix_spawn_file_actions_adddup2(&actions_, descriptor.number(), as);
  }
  /// Returns 0 or the error.
  int run(const std::filesystem::path& program, const std::string& argument, pid_t& child) {
    std::string name = program.filename().string();
    std::string only = argument;
    char* arguments[] = {name.data(), only.data(), nullptr};
    char* environment[] = {nullptr};
    return ::posix_spawn(&child, program.c_str(), &actions_, &attributes_, arguments, environment);
  }

 private:
  posix_spawn_file_actions_t actions_{};
  posix_spawnattr_t attributes_{};
};

void unblock(const FileDescriptor& descriptor) { ::fcntl(descriptor.number(), F_SETFL, O_NONBLOCK); }

bool hasNul(const std::string& text) { return text.find('\0') != std::string::npos; }

}  // namespace

std::optional<std::string> textFaultOf(const ProcessLaunch& launch) {
  for (const std::string& argument : launch.arguments) {
    if (hasNul(argument)) return "an argument has a NUL character";
  }
  for (const auto& [name, value] : launch.environment) {
    if (name.empty() || hasNul(name) || name.find('=') != std::string::npos) {
      return "a variable's name is empty or has '=' or a NUL character";
    }
    if (hasNul(value)) return "the variable " + name + " has a NUL character";
  }
  return std::nullopt;
}

std::variant<GuardedProcess, int> GuardedProcess::start(const std::filesystem::path& guard,
                                                        const ProcessLaunch& launch) {
  std::optional<Pipe> commands = makeSockets();
  std::optional<Pipe> status = commands ? makePipe() : std::nullopt;
  std::optional<Pipe> output = status ? makePipe() : std::nullopt;
  const FileDescriptor text = output ? fileWith(textOf(launch)) : FileDescriptor();
  if (!text.isOpen()) return errno;
  SpawnPlan plan;
  plan.pass(output->writeEnd, STDOUT_FILENO);
  plan.pass(output->writeEnd, STDERR_FILENO);
  plan.pass(commands->readEnd, guard::kCommands);
  plan.pass(status->writeEnd, guard::kStatus);
  plan.pass(text, guard::kLaunch);
  GuardedProcess process;
  if (const int error = plan.run(guard, launch.name, process.guard_); error != 0) return error;
  process.commands_ = std::move(commands->writeEnd);
  process.status_ = std::move(status->readEnd);
  process.output_ = std::move(output->readEnd);
  unblock(process.status_);
  unblock(process.output_);
  return process;
}

void GuardedProcess::terminate() { sendCommand(guard::kTerminate); }

void GuardedProcess::kill() { sendCommand(guard::kKill); }

// The guard is not reaped yet, so no other process has the number.
void GuardedProcess::killGuard() { ::kill(guard_, SIGKILL); }

void GuardedProcess::sendCommand(char command) {
  // Fails only if the guard has ended, or has thousands of commands to read.
  (void)::send(commands_.number(), &command, 1, MSG_NOSIGNAL | MSG_DONTWAIT);
}

int GuardedProcess::reap() {
  int status = 0;
  while (::waitpid(guard_, &status, 0) < 0 && errno == EINTR) continue;
  return status;
}

}  // namespace jobq::process
