// Splits the target of a request: "/v2/echo/status/x?wait=5" becomes a path and a query, both decoded.
#pragma once

#include <map>
#include <string>
#include <string_view>

#include "core/base/result.h"

namespace jobq {

struct Target {
  std::string path;  ///< without a fragment; percent-encoded bytes are decoded except %2F, which separates nothing
  std::multimap<std::string, std::string> query;
};

/// Returns the parts of a target. Fails, with one sentence, if `target` has a broken percent-encoding or an encoded
/// NUL. Throws std::bad_alloc. Any thread.
Result<Target> readTarget(std::string_view target);

}  // namespace jobq
