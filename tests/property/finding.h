// The result of a simulation that has found a broken rule.
#pragma once

#include <stdexcept>

namespace jobq::model {

/// A broken rule; ends the simulation.
class Finding : public std::logic_error {
 public:
  using std::logic_error::logic_error;
};

}  // namespace jobq::model
