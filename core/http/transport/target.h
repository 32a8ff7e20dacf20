// The target of a request taken apart: "/v2/echo/status/x?wait=5" becomes a path and a query, decoded.
#pragma once

#include <map>
#include <optional>
#include <string>
#include <string_view>

namespace jobq {

struct Target {
  std::string path;  ///< without a fragment, percent-encoded bytes decoded, but for %2F, which separates nothing
  std::multimap<std::string, std::string> query;
};

/// Nothing when it has a broken percent-encoding or an encoded NUL.
std::optional<Target> readTarget(std::string_view target);

}  // namespace jobq
