// Gives memory back to the system after a crowd has left: the allocator keeps small blocks for the process otherwise.
#pragma once

#include <cstdint>

namespace jobq {

/// One thread.
class FreedMemory {
 public:
  /// Takes note that `held` bytes are in use, a rough figure. When much less is in use than was at some time since the
  /// memory last went back, it goes back now, which takes some milliseconds. Returns whether it did.
  bool note(std::uint64_t held) noexcept;

 private:
  std::uint64_t most_ = 0;  // in use since the memory last went back
};

}  // namespace jobq
