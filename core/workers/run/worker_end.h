// The end of a worker, as its executor reports the end.
#pragma once

#include <exception>
#include <string>

#include "core/base/result.h"

namespace jobq {

/// The reason why a worker could not start or continue.
struct WorkerFailure {
  std::string reason;
};

/// Returns the failure of a worker that an exception has ended. The reason is never empty.
inline WorkerFailure failureOf(const std::exception& error) {
  const std::string reason = error.what();
  return {reason.empty() ? "the handler gave no reason" : reason};
}

/// The end of a worker: a success after Executor::stopWorker(), the reason otherwise.
using WorkerEnd = Result<void, WorkerFailure>;

}  // namespace jobq
