// Tests of the route named in the 404 of an unknown path.
#include "core/http/api/nearest_route.h"

#include <gtest/gtest.h>

#include <string>
#include <utility>
#include <vector>

namespace {

using namespace jobq;

const std::vector<std::string> kRoutes{"GET /",
                                       "GET /healthz",
                                       "POST /v2/{endpoint}/run",
                                       "POST /v2/{endpoint}/runsync",
                                       "GET /v2/{endpoint}/status/{id}",
                                       "POST /v2/{endpoint}/status/{id}",
                                       "POST /sdk/v2/{endpoint}/run",
                                       "GET /v2/{endpoint}/logs/{id}",
                                       "GET /v1/endpoints",
                                       "POST /v1/endpoints",
                                       "GET /v1/templates/{id}"};

TEST(NearestRoute, IsTheRouteWithTheFewestChanges) {
  for (const auto& [path, route] :
       std::vector<std::pair<std::string, std::string>>{{"/v2/echo/runsnc", "POST /v2/{endpoint}/runsync"},
                                                        {"/v2/echo/RunSync", "POST /v2/{endpoint}/runsync"},
                                                        {"/v1/echo/run", "POST /v2/{endpoint}/run"},
                                                        {"/echo/run", "POST /v2/{endpoint}/run"},
                                                        {"/run", "POST /v2/{endpoint}/run"},
                                                        {"/v2/echo/run/", "POST /v2/{endpoint}/run"},
                                                        {"/sdk/v2/echo/runn", "POST /sdk/v2/{endpoint}/run"},
                                                        {"/v2/echo/state/a", "POST /v2/{endpoint}/status/{id}"},
                                                        {"/v1/template/k3v9x0m2qa", "GET /v1/templates/{id}"},
                                                        {"/api/v1/endpoints", "POST /v1/endpoints"},
                                                        {"/health", "GET /healthz"}}) {
    EXPECT_EQ(nearestRoute(kRoutes, "POST", path), route) << path;
  }
  EXPECT_EQ(nearestRoute(kRoutes, "GET", "/v1/endpoint"), "GET /v1/endpoints") << "the method decides between two";
}

TEST(NearestRoute, IsAbsentForAFarOrALongPath) {
  for (const std::string& path : {std::string("/wp-admin.php"), std::string("/foo"), std::string("/v2/echo/nothing"),
                                  std::string("/v2/echo/result/abcdef"), "/v2/echo/run" + std::string(300, '/')}) {
    EXPECT_EQ(nearestRoute(kRoutes, "GET", path), "") << path;
  }
}

}  // namespace
