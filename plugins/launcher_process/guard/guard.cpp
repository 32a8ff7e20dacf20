// jobq-guard: starts one worker and ends all processes of the worker. The launcher starts one guard for each worker
// (plugins/launcher_process/guard/protocol.h). `jobq-guard -- PROGRAM [ARGUMENT]...` does the same for a worker that
// another program starts: the signals of the guard go to the worker, and the guard ends with the worker's exit code.
//
// The guard is a subreaper and adopts the orphans among the descendants of the worker: a process without a living
// parent becomes a child of the guard, also after leaving the session. When the worker's main process ends, or the
// launcher asks, or the server dies, the guard kills its children until no child is left.
#include <dirent.h>
#include <fcntl.h>
#include <grp.h>
#include <poll.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/signalfd.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cerrno>
#include <csignal>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <vector>

#include "protocol.h"

namespace {

using namespace jobq::guard;

constexpr int kUsage = 2;

/// The worker as described by the launcher. The memory of the texts is never freed.
struct Launch {
  char* directory = nullptr;
  char* user = nullptr;
  std::vector<char*> arguments;    // ends with a null pointer
  std::vector<char*> environment;  // ends with a null pointer
};

/// The main process of the worker, a child of the guard.
struct MainProcess {
  pid_t pid = -1;
  int faults = -1;     // read end of a pipe: the child writes a Fault if the program cannot be started
  siginfo_t end = {};  // of waitid(): si_pid is 0 until the process has ended
};

/// The reason of a failed start: the word for the report, and errno.
struct Fault {
  char word[8];
  int error;
};

/// The value is true for `jobq-guard -- PROGRAM`: nothing reads a report, and commands come as signals.
bool isCommandLine = false;

[[noreturn]] void exitCommandLine(const char* word, int value) {
  constexpr int kSignalBase = 128;  // the convention of shells
  constexpr int kNotStarted = 127;
  if (std::strcmp(word, "exit") == 0) ::_exit(value);
  if (std::strcmp(word, "signal") == 0) ::_exit(kSignalBase + value);
  std::fprintf(stderr, "jobq-guard: the program could not be started or killed: %s\n", std::strerror(value));
  ::_exit(kNotStarted);
}

[[noreturn]] void exitWith(const char* word, int value) {
  if (isCommandLine) exitCommandLine(word, value);
  char text[64];
  const int length = std::snprintf(text, sizeof text, "%s %d", word, value);
  // Without a reader the server has died, and no receiver of the text is left.
  const ssize_t written = ::write(kStatus, text, static_cast<std::size_t>(length));
  ::_exit(written == length ? 0 : 1);
}

void closeOtherDescriptors() {
  constexpr unsigned int kFirst = kLaunch + 1;
  if (::syscall(SYS_close_range, kFirst, ~0U, 0) == 0) return;
  const long most = ::sysconf(_SC_OPEN_MAX);  // a kernel before 5.9
  for (int number = kFirst; number < most; ++number) ::close(number);
}

Launch readLaunch() {
  struct stat file {};
  if (::fstat(kLaunch, &file) != 0 || file.st_size == 0) exitWith("exec", EINVAL);
  const auto size = static_cast<std::size_t>(file.st_size);
  void* const memory = ::mmap(nullptr, size, PROT_READ | PROT_WRITE, MAP_PRIVATE, kLaunch, 0);
  if (memory == MAP_FAILED) exitWith("exec", errno);
  ::close(kLaunch);
  char* text = static_cast<char*>(memory);
  char* const end = text + size;
  const auto next = [&text] {
    char* const found = text;
    text += std::strlen(found) + 1;
    return found;
  };
  Launch launch;
  const int count = std::atoi(next());
  launch.directory = next();
  launch.user = next();
  for (int i = 0; i < count; ++i) launch.arguments.push_back(next());
  launch.arguments.push_back(nullptr);
  while (text < end) launch.environment.push_back(next());
  launch.environment.push_back(nullptr);
  return launch;
}

/// Returns false if the process could not become the user.
bool becomeUser(char* numbers) {
  if (*numbers == '\0') return true;
  const auto next = [&numbers] { return static_cast<unsigned int>(std::strtoul(numbers, &numbers, 10)); };
  const uid_t user = next();
  const gid_t group = next();
  std::vector<gid_t> groups;
  while (*numbers != '\0') groups.push_back(next());
  ::prctl(PR_CAP_AMBIENT, PR_CAP_AMBIENT_CLEAR_ALL, 0, 0, 0);
  return ::setgroups(groups.size(), groups.data()) == 0 && ::setresgid(group, group, group) == 0 &&
         ::setresuid(user, user, user) == 0;
}

[[noreturn]] void failToBecome(const char* word, int faults) {
  Fault fault{};
  fault.error = errno;
  std::snprintf(fault.word, sizeof fault.word, "%s", word);
  if (::write(faults, &fault, sizeof fault) != sizeof fault) ::_exit(1);
  ::_exit(127);
}

[[noreturn]] void becomeWorker(const Launch& launch, pid_t guard, int faults) {
  ::setsid();  // no signal of the server's terminal reaches the worker
  if (!becomeUser(launch.user)) failToBecome("user", faults);
  ::prctl(PR_SET_PDEATHSIG, SIGKILL);  // a change of the user clears the signal, so the call comes after the change
  if (::getppid() != guard) ::_exit(1);
  if (::chdir(launch.directory) != 0) failToBecome("chdir", faults);
  sigset_t none;
  sigemptyset(&none);
  ::sigprocmask(SIG_SETMASK, &none, nullptr);
  environ = const_cast<char**>(launch.environment.data());
  ::execvp(launch.arguments[0], launch.arguments.data());  // searches PATH of the new environment
  failToBecome("exec", faults);
}

MainProcess startWorker(const Launch& launch) {
  int faults[2];
  if (::pipe2(faults, O_CLOEXEC | O_NONBLOCK) != 0) exitWith("exec", errno);
  const pid_t guard = ::getpid();
  MainProcess main;
  main.pid = ::fork();
  if (main.pid < 0) exitWith("exec", errno);
  if (main.pid == 0) becomeWorker(launch, guard, faults[1]);
  ::close(faults[1]);
  main.faults = faults[0];
  return main;
}

/// Reaps ended children. The main process is noted and not reaped, so no new process group can get the number. Returns
/// false if the guard has no child.
bool reapOthers(MainProcess& main) {
  while (true) {
    siginfo_t ended{};
    if (::waitid(P_ALL, 0, &ended, WEXITED | WNOHANG | WNOWAIT) != 0) return errno == EINTR;
    if (ended.si_pid == 0) return true;
    if (ended.si_pid == main.pid && main.end.si_pid == 0) {
      main.end = ended;
      return true;
    }
    ::waitpid(ended.si_pid, nullptr, WNOHANG);
  }
}

/// Returns the parent of a process, or -1 if the process has gone.
pid_t parentOf(const char* pid) {
  char path[64];
  std::snprintf(path, sizeof path, "/proc/%.20s/stat", pid);
  const int file = ::open(path, O_RDONLY | O_CLOEXEC);
  if (file < 0) return -1;
  char text[512];
  const ssize_t length = ::read(file, text, sizeof text - 1);
  ::close(file);
  if (length <= 0) return -1;
  text[length] = '\0';
  // The name of the program, in brackets, may have brackets and blanks. The state and the parent follow.
  const char* const behind = std::strrchr(text, ')');
  int parent = -1;
  if (behind == nullptr || std::sscanf(behind, ") %*c %d", &parent) != 1) return -1;
  return parent;
}

/// Kills all children. Only the guard can reap a child, so a number found here remains the child's. Returns false if
/// there are children and all belong to another user, so the guard may not kill any.
bool killChildren() {
  DIR* const processes = ::opendir("/proc");
  if (processes == nullptr) return true;
  bool isRefused = false;
  bool isAnyKilled = false;
  const pid_t self = ::getpid();
  while (const dirent* const entry = ::readdir(processes)) {
    const int pid = std::atoi(entry->d_name);
    if (pid <= 0 || parentOf(entry->d_name) != self) continue;
    (::kill(pid, SIGKILL) == 0 ? isAnyKilled : isRefused) = true;
  }
  ::closedir(processes);
  return isAnyKilled || !isRefused;
}

/// Waits until a child ends, at most for `milliseconds`.
void awaitChild(int signals, int milliseconds) {
  pollfd ready{signals, POLLIN, 0};
  signalfd_siginfo signal{};
  if (::poll(&ready, 1, milliseconds) > 0 && ::read(signals, &signal, sizeof signal) < 0) return;
}

/// Returns when the guard has no child, or may not kill the remaining children. The guard adopts the children of a
/// killed child, so each round may find more.
void killAll(MainProcess& main, int signals) {
  constexpr int kLongestPause = 50;  // milliseconds
  constexpr int kMostRefusals = 20;  // rounds in which no child could be killed: a second
  ::kill(main.pid, SIGKILL);
  ::kill(-main.pid, SIGKILL);  // the main process is not reaped yet, so the number is still the group's
  int refusals = 0;
  for (int pause = 1; reapOthers(main); pause = pause < kLongestPause ? pause * 2 : pause) {
    refusals = killChildren() ? 0 : refusals + 1;
    if (refusals == kMostRefusals) return;
    if (main.end.si_pid != 0) ::waitpid(main.pid, nullptr, WNOHANG);
    awaitChild(signals, pause);
  }
}

/// Carries out the commands of the launcher. Returns false if the worker has to be killed.
bool followCommands(const MainProcess& main) {
  char commands[64];
  const ssize_t length = ::read(kCommands, commands, sizeof commands);
  if (length == 0) return false;
  for (ssize_t i = 0; i < length; ++i) {
    if (commands[i] == kKill) return false;
    if (commands[i] == kTerminate) ::kill(main.pid, SIGTERM);
  }
  return true;
}

/// Passes the waiting signals on to the worker, except the signals about ended children.
void passSignals(const MainProcess& main, int signals) {
  signalfd_siginfo signal{};
  while (::read(signals, &signal, sizeof signal) == sizeof signal) {
    if (signal.ssi_signo != SIGCHLD) ::kill(main.pid, static_cast<int>(signal.ssi_signo));
  }
}

/// Returns when the worker's main process has ended, or when the worker has to be killed.
void watchWorker(MainProcess& main, int signals) {
  while (main.end.si_pid == 0) {
    pollfd ready[] = {{isCommandLine ? -1 : kCommands, POLLIN, 0}, {signals, POLLIN, 0}};
    if (::poll(ready, 2, -1) < 0) continue;
    if (ready[0].revents != 0 && !followCommands(main)) return;
    if (ready[1].revents == 0) continue;
    passSignals(main, signals);
    reapOthers(main);
  }
}

/// Returns a descriptor for the signals about children, and on a command line also for the signals to pass on.
int openSignals() {
  sigset_t wanted;
  sigemptyset(&wanted);
  sigaddset(&wanted, SIGCHLD);
  if (isCommandLine) {
    for (const int number : {SIGTERM, SIGINT, SIGHUP, SIGQUIT, SIGUSR1, SIGUSR2}) sigaddset(&wanted, number);
  }
  return ::signalfd(-1, &wanted, SFD_CLOEXEC | SFD_NONBLOCK);
}

/// Returns the launch of a program with the folder, the user and the variables of the guard. `words` ends with a null
/// pointer, as do the arguments of main().
Launch launchOf(char** words) {
  static char here[] = ".";
  static char sameUser[] = "";
  Launch launch{here, sameUser, {}, {}};
  for (char** word = words; *word != nullptr; ++word) launch.arguments.push_back(*word);
  launch.arguments.push_back(nullptr);
  for (char** variable = environ; *variable != nullptr; ++variable) launch.environment.push_back(*variable);
  launch.environment.push_back(nullptr);
  return launch;
}

[[noreturn]] void reportEnd(const MainProcess& main) {
  Fault fault{};
  if (::read(main.faults, &fault, sizeof fault) == sizeof fault) exitWith(fault.word, fault.error);
  if (main.end.si_pid == 0) exitWith("refused", EPERM);
  exitWith(main.end.si_code == CLD_EXITED ? "exit" : "signal", main.end.si_status);
}

}  // namespace

int main(int count, char** arguments) {
  isCommandLine = count > 1 && std::strcmp(arguments[1], "--") == 0;
  if (isCommandLine && count == 2) {
    std::fputs("jobq-guard: name a program: jobq-guard -- PROGRAM [ARGUMENT]...\n", stderr);
    return kUsage;
  }
  // With a launcher, signals of a terminal, of the administrator or of systemd are for the server, which ends workers.
  sigset_t all;
  sigfillset(&all);
  ::sigprocmask(SIG_SETMASK, &all, nullptr);
  if (!isCommandLine) {
    closeOtherDescriptors();
    for (const int number : {kCommands, kStatus, kLaunch}) ::fcntl(number, F_SETFD, FD_CLOEXEC);
  }
  ::prctl(PR_SET_CHILD_SUBREAPER, 1);
  const int signals = openSignals();
  if (signals < 0) exitWith("exec", errno);
  const Launch launch = isCommandLine ? launchOf(arguments + 2) : readLaunch();
  MainProcess main = startWorker(launch);
  watchWorker(main, signals);
  killAll(main, signals);
  reportEnd(main);
}
