// Calls that fail on demand: the functions of the test program precede those of the system.
#pragma once

#include <atomic>

namespace jobq::test {

/// The error number of each connect() of the process; 0 means that the system is asked.
extern std::atomic<int> connectFailsWith;

}  // namespace jobq::test
