// Stops of runs whose jobs have ended early: by a cancel of a caller, or because the storage refuses a running job.
#pragma once

#include "jobq/job.h"

namespace jobq {

/// Stops runs. Any thread may call.
class RunStopper {
 public:
  virtual ~RunStopper() = default;

  /// Fires the stop token of the attempt if the attempt runs on this node.
  virtual void stopRun(const LeaseRef& lease) = 0;
};

}  // namespace jobq
