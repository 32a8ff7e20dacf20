#include "scarce_memory.h"

#include <cstdlib>
#include <new>

namespace jobq::test {
thread_local std::size_t failsIn = 0;
}  // namespace jobq::test

// Inlined, the functions would look to GCC like malloc paired with delete. The runtime of clang's ThreadSanitizer
// defines the functions, too.
#if !JOBQ_SANITIZED_THREADS
[[gnu::noinline]] void* operator new(std::size_t size) {
  const bool fails = jobq::test::failsIn > 0 && --jobq::test::failsIn == 0;
  void* memory = fails ? nullptr : std::malloc(size == 0 ? 1 : size);
  if (memory == nullptr) throw std::bad_alloc();
  return memory;
}
[[gnu::noinline]] void operator delete(void* memory) noexcept { std::free(memory); }
void operator delete(void* memory, std::size_t) noexcept { operator delete(memory); }
#endif
