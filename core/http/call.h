// A request and its reply as the routes see them: values, without a socket.
#pragma once

#include <map>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "core/access/api_keys.h"
#include "core/endpoints/endpoint.h"

namespace jobq {

struct Call {
  std::string method;
  std::string path;  ///< decoded, without the query
  std::multimap<std::string, std::string> query;
  std::map<std::string, std::string> params;  ///< the route's {placeholders}
  std::string body;
  std::optional<ApiKey> key;  ///< of routes that demand one
  EndpointPtr endpoint;       ///< of routes with {endpoint}
};

struct Reply {
  int status = 200;
  std::string body;
  std::vector<std::pair<std::string, std::string>> headers{};
};

}  // namespace jobq
