// Which route a method and a path lead to. Routes are data; a route that is not built is not in the table.
#pragma once

#include <cstddef>
#include <functional>
#include <map>
#include <optional>
#include <string>
#include <variant>
#include <vector>

#include "core/auth/api_keys.h"
#include "core/config/limits.h"
#include "core/http/api/api_request.h"

namespace jobq {

struct Route {
  std::vector<std::string> methods;
  std::string pattern;  ///< "/v2/{endpoint}/status/{id}"
  Scope scope = Scope::client;
  std::size_t bodyLimit = 1UL << 20;
  bool needsBody = false;
  std::function<ApiResponse(ApiRequest&)> run;
  std::optional<Operation> operation{};  ///< whose rate limits count; none: not limited
};

/// Constant after the last add(); any thread afterwards.
class Router {
 public:
  struct Match {
    const Route* route;
    std::map<std::string, std::string> params;
  };
  struct NoPath {};
  struct WrongMethod {
    std::string allow;
  };

  void add(Route route);
  std::variant<Match, NoPath, WrongMethod> find(const std::string& method, const std::string& path) const;

  /// "GET /v1/keys", one for each method of each route: what the API's description has to tell.
  std::vector<std::string> list() const;

 private:
  struct Entry {
    Route route;
    std::vector<std::string> segments;
  };
  std::vector<Entry> entries_;
};

}  // namespace jobq
