// Which pages of other origins may call the API from a browser (the Fetch standard, "CORS protocol").
#pragma once

#include <set>
#include <string>
#include <string_view>
#include <utility>

#include "core/http/api/api_request.h"

namespace jobq {

/// Constant after construction; any thread. Without origins it adds nothing to any answer.
class CorsPolicy {
 public:
  /// `origins`: such as `https://app.example.com`, or `*` for every origin.
  explicit CorsPolicy(std::set<std::string> origins) : origins_(std::move(origins)) {}

  bool enabled() const noexcept { return !origins_.empty(); }

  /// Adds what lets a page of `origin` read the answer. An empty origin is a call that no page of another origin makes.
  void addTo(ApiResponse& reply, std::string_view origin) const;

  /// Returns the answer to a preflight, which needs no key: whether a page of `origin` may send one of `methods` with
  /// the header fields that it asks for. The key of the call itself is judged when that comes.
  ApiResponse preflight(std::string_view origin, const std::string& methods, const std::string& fields) const;

 private:
  bool allows(std::string_view origin) const;

  const std::set<std::string> origins_;
};

}  // namespace jobq
