// Memory for the part of a job that a caller reads. The size of a large output is known before its bytes are in memory.
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

  /// Draws memory for `bytes` of a job and for the copy in an answer, in place of the memory drawn before. Returns
  /// false and changes nothing if there is no room. A smaller number always has room.
  [[nodiscard]] virtual bool draw(std::uint64_t bytes) = 0;
};

/// The room of a reader that needs no large output.
class NoOutputRoom final : public OutputRoom {
 public:
  [[nodiscard]] bool draw(std::uint64_t bytes) override { return bytes <= kFree; }
};

/// A job as a reader with a room sees it.
struct FoundJob {
  std::optional<Job> job;  ///< empty if the job is absent
  bool hasRoom = true;     ///< false: `job` is without output and progress, for lack of room
};

}  // namespace jobq
