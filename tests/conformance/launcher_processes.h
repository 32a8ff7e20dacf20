// The processes of the machine, as tests of launcher_process see them.
#pragma once

#include <sys/types.h>

#include <filesystem>
#include <fstream>
#include <sstream>
#include <stdexcept>
#include <string>
#include <system_error>
#include <vector>

namespace jobq::test {

/// Returns the numbers of the processes whose arguments or environment have `text`. Ended processes have neither.
inline std::vector<pid_t> processesWith(const std::string& text) {
  std::vector<pid_t> found;
  std::error_code ignored;
  for (std::filesystem::directory_iterator entry("/proc", ignored), last; entry != last; entry.increment(ignored)) {
    const std::string name = entry->path().filename().string();
    if (name.find_first_not_of("0123456789") != std::string::npos) continue;
    for (const char* const file : {"cmdline", "environ"}) {
      std::ostringstream content;
      content << std::ifstream(entry->path() / file, std::ios::binary).rdbuf();  // notes an error without an exception
      if (content.str().find(text) == std::string::npos) continue;
      found.push_back(static_cast<pid_t>(std::stoi(name)));
      break;
    }
  }
  return found;
}

/// Returns the guard of the worker. Throws std::runtime_error if there is none: a number below 1 would send a signal to
/// many processes.
inline pid_t guardOf(const std::string& worker) {
  const std::vector<pid_t> found = processesWith("jobq-guard" + std::string(1, '\0') + worker);
  if (found.size() != 1 || found.front() <= 1) throw std::runtime_error("the worker " + worker + " has no guard");
  return found.front();
}

}  // namespace jobq::test
