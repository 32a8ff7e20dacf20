// Allocations that fail on demand, for a test program of its own: the program's operator new is replaced.
#pragma once

#include <cstddef>

namespace jobq::test {

/// The number of the allocation of this thread that throws std::bad_alloc, counted from the next one; 0 means none. The
/// allocations after it succeed. A program for ThreadSanitizer ignores the number.
extern thread_local std::size_t failsIn;

}  // namespace jobq::test
