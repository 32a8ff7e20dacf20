// The end of a worker, as its executor reports the end.
#pragma once

#include <string>

#include "core/base/result.h"

namespace jobq {

/// The reason why a worker could not start or continue.
struct WorkerFailure {
  std::string reason;
};

/// A success after Executor::stopWorker().
using WorkerEnd = Result<void, WorkerFailure>;

}  // namespace jobq
