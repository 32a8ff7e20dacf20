#include "core/http/transport/heap_trimmer.h"

#include <malloc.h>

#include <algorithm>

namespace jobq {
namespace {

constexpr std::uint64_t kMuch = 16UL << 20;

}  // namespace

bool HeapTrimmer::trimIfShrunk(std::uint64_t held) noexcept {
  most_ = std::max(most_, held);
  if (most_ - held < kMuch) return false;
  most_ = held;
  ::malloc_trim(0);
  return true;
}

}  // namespace jobq
