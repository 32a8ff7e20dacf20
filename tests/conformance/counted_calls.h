// Calls of the system, counted by the test program: functions of the program precede the functions of the system, in
// the plugin too.
#pragma once

namespace jobq::testkit {

/// The calls of this thread so far.
struct CountedCalls {
  int yields = 0;  ///< of sched_yield()
  int drops = 0;   ///< calls of posix_fadvise() for unneeded pages
};

const CountedCalls& countedCalls();

}  // namespace jobq::testkit
