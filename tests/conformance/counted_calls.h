// Calls of the system that the test program counts: its functions precede those of the system, in the plugin too.
#pragma once

namespace jobq::testkit {

/// The calls of this thread so far.
struct CountedCalls {
  int yields = 0;  ///< of sched_yield()
  int drops = 0;   ///< of posix_fadvise() for pages that are not needed
};

const CountedCalls& countedCalls();

}  // namespace jobq::testkit
