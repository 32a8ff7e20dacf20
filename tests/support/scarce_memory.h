// Allocations that fail on demand, for a separate test program: the program's operator new is replaced.
#pragma once

#include <cstddef>

namespace jobq::test {

/// The number of the failing allocation of the thread, counted from the next allocation; 0 means no failure. The
/// failing allocation throws std::bad_alloc, and later allocations succeed. A program for ThreadSanitizer ignores the
/// number.
extern thread_local std::size_t failsIn;

}  // namespace jobq::test
