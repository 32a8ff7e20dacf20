// Returns memory that the program has not used for some seconds to the system. tcmalloc, the allocator of jobqd, keeps
// freed pages for the next allocation: a page that the system gives again costs a page fault of about 1.5 us for 4 KB.
#pragma once

#include <cstddef>
#include <limits>

#include "core/base/periodic.h"
#include "core/base/service.h"
#include "jobq/log.h"
#include "jobq/time.h"

namespace jobq {

/// The free pages of an allocator, which count as resident memory of the process. Any thread may call the functions.
struct FreePages {
  std::size_t (*bytes)() noexcept;              ///< returns their size
  void (*release)(std::size_t bytes) noexcept;  ///< returns about so many bytes of them to the system
};

/// Returns the free pages of tcmalloc. A program without tcmalloc has none.
FreePages freePages() noexcept;

/// Looks at the free pages every second. The pages that were free at each of ten looks are returned, 64 MB a second,
/// because the allocations of all threads wait meanwhile: 64 MB take a few milliseconds. tcmalloc returns an area of
/// neighbouring pages in one piece: 2 GB took 0.16 s.
class HeapKeeper final : public Service, private PeriodicTask {
 public:
  /// `clock` and `log` outlive the service.
  HeapKeeper(Clock& clock, Log& log, FreePages pages = freePages());

  void start() override { periodic_.start(); }
  void stop() override { periodic_.stop(); }

  /// Looks at the free pages once. The service's thread calls checkHeap(), and tests call checkHeap() instead of
  /// start().
  void checkHeap() noexcept;

 private:
  void run() override { checkHeap(); }

  const FreePages pages_;
  int looks_ = 0;                                                // of the current ten
  std::size_t least_ = std::numeric_limits<std::size_t>::max();  // bytes, at the current looks
  std::size_t unused_ = 0;                                       // bytes that are still to be returned
  Periodic periodic_;
};

}  // namespace jobq
