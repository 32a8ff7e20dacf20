// A worker's process with a guard (guard/guard.cpp). The guard ends after all descendants of the worker.
#pragma once

#include <sys/types.h>

#include <filesystem>
#include <map>
#include <optional>
#include <string>
#include <variant>
#include <vector>

#include "jobq/file_descriptor.h"

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

/// One thread uses the object. The owner reads status() until the end, then calls reap(). If the object is destroyed
/// earlier, the guard kills the worker, and remains a zombie until the end of the server.
class GuardedProcess {
 public:
  /// Starts the guard, and the guard starts the program. `guard` is the path of jobq-guard. Returns the process, or
  /// errno of the failure. Throws only std::bad_alloc.
  static std::variant<GuardedProcess, int> start(const std::filesystem::path& guard, const ProcessLaunch& launch);

  /// Asks the guard to send SIGTERM to the program.
  void terminate();
  /// Asks the guard to kill the program with all descendants.
  void kill();
  /// Kills the guard: a worker of the same user may have stopped the guard. The kernel then kills the program; further
  /// processes of the worker may be left.
  void killGuard();

  /// Readable when the guard has ended: the text of guard/protocol.h, then the end of the file. Does not block.
  const FileDescriptor& status() const { return status_; }
  /// The output of the program. Does not block.
  FileDescriptor& output() { return output_; }

  /// Waits for the guard, whose status() is at its end, and returns the guard's status of waitpid().
  int reap();

 private:
  GuardedProcess() = default;

  void sendCommand(char command);

  pid_t guard_ = -1;
  FileDescriptor commands_;  // write end, in no other process: the worker ends when the server closes the end
  FileDescriptor status_;
  FileDescriptor output_;
};

}  // namespace jobq::process
