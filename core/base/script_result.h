// The faults of scripts, as plugins report the faults.
#pragma once

#include <string>
#include <utility>

#include "core/base/result.h"

namespace jobq {

/// Returns the answer of HandlerFactory::fault() or AdmissionFilterFactory::fault(), or ScriptReport::fault, as a
/// result: fails with the sentence `fault`. The SDK reports a script without a fault by an empty text.
inline Result<void> scriptResult(std::string fault) {
  if (fault.empty()) return {};
  return invalid(std::move(fault));
}

}  // namespace jobq
