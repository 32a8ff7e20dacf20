#include "marked_processes.h"

#include <signal.h>
#include <sys/syscall.h>
#include <unistd.h>

#include <algorithm>
#include <chrono>
#include <filesystem>
#include <fstream>
#include <iterator>
#include <string>
#include <system_error>
#include <thread>

#include "descriptor.h"
#include "worker_environment.h"

namespace jobq::process {

namespace {

bool isNumber(const std::string& name) {
  return !name.empty() && std::all_of(name.begin(), name.end(), [](char c) { return c >= '0' && c <= '9'; });
}

/// Returns the environment with which the process was started, between two NUL characters; empty if it is not readable.
std::string startVariables(const std::filesystem::path& process) {
  std::ifstream file(process / "environ", std::ios::binary);
  return '\0' + std::string(std::istreambuf_iterator<char>(file), {}) + '\0';
}

/// Kills the process if it has the mark. The descriptor is opened before the environment is read, so that no other
/// process with the same number is hit.
bool killIfMarked(const std::filesystem::path& process, const std::string& variable) {
  const pid_t number = std::stoi(process.filename().string());
  const Descriptor handle(static_cast<int>(::syscall(SYS_pidfd_open, number, 0)));
  if (!handle.isOpen() || startVariables(process).find(variable) == std::string::npos) return false;
  return ::syscall(SYS_pidfd_send_signal, handle.number(), SIGKILL, nullptr, 0) == 0;
}

bool killOnce(const std::string& variable) {
  bool isAnyKilled = false;
  std::error_code ignored;
  for (std::filesystem::directory_iterator entry("/proc", ignored), last; entry != last; entry.increment(ignored)) {
    if (isNumber(entry->path().filename().string())) isAnyKilled |= killIfMarked(entry->path(), variable);
  }
  return isAnyKilled;
}

}  // namespace

void killMarked(const std::string& mark) {
  constexpr int kMostRounds = 50;
  constexpr std::chrono::milliseconds kPause{10};
  const std::string variable = '\0' + std::string(kMark) + "=" + mark + '\0';
  for (int round = 0; round < kMostRounds && killOnce(variable); ++round) std::this_thread::sleep_for(kPause);
}

}  // namespace jobq::process
