// The findings of a simulation of nodes, and the numbers of played events.
#pragma once

#include <cstdint>
#include <string>

namespace jobq::model {

/// Numbers for the reader of the test's output.
struct Played {
  std::uint64_t runs = 0;
  std::uint64_t results = 0;
  std::uint64_t lost = 0;      ///< attempts whose life has ended
  std::uint64_t timedOut = 0;  ///< attempts
  std::uint64_t released = 0;  ///< attempts that went back to the queue uncounted
  std::uint64_t fences = 0;
  std::uint64_t pauses = 0;
  std::uint64_t crashes = 0;
  std::uint64_t faults = 0;             ///< calls with a fault of their own
  std::uint64_t excused = 0;            ///< moments in which one of two handlers of a job was excused
  std::uint64_t answered = 0;           ///< waiting callers
  std::uint64_t answeredElsewhere = 0;  ///< waiting callers whose job ran at another node

  Played& operator+=(const Played& other);
};

std::string text(const Played& played);

/// Confined to one thread.
struct NodesFindings {
  /// Keeps a finding. The first finding counts, and the core may catch exceptions.
  void note(const std::string& what) {
    if (found.empty()) found = what;
  }

  std::string found;  ///< the first finding; empty without a finding
  Played played;
};

}  // namespace jobq::model
