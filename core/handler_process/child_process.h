// A process of the same program for a handler.
#pragma once

#include <sys/types.h>

#include <string>

#include "jobq/file_descriptor.h"
#include "jobq/time.h"

namespace jobq::worker {

/// The only argument of such a process.
inline constexpr const char* kHandlerArgument = "--handler-process";
/// The socket's number in the process. The process has no other descriptor of the worker, besides output and errors.
inline constexpr int kHandlerSocket = 3;

/// One thread makes, uses and deletes the object: the process is killed when the thread ends, also by a kill of the
/// worker.
class ChildProcess {
 public:
  /// Starts the process, in a process group of its own, with the environment of the worker but without its keys. Throws
  /// std::system_error.
  ChildProcess();
  /// Ends the process, as end() does.
  ~ChildProcess() { (void)end(kEndTime); }
  ChildProcess(const ChildProcess&) = delete;
  ChildProcess& operator=(const ChildProcess&) = delete;

  /// The worker's end of the socket. Does not block.
  int socket() const { return socket_.number(); }
  /// Readable once the process has ended; -1 if the system cannot tell.
  int ended() const { return ended_.number(); }

  /// Closes the socket, which asks an idle process to end, and kills the process and the programs that it has started
  /// and left after `grace`. Returns the kind of the end, such as "exit code 3" or "SIGSEGV". A second call returns the
  /// same text.
  std::string end(Millis grace);

 private:
  static constexpr Millis kEndTime{1'000};

  FileDescriptor socket_;
  FileDescriptor ended_;
  pid_t process_ = -1;
  std::string description_;
};

}  // namespace jobq::worker
