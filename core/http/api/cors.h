// Rules about the pages of other origins that may call the API from a browser (the Fetch standard, "CORS protocol").
#pragma once

#include <set>
#include <string>
#include <string_view>
#include <utility>

#include "core/http/api/api_request.h"

namespace jobq {

/// Policy of `server.cors.origins`, constant after construction. Any thread may call the functions. A policy without
/// origins adds no header to any answer.
class CorsPolicy {
 public:
  /// `origins` are origins such as `https://app.example.com`, or `*` for every origin.
  explicit CorsPolicy(std::set<std::string> origins) : origins_(std::move(origins)) {}

  /// Returns true if at least one origin is configured.
  bool enabled() const noexcept { return !origins_.empty(); }

  /// Adds the header fields by which a page of `origin` may read the answer. An empty `origin` marks a call without an
  /// Origin field.
  void addTo(ApiResponse& response, std::string_view origin) const;

  /// Returns the answer to a preflight, which needs no key: 204 with `methods` and `fields` as allowed, or 204 without
  /// header fields if `origin` is not allowed. The key is checked when the call itself arrives.
  ApiResponse preflight(std::string_view origin, const std::string& methods, const std::string& fields) const;

 private:
  bool allows(std::string_view origin) const;

  const std::set<std::string> origins_;
};

}  // namespace jobq
