// The findings of a simulation, and the numbers of played events.
#pragma once

#include <cstdint>
#include <functional>
#include <map>
#include <stdexcept>
#include <string>
#include <string_view>

namespace jobq::model {

/// A broken rule; ends the simulation.
class Finding : public std::logic_error {
 public:
  using std::logic_error::logic_error;
};

/// Confined to one thread.
struct Findings {
  /// Keeps a finding. The first finding counts, and the core may catch exceptions.
  void note(std::string_view what) {
    if (found.empty()) found = what;
  }

  std::string found;                                              ///< the first finding; empty without a finding
  std::map<std::string_view, std::uint64_t, std::less<>> played;  ///< for the reader of the test's output
};

}  // namespace jobq::model
