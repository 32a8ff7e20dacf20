// Splits the target of a request: "/v2/echo/status/x?wait=5" becomes a path and a query, both decoded.
#pragma once

#include <map>
#include <optional>
#include <string>
#include <string_view>

namespace jobq {

struct Target {
  std::string path;  ///< without a fragment; percent-encoded bytes are decoded except %2F, which separates nothing
  std::multimap<std::string, std::string> query;
};

/// Returns nullopt if `target` has a broken percent-encoding or an encoded NUL. Any thread.
std::optional<Target> readTarget(std::string_view target);

}  // namespace jobq
