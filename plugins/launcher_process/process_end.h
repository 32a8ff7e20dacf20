// The end of a worker's main process, and a sentence about the end.
#pragma once

#include <string>
#include <string_view>

#include "jobq/job.h"
#include "jobq/worker_launcher.h"

namespace jobq::process {

/// How a main process ended.
struct ProcessEnd {
  enum class Kind {
    exited,       ///< `value` is the exit code
    signalled,    ///< `value` is the number of the signal
    notExecuted,  ///< the program could not be started; `value` is errno
    noDirectory,  ///< the working directory could not be entered; `value` is errno
    noUser,       ///< the process could not become the user of the workers; `value` is errno
    refused,      ///< the process belongs to another user and could not be killed; `value` is errno
    unknown       ///< the guard ended without a report; `value` is its status of waitpid()
  };
  Kind kind = Kind::unknown;
  int value = 0;
};

/// Reads the report of a guard (guard/protocol.h). `guardStatus` is the guard's own status of waitpid().
ProcessEnd readEnd(std::string_view report, int guardStatus);

/// Returns the exit. `program` and `directory` are the values of the start; `lastLine` is the end of the program's
/// output, or empty.
WorkerExit exitOf(const WorkerId& worker, const ProcessEnd& end, std::string_view program, std::string_view directory,
                  std::string_view lastLine);

/// Returns the exit of a worker whose start failed; `why` is a clause.
WorkerExit failedStart(const WorkerId& worker, std::string_view why);

/// Returns the text of an error number, such as "No such file or directory".
std::string errorText(int error);

}  // namespace jobq::process
