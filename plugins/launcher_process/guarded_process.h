// A worker's process with its guard (guard/guard.cpp), which ends with all descendants of the worker.
#pragma once

#include <sys/types.h>

#include <filesystem>
#include <map>
#include <optional>
#include <string>
#include <variant>
#include <vector>

#include "descriptor.h"

namespace jobq::process {

/// A program to start.
struct ProcessLaunch {
  std::string name;                                ///< shown by ps as the argument of the guard
  std::filesystem::path directory;                 ///< working directory
  std::string user;                                ///< numbers as of userNumbersOf(); empty: the user of the server
  std::vector<std::string> arguments;              ///< program and arguments; a program without '/' is searched in PATH
  std::map<std::string, std::string> environment;  ///< the whole environment
};

/// Returns a clause if a text of the launch has a NUL or a variable has no valid name, because no process can get such
/// texts. Otherwise no value.
std::optional<std::string> textFaultOf(const ProcessLaunch& launch);

/// One thread uses the object. Its owner reads status() until the end, then calls reap(). If the object is destroyed
/// earlier, the guard kills the worker, and remains a zombie until the end of this process.
class GuardedProcess {
 public:
  /// Starts the guard, which starts the program. `guard` is the path of jobq-guard. Returns the process, or errno of
  /// the failure. Throws only std::bad_alloc.
  static std::variant<GuardedProcess, int> start(const std::filesystem::path& guard, const ProcessLaunch& launch);

  /// Asks the guard to send SIGTERM to the program.
  void terminate();
  /// Asks the guard to kill the program with all of its descendants.
  void kill();
  /// Kills the guard, which a worker of the same user may have stopped. The kernel kills the program with it; other
  /// processes of the worker may be left behind.
  void killGuard();

  /// Readable when the guard has ended: the text of guard/protocol.h, then the end of the file. Does not block.
  const Descriptor& status() const { return status_; }
  /// The output of the program. Does not block.
  Descriptor& output() { return output_; }

  /// Waits for the guard, whose status() is at its end, and returns the guard's status of waitpid().
  int reap();

 private:
  GuardedProcess() = default;

  void sendCommand(char command);

  pid_t guard_ = -1;
  Descriptor commands_;  // write end, in no other process: its end ends the worker
  Descriptor status_;
  Descriptor output_;
};

}  // namespace jobq::process
