// Tests of the route /v1/health without a socket (core/http/api/management/health_routes.cpp).
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <string>

#include "core/http/api/routes.h"
#include "endpoint_fixture.h"
#include "jobq/error.h"
#include "route_fixture.h"

namespace jobq {
namespace {

using test::expectAnswer;
using testing::HasSubstr;

class HealthRoutesTest : public testing::Test, protected test::EndpointFixture, protected test::RouteFixture {
 protected:
  HealthRoutesTest() { addHealthRoute(router_, {*storage, node_.registry, workers_}); }

  ApiResponse health(Query query = {}) { return call("GET", "/v1/health", "", std::move(query)); }
  static std::string healthOf(const std::string& id, int inQueue) {
    return R"({"id":")" + id + R"(","name":")" + id +
           R"(","paused":false,"jobs":{"completed":0,"failed":0,"inProgress":0,"inQueue":)" + std::to_string(inQueue) +
           R"(,"retried":0},"webhooks":{"owed":0,"oldestMs":0},"workers":{"idle":1,"initializing":2,"ready":3,)"
           R"("running":4,"throttled":5,"unhealthy":6}})";
  }

  Node node_{*this, {fixedEndpoint("a"), fixedEndpoint("b"), fixedEndpoint("c")}};
  test::FixedWorkers workers_;
};

TEST_F(HealthRoutesTest, EachEndpointHasItsCounters) {
  workers_.number = {1, 2, 3, 4, 5, 6};
  for (const char* id : {"x", "y"}) storage.insert(id, "b");
  expectAnswer(health(), 200, "[" + healthOf("a", 0) + "," + healthOf("b", 2) + "," + healthOf("c", 0) + "]");
  EXPECT_EQ(scope_, (Scope::monitor | Scope::read).withBoundKeys());
  expectAnswer(health({{"limit", "1"}, {"cursor", "a"}}), 200, "[" + healthOf("b", 2) + "]");
}

TEST_F(HealthRoutesTest, AKeyOfEndpointsSeesTheseAlone) {
  workers_.number = {1, 2, 3, 4, 5, 6};
  storage.insert("x", "c");
  useKey({"monitor"}, {"c", "gone", "a"});
  expectAnswer(health(), 200, "[" + healthOf("a", 0) + "," + healthOf("c", 1) + "]");
  expectAnswer(health({{"limit", "1"}}), 200, "[" + healthOf("a", 0) + "]");
  expectAnswer(health({{"limit", "5"}, {"cursor", "a"}}), 200, "[" + healthOf("c", 1) + "]");
}

TEST_F(HealthRoutesTest, AFailingStorageIsNoAnswer) {
  storage.faults.failOperation("jobs.allCounts");
  EXPECT_THROW((void)health(), StorageError);
  storage.faults.heal();
  EXPECT_EQ(health().status, 200);
  EXPECT_THAT(health({{"limit", "0"}}).body, HasSubstr("limit"));
}

}  // namespace
}  // namespace jobq
