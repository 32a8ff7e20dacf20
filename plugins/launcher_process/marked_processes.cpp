#include "marked_processes.h"

#include <fcntl.h>
#include <signal.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <chrono>
#include <cstddef>
#include <filesystem>
#include <string>
#include <system_error>
#include <thread>

#include "jobq/file_descriptor.h"
#include "worker_environment.h"

namespace jobq::process {

namespace {

bool isNumber(const std::string& name) {
  return !name.empty() && std::all_of(name.begin(), name.end(), [](char c) { return c >= '0' && c <= '9'; });
}

/// Returns the environment with which the process was started, between two NUL characters. A part that cannot be read
/// is missing: the process may belong to another user, or end meanwhile.
std::string startVariables(const std::filesystem::path& process) {
  std::string text(1, '\0');
  const FileDescriptor file(::open((process / "environ").c_str(), O_RDONLY | O_CLOEXEC));
  std::array<char, 16 * 1024> part;
  for (ssize_t length = 1; file.isOpen() && length > 0;) {
    length = ::read(file.number(), part.data(), part.size());
    if (length > 0) text.append(part.data(), static_cast<std::size_t>(length));
  }
  return text + '\0';
}

/// Kills the process if it has the mark. Returns true if a signal was sent. The descriptor is opened before the
/// environment is read, so a later process with the same number is not killed.
bool killIfMarked(const std::filesystem::path& process, const std::string& variable) {
  const pid_t number = std::stoi(process.filename().string());
  const FileDescriptor handle(static_cast<int>(::syscall(SYS_pidfd_open, number, 0)));
  if (!handle.isOpen() || startVariables(process).find(variable) == std::string::npos) return false;
  return ::syscall(SYS_pidfd_send_signal, handle.number(), SIGKILL, nullptr, 0) == 0;
}

/// Kills the processes with the mark. Returns true if a signal was sent to any.
bool killOnce(const std::string& variable) {
  bool isAnyKilled = false;
  std::error_code ignored;
  for (std::filesystem::directory_iterator entry("/proc", ignored), last; entry != last; entry.increment(ignored)) {
    if (isNumber(entry->path().filename().string())) isAnyKilled |= killIfMarked(entry->path(), variable);
  }
  return isAnyKilled;
}

}  // namespace

std::string markOf(const std::filesystem::path& dataDir) {
  struct stat folder {};
  if (::stat(dataDir.c_str(), &folder) != 0) return "none/";
  return std::to_string(folder.st_dev) + "-" + std::to_string(folder.st_ino) + "/";
}

void killMarked(const std::string& mark) {
  constexpr int kMostRounds = 50;
  constexpr std::chrono::milliseconds kPause{10};
  const std::string variable = '\0' + std::string(kMark) + "=" + mark;
  for (int round = 0; round < kMostRounds && killOnce(variable); ++round) std::this_thread::sleep_for(kPause);
}

}  // namespace jobq::process
