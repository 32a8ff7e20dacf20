// Memory for what a caller reads of a job. The size of a large output is known before its bytes are in memory.
#pragma once

#include <cstdint>
#include <optional>

#include "jobq/job.h"

namespace jobq {

/// The memory of one reader for outputs, chunks and log lines. The stage that answers implements it by a budget. One
/// thread at a time.
class OutputRoom {
 public:
  /// Bytes that need no room: so many for each connection are in memory at most.
  static constexpr std::uint64_t kFree = 64UL << 10;

  virtual ~OutputRoom() = default;

  /// Draws memory for `bytes` of a job and for their copy in an answer, in place of what was drawn before. Returns
  /// false if there is no room; the reader then has what it had before. A smaller number always has room.
  [[nodiscard]] virtual bool draw(std::uint64_t bytes) = 0;
};

/// A job as a reader with a room sees it.
struct FoundJob {
  std::optional<Job> job;  ///< empty if the job is absent
  bool hasRoom = true;     ///< false: `job` has no output and no progress, because there is no room for them
};

}  // namespace jobq
