// The allocation functions of the program and of the plugins. Blocks of 2 MB and more, such as the bodies of large
// jobs, get huge pages where the system has huge pages (transparent_hugepage = madvise or always): a block of 20 MB
// costs 5,120 page faults of about 1.5 us otherwise, which was two thirds of the time of a job that echoes 20 MB. glibc
// mostly makes a separate mapping for such a block (`returnLargeBlocks` in core/main.cpp). Other blocks stay unchanged,
// because small blocks beside them would live on huge pages later.
//
// Linked into programs only. Sanitizers bring other allocation functions.
#include <sys/mman.h>

#include <cstddef>
#include <cstdint>
#include <cstdlib>
#include <new>

namespace {

constexpr std::size_t kLarge = 2UL << 20;  // the size of a huge page
constexpr std::uintptr_t kPage = 4096;

/// Returns whether the block is a separate mapping: glibc puts such a block 16 bytes behind the start of a page, where
/// other blocks lie in 1 of 256 cases.
bool isMapping(const void* block) noexcept { return reinterpret_cast<std::uintptr_t>(block) % kPage == 16; }

/// Asks for huge pages. A refusal changes nothing: the block has small pages then.
void useHugePages(void* block, std::size_t size) noexcept {
  if (!isMapping(block)) return;
  const auto begin = reinterpret_cast<std::uintptr_t>(block) & ~(kPage - 1);
  ::madvise(reinterpret_cast<void*>(begin), reinterpret_cast<std::uintptr_t>(block) + size - begin, MADV_HUGEPAGE);
}

}  // namespace

void* operator new(std::size_t size) {
  for (;;) {
    if (void* const block = std::malloc(size > 0 ? size : 1)) {
      if (size >= kLarge) useHugePages(block, size);
      return block;
    }
    const auto handler = std::get_new_handler();
    if (handler == nullptr) throw std::bad_alloc();
    handler();
  }
}

void operator delete(void* block) noexcept { std::free(block); }
void operator delete(void* block, std::size_t) noexcept { std::free(block); }
