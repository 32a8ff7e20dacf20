// The program of the process of a handler of jobq-worker.
#pragma once

namespace jobq::worker {

/// Makes the handler that the worker names on the socket `kHandlerSocket`, and runs the jobs of the worker until the
/// socket is closed. Returns the exit code. The process is killed when the worker ends.
int runHandlerChild();

}  // namespace jobq::worker
