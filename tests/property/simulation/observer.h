// Shows each step of the storage to the rules. All nodes share one observer between the wires and the storage: a step
// with a lost answer is a step.
#pragma once

#include <memory>

#include "jobq/storage.h"
#include "rules.h"

namespace jobq::model {

/// Returns a storage in front of `inner`. Both outlive the storage.
std::unique_ptr<Storage> observe(Storage& inner, Rules& rules);

}  // namespace jobq::model
