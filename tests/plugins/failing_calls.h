// Calls that fail on demand: the functions of the test program precede those of the system and of libcurl.
#pragma once

#include <atomic>

namespace jobq::test {

/// The error number of each connect() of the process; 0 means that the system is asked.
extern std::atomic<int> connectFailsWith;

/// Whether each curl_multi_add_handle() of the program finds no memory.
extern std::atomic<bool> addingFails;

}  // namespace jobq::test
