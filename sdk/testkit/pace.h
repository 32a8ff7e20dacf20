// Figures that depend on the speed of the machine. A test reports each such figure with its bound. The figure fails the
// test only if JOBQ_JUDGE_PACE=1 is set (tests/bench/pace.py, on a machine without other work). Otherwise the figure is
// printed, and the test judges countable facts: results, the order of events, processor time.
#pragma once

#include <gtest/gtest.h>
#include <time.h>

#include <chrono>
#include <cstdio>
#include <cstdlib>
#include <string>
#include <string_view>

namespace jobq::testkit {

/// Prints a real time `took` with its `bound`. If paces are judged, the test fails for a time at or above the bound.
inline void judgePace(std::string_view what, std::chrono::nanoseconds took, std::chrono::nanoseconds bound) {
  using Milliseconds = std::chrono::duration<double, std::milli>;
  const double figure = Milliseconds(took).count();
  const double most = Milliseconds(bound).count();
  std::printf("pace: %.*s: %.1f ms, bound %.0f ms\n", static_cast<int>(what.size()), what.data(), figure, most);
  const char* asked = std::getenv("JOBQ_JUDGE_PACE");
  if (asked != nullptr && std::string_view(asked) == "1") {
    EXPECT_LT(figure, most) << what;
  }
}

/// Judges the real time from its construction to a call of end().
class PaceWatch {
 public:
  void end(std::string_view what, std::chrono::nanoseconds bound) const { judgePace(what, elapsed(), bound); }
  std::chrono::nanoseconds elapsed() const { return std::chrono::steady_clock::now() - began_; }

 private:
  const std::chrono::steady_clock::time_point began_ = std::chrono::steady_clock::now();
};

/// Returns the processor time of the calling thread. Other work on the machine hardly changes the figure.
inline std::chrono::nanoseconds threadProcessorTime() {
  timespec time{};
  clock_gettime(CLOCK_THREAD_CPUTIME_ID, &time);
  return std::chrono::seconds(time.tv_sec) + std::chrono::nanoseconds(time.tv_nsec);
}

}  // namespace jobq::testkit
