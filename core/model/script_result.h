// The faults of scripts, as plugins report the faults.
#pragma once

#include <optional>
#include <string>
#include <utility>

#include "core/base/result.h"

namespace jobq {

/// Returns the answer of HandlerFactory::fault() or AdmissionFilterFactory::fault(), or ScriptReport::fault, as a
/// result: fails with the sentence `fault`, and succeeds without one.
inline Result<void> scriptResult(std::optional<std::string> fault) {
  if (!fault) return {};
  return invalid(*std::move(fault));
}

}  // namespace jobq
