// The end of jobs whose execution timeout is over.
#pragma once

namespace jobq {

/// Any thread may call, several at once. Implemented by the Sweeper.
class OverdueJobs {
 public:
  virtual ~OverdueJobs() = default;

  /// Ends the overdue jobs in the storage and stops the handlers of those that run on this node. Returns true if work
  /// is left for later sweeps. Throws StorageError.
  virtual bool endOverdue() = 0;
};

}  // namespace jobq
