// Returns memory to the system after many connections have closed. The allocator would otherwise keep small blocks for
// the process.
#pragma once

#include <cstdint>

namespace jobq {

/// One thread.
class HeapTrimmer {
 public:
  /// Notes that about `held` bytes are in use. If the figure is 16 MB or more below its peak since memory was last
  /// returned, calls malloc_trim, which takes some milliseconds, and returns true; otherwise returns false.
  bool trimIfShrunk(std::uint64_t held) noexcept;

 private:
  std::uint64_t most_ = 0;  // peak since memory was last returned
};

}  // namespace jobq
