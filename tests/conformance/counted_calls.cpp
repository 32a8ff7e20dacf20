#include "counted_calls.h"

#include <dlfcn.h>
#include <fcntl.h>
#include <sched.h>

namespace jobq::testkit {
namespace {

thread_local CountedCalls counted;

}  // namespace

const CountedCalls& countedCalls() { return counted; }

}  // namespace jobq::testkit

extern "C" __attribute__((visibility("default"))) int sched_yield() noexcept {
  ++jobq::testkit::counted.yields;
  static const auto systems = reinterpret_cast<int (*)()>(dlsym(RTLD_NEXT, "sched_yield"));
  return systems();
}

extern "C" __attribute__((visibility("default"))) int posix_fadvise(int file, off_t begin, off_t bytes,
                                                                    int advice) noexcept {
  if (advice == POSIX_FADV_DONTNEED) ++jobq::testkit::counted.drops;
  static const auto systems = reinterpret_cast<int (*)(int, off_t, off_t, int)>(dlsym(RTLD_NEXT, "posix_fadvise"));
  return systems(file, begin, bytes, advice);
}
