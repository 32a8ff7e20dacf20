// Finds the route of a method and a path. Routes are data; a route without an implementation is not in the table.
#pragma once

#include <cstddef>
#include <functional>
#include <map>
#include <memory>
#include <optional>
#include <string>
#include <variant>
#include <vector>

#include "core/auth/scope.h"
#include "core/config/limits.h"
#include "core/http/api/api_request.h"

namespace jobq {

/// The answers of a route to requests that another stage has refused.
class RefusalChange {
 public:
  virtual ~RefusalChange() = default;
  /// Returns the answer in place of `refusal`. `request` has what the stages before the refusal have found. Any HTTP
  /// thread. Throws as a route does.
  virtual RouteResult answer(ApiRequest& request, ApiResponse refusal) const = 0;
};

/// A row of the table of routes. The call of a row is a std::function, because a search for the path finds the function
/// beside it.
struct Route {
  std::vector<std::string> methods{};               ///< GET includes HEAD, see hasHead
  std::string pattern{};                            ///< such as "/v2/{endpoint}/status/{id}"; "{rest...}" at its end
                                                    ///< matches one or more segments
  RouteAccess scope;                                ///< of the key; `none`: no key is needed
  std::size_t bodyLimit = 1UL << 20;                ///< bytes
  bool needsBody = false;                           ///< a request without Content-Length and chunks is 400
  std::function<RouteResult(ApiRequest&)> run{};    ///< called on any HTTP thread
  std::optional<Operation> operation{};             ///< operation whose rate limits count; empty: no limit
  std::shared_ptr<const RefusalChange> refusals{};  ///< null: a refusal is the answer
  bool hasHead = true;                              ///< false: GET does not include HEAD
  bool isQuick = false;                             ///< never blocks where ConnectedClient::mayBlock() is false
  bool queryIsPath = false;                         ///< the parameters of the query count as placeholders, too
  bool isProbe = false;                             ///< never blocks, and is answered also where no thread is free
};

/// Table of routes. Constant after the last add(); any thread may call find() and rows() afterwards.
class Router {
 public:
  struct Match {
    const Route* route;                         ///< valid as long as the router
    std::map<std::string, std::string> params;  ///< values of the placeholders by name
  };
  struct NoPath {};
  struct WrongMethod {
    std::string allow;  ///< methods of the path, separated by commas
  };

  /// Adds a route. The first matching route of the order of adding is found.
  void add(Route route);
  /// Returns the route for `method` and the decoded `path` with the values of the placeholders, or NoPath if no route
  /// has the path, or WrongMethod with the methods for the header Allow. HEAD finds the routes
  /// of GET with `hasHead`.
  std::variant<Match, NoPath, WrongMethod> find(const std::string& method, const std::string& path) const;

  /// Sets the answer to requests whose path has no route and has one of the `segments`; a segment ends at its first
  /// `&`. Called once, before refusalsOf().
  void changeRefusals(std::vector<std::string> segments, std::shared_ptr<const RefusalChange> change);
  /// Returns the answer to refused requests of a path without a route, valid as long as the router; null: the refusal
  /// is the answer.
  const RefusalChange* refusalsOf(const std::string& path) const;

  struct Row {
    std::string call;  ///< such as "GET /v1/keys"
    RouteAccess scope;
  };
  /// Returns a row for each method of each route. The API's description has to cover exactly the same calls, with the
  /// same scopes.
  std::vector<Row> rows() const;

 private:
  struct Entry {
    Route route;
    std::vector<std::string> segments;
  };
  std::vector<Entry> entries_;
  std::vector<std::string> changedSegments_;
  std::shared_ptr<const RefusalChange> change_;
};

}  // namespace jobq
