#include "core/process/heap_keeper.h"

#include <algorithm>
#include <utility>

// The functions are declared in gperftools/malloc_extension_c.h. Their addresses are null in a program without
// tcmalloc, such as a build with a sanitizer.
extern "C" {
__attribute__((weak)) int MallocExtension_GetNumericProperty(const char* property, std::size_t* value);
__attribute__((weak)) void MallocExtension_ReleaseToSystem(std::size_t bytes);
}

namespace jobq {
namespace {

constexpr Millis kLookInterval{1'000};
constexpr int kLooks = 10;
constexpr std::size_t kFew = 1UL << 20;  // bytes that are kept
constexpr std::size_t kMostAtOnce = 64UL << 20;
constexpr int kMostCalls = 1'000;

std::size_t freeBytes() noexcept {
  std::size_t bytes = 0;
  if (MallocExtension_GetNumericProperty != nullptr) {
    MallocExtension_GetNumericProperty("tcmalloc.pageheap_free_bytes", &bytes);
  }
  return bytes;
}

void releaseBytes(std::size_t bytes) noexcept {
  if (MallocExtension_ReleaseToSystem != nullptr) MallocExtension_ReleaseToSystem(bytes);
}

}  // namespace

FreePages freePages() noexcept { return {freeBytes, releaseBytes}; }

HeapKeeper::HeapKeeper(Clock& clock, Log& log, FreePages pages)
    : pages_(pages), periodic_("heap", clock, log, kLookInterval, *this) {}

void HeapKeeper::checkHeap() noexcept {
  const std::size_t free = pages_.bytes();
  least_ = std::min(least_, free);
  if (++looks_ == kLooks) {
    unused_ = std::exchange(least_, free);
    looks_ = 0;
  }
  unused_ = std::min(unused_, free);
  if (unused_ <= kFew) return;
  const std::size_t part = std::min(unused_ - kFew, kMostAtOnce);
  // tcmalloc returns whole areas. If tcmalloc has returned more than the requested bytes, the surplus counts against
  // later calls, which then do nothing.
  for (int calls = 0; calls < kMostCalls; ++calls) {
    const std::size_t before = pages_.bytes();
    pages_.release(part);
    if (pages_.bytes() < before) break;
  }
  unused_ -= part;
}

}  // namespace jobq
