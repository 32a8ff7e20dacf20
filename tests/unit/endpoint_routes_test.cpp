// Tests of the routes under /v1/endpoints without a socket (core/http/api/management/endpoint_routes.cpp).
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <memory>
#include <string>
#include <utility>

#include "core/endpoints/runtime_meter.h"
#include "core/http/api/routes.h"
#include "endpoint_fixture.h"
#include "jobq/error.h"
#include "jobq/json.h"
#include "route_fixture.h"

namespace jobq {
namespace {

using test::expectAnswer;
using testing::HasSubstr;
using testing::Not;
using testing::StartsWith;

class EndpointRoutesTest : public testing::Test, protected test::EndpointFixture, protected test::RouteFixture {
 protected:
  EndpointRoutesTest() {
    addEndpointRoutes(router_, {node_.endpoints, node_.registry, workers_, runtimes_, "arrival", "here"});
  }

  static std::string notThere(const std::string& id) {
    return R"({"message":"there is no endpoint )" + id + R"(: check the id"})";
  }
  /// Returns the JSON of a member of the answer, or an empty string.
  static std::string member(const ApiResponse& response, std::string_view name) {
    const auto read = json::read(response.body);
    const auto* document = std::get_if<json::Document>(&read);
    const auto value = document == nullptr ? std::nullopt : document->find(name);
    return value ? std::string(value->raw) : "";
  }
  ApiResponse find(const std::string& id, Query query = {}) {
    return call("GET", "/v1/endpoints/" + id, "", std::move(query));
  }

  Node node_{*this, {fixedEndpoint("fixed")}};
  const std::string template_ = createTemplate(node_, "t");
  RuntimeMeter runtimes_{storage->records(), storage.clock};
  test::FixedWorkers workers_;
};

TEST_F(EndpointRoutesTest, ANewEndpointIsAnsweredFoundAndListed) {
  const ApiResponse made = call("POST", "/v1/endpoints",
                                R"({"templateId":")" + template_ + R"(","name":"mine","workersMax":7,"maxStuck":2})");
  EXPECT_EQ(made.status, 200);
  EXPECT_EQ(scope_, Scope::admin);
  const std::string id = json::toText({json::Kind::string, member(made, "id")}).value_or("");
  ASSERT_TRUE(node_.registry.find(id)) << made.body;
  EXPECT_EQ(node_.registry.find(id)->spec.workersMax, 7U);
  EXPECT_EQ(member(made, "name"), "\"mine\"");
  EXPECT_EQ(member(made, "workersMax"), "7");
  EXPECT_EQ(member(made, "workersMin"), "0");
  EXPECT_EQ(member(made, "createdAt"), "\"2026-01-01T00:00:00.000Z\"");
  EXPECT_EQ(member(made, "image"), "\"plugin/echo\"");
  EXPECT_EQ(member(made, "inForce"),
            R"({"queuePolicy":"arrival","filters":[],"maxStuck":2,"maxQueued":1000000,"retention":{"run":1800000,)"
            R"("runsync":60000,"failed":0},"webhookRetries":{"attempts":3,"pause":10000,"factor":1}})");
  EXPECT_EQ(member(made, "release"), R"({"version":1,"state":"complete"})");
  EXPECT_EQ(member(made, "template"), "") << "the template is included only on demand";
  EXPECT_EQ(member(made, "workers"), "") << "the workers are included only on demand";
  expectAnswer(find(id), 200, made.body);
  const ApiResponse all = call("GET", "/v1/endpoints");
  EXPECT_EQ(all.status, 200);
  EXPECT_THAT(all.body, HasSubstr(made.body));
  EXPECT_THAT(all.body, HasSubstr(find("fixed").body)) << "the endpoints of the file are listed too";
}

TEST_F(EndpointRoutesTest, ValuesSetByTheEndpointAreInForce) {
  const ApiResponse made =
      call("POST", "/v1/endpoints", R"({"templateId":")" + template_ + R"(","retention":{"run":5000},"workersMax":4})");
  EXPECT_EQ(member(made, "inForce"),
            R"({"queuePolicy":"arrival","filters":[],"maxStuck":4,"maxQueued":1000000,"retention":{"run":5000,)"
            R"("runsync":60000,"failed":0},"webhookRetries":{"attempts":3,"pause":10000,"factor":1}})");
}

TEST_F(EndpointRoutesTest, WebhookRetriesAndFailuresOfTheEndpointAreInForce) {
  const ApiResponse made =
      call("POST", "/v1/endpoints",
           R"({"templateId":")" + template_ +
               R"(","retention":{"failed":604800000},"webhookRetries":{"attempts":8,"factor":3}})");
  EXPECT_THAT(member(made, "inForce"), HasSubstr(R"("failed":604800000},"webhookRetries":{"attempts":8,"pause":10000,)"
                                                 R"("factor":3})"));
}

TEST_F(EndpointRoutesTest, EachWrongFieldIsNamed) {
  expectAnswer(
      call("POST", "/v1/endpoints", R"({"templateId":"none","workersMin":-1,"workers":2})"), 400,
      R"({"message":"workersMin must be an integer from 0 to 10000; )"
      R"(workers is not a field of an endpoint; the nearest one is workersMin; )"
      R"(templateId none is not a template: create the template first, or name another","errors":[)"
      R"({"field":"workersMin","message":"workersMin must be an integer from 0 to 10000"},)"
      R"({"field":"workers","message":"workers is not a field of an endpoint; the nearest one is workersMin"},)"
      R"({"field":"templateId","message":"templateId none is not a template: create the template first, )"
      R"(or name another"}]})");
  expectAnswer(call("POST", "/v1/endpoints", "7"), 400,
               R"({"message":"the body must be a JSON object","errors":[)"
               R"({"field":"","message":"the body must be a JSON object"}]})");
  EXPECT_EQ(node_.registry.entries().size(), 1U) << "the registry has only the endpoint of the file";
}

TEST_F(EndpointRoutesTest, BothRoutesOfAChangeChange) {
  const EndpointId id = createEndpoint(node_, template_);
  const ApiResponse changed = call("PATCH", "/v1/endpoints/" + id, R"({"name":"n","idleTimeout":7})");
  EXPECT_EQ(changed.status, 200);
  EXPECT_EQ(member(changed, "name"), "\"n\"");
  EXPECT_EQ(member(changed, "idleTimeout"), "7");
  EXPECT_EQ(member(changed, "release"), R"({"version":1,"state":"complete"})");
  const std::string other = createTemplate(node_, "u");
  const ApiResponse again = call("POST", "/v1/endpoints/" + id + "/update", R"({"templateId":")" + other + "\"}");
  EXPECT_EQ(again.status, 200);
  EXPECT_EQ(member(again, "name"), "\"n\"");
  EXPECT_EQ(member(again, "release"), R"({"version":2,"state":"complete"})") << "a new template is a new release";
  expectAnswer(find(id), 200, again.body);
  EXPECT_EQ(call("PATCH", "/v1/endpoints/" + id, R"({"idleTimeout":"7"})").status, 400);
  expectAnswer(find(id), 200, again.body);
}

TEST_F(EndpointRoutesTest, ReadersSeeNoValuesOfTheEnvironment) {
  const auto made = node_.templates.create(R"({"name":"secret","imageName":"plugin/echo","env":{"TOKEN":"s3cret"}})");
  ASSERT_TRUE(made);
  const EndpointId id = createEndpoint(node_, made->id);
  const Query all{{"includeTemplate", "true"}, {"includeWorkers", "true"}};
  workers_.pool.workers = {{"w-1", "idle", storage.clock.now(), node_.registry.find(id)->release}};
  EXPECT_THAT(find(id, all).body, HasSubstr("s3cret"));
  workers_.pool.fault = "the last line: s3cret";
  useKey({"read"});
  const ApiResponse shown = find(id, all);
  EXPECT_EQ(shown.status, 200);
  EXPECT_EQ(member(shown, "env"), R"env({"TOKEN":"(hidden)"})env");
  EXPECT_THAT(shown.body, Not(HasSubstr("s3cret")));
  EXPECT_THAT(call("GET", "/v1/endpoints", "", all).body, Not(HasSubstr("s3cret")));
}

TEST_F(EndpointRoutesTest, AKeyOfEndpointsSeesTheseAlone) {
  const EndpointId mine = createEndpoint(node_, template_);
  const EndpointId other = createEndpoint(node_, template_);
  useKey({"read"}, {mine, "fixed", "gone"});
  EXPECT_EQ(find(mine).status, 200);
  expectAnswer(find(other), 404, notThere(other));
  const ApiResponse all = call("GET", "/v1/endpoints");
  EXPECT_THAT(all.body, HasSubstr(mine));
  EXPECT_THAT(all.body, HasSubstr("fixed"));
  EXPECT_THAT(all.body, Not(HasSubstr(other)));
  const std::string first = std::min<std::string>(mine, "fixed");
  const ApiResponse page = call("GET", "/v1/endpoints", "", {{"limit", "1"}});
  EXPECT_EQ(page.body, "[" + find(first).body + "]");
  const ApiResponse rest = call("GET", "/v1/endpoints", "", {{"limit", "2"}, {"cursor", first}});
  EXPECT_EQ(rest.body, "[" + find(std::max<std::string>(mine, "fixed")).body + "]");
}

TEST_F(EndpointRoutesTest, AnUnknownEndpointIs404) {
  for (const auto& [method, path] :
       {std::pair("GET", ""), std::pair("PATCH", ""), std::pair("DELETE", ""), std::pair("POST", "/update"),
        std::pair("POST", "/pause"), std::pair("POST", "/resume")}) {
    expectAnswer(call(method, "/v1/endpoints/none" + std::string(path), "{}"), 404, notThere("none"));
    const bool isReading = method == std::string("GET");
    EXPECT_EQ(scope_, isReading ? RouteAccess(Scope::read).withBoundKeys() : RouteAccess(Scope::admin));
  }
}

TEST_F(EndpointRoutesTest, AnEndpointOfTheFileIsPausedAndNotChanged) {
  const std::string fixed =
      R"("endpoint fixed comes from the configuration file: change it there, and restart the server")";
  const ApiResponse changed = call("PATCH", "/v1/endpoints/fixed", R"({"name":"n"})");
  EXPECT_EQ(changed.status, 400);
  EXPECT_EQ(member(changed, "message"), fixed);
  const ApiResponse removed = call("DELETE", "/v1/endpoints/fixed");
  EXPECT_EQ(removed.status, 400);
  EXPECT_EQ(member(removed, "message"), fixed);
  EXPECT_EQ(member(call("POST", "/v1/endpoints/fixed/pause"), "paused"), "true");
  EXPECT_TRUE(node_.registry.find("fixed")->spec.paused);
  EXPECT_EQ(member(call("POST", "/v1/endpoints/fixed/resume"), "paused"), "false");
  EXPECT_FALSE(node_.registry.find("fixed")->spec.paused);
}

TEST_F(EndpointRoutesTest, ARemovedEndpointIsGone) {
  const EndpointId id = createEndpoint(node_, template_);
  expectAnswer(call("DELETE", "/v1/endpoints/" + id), 204, "");
  expectAnswer(find(id), 404, notThere(id));
  expectAnswer(call("DELETE", "/v1/endpoints/" + id), 404, notThere(id));
  EXPECT_THAT(call("GET", "/v1/endpoints").body, Not(HasSubstr(id)));
}

TEST_F(EndpointRoutesTest, TheTemplateIsShownOnDemand) {
  const EndpointId id = createEndpoint(node_, template_);
  const ApiResponse with = find(id, {{"includeTemplate", "true"}});
  EXPECT_THAT(member(with, "template"), StartsWith(R"({"id":")" + template_ + R"(","name":"t",)"));
  EXPECT_EQ(member(find("fixed", {{"includeTemplate", "true"}}), "template"), "null") << "the file has no templates";
  EXPECT_EQ(member(find(id, {{"includeTemplate", "false"}}), "template"), "");
  const ApiResponse wrong = find(id, {{"includeTemplate", "1"}});
  EXPECT_EQ(wrong.status, 400);
  EXPECT_THAT(member(wrong, "message"), HasSubstr("includeTemplate"));
  EXPECT_EQ(call("GET", "/v1/endpoints", "", {{"includeWorkers", "yes"}}).status, 400);
}

TEST_F(EndpointRoutesTest, EachWorkerIsShownOnDemand) {
  const EndpointId id = createEndpoint(node_, template_);
  Release release;
  release.version = 3;
  release.templateId = template_;
  release.image = "plugin/echo";
  release.env = {{"A", "1"}};
  const auto shared = std::make_shared<const Release>(release);
  workers_.pool.workers = {{"w-1", "running", storage.clock.now(), shared},
                           {"w-2", "leaving", storage.clock.now(), shared}};
  const auto worker = [&](const std::string& name, const std::string& wanted, const std::string& state) {
    return R"({"id":")" + name + R"(","node":"here","desiredStatus":")" + wanted + R"(","state":")" + state +
           R"(","image":"plugin/echo","env":{"A":"1"},"lastStartedAt":"2026-01-01T00:00:00.000Z","slsVersion":3,)" +
           R"("endpointId":")" + id + R"(","templateId":")" + template_ + "\"}";
  };
  EXPECT_EQ(member(find(id, {{"includeWorkers", "true"}}), "workers"),
            "[" + worker("w-1", "RUNNING", "running") + "," + worker("w-2", "EXITED", "leaving") + "]");
}

TEST_F(EndpointRoutesTest, AReleaseRollsOrIsHaltedWithAReason) {
  const EndpointId id = createEndpoint(node_, template_);
  workers_.pool.rolling = true;
  EXPECT_EQ(member(find(id), "release"), R"({"version":1,"state":"rolling"})");
  workers_.pool.fault = "no memory";
  EXPECT_EQ(member(find(id), "release"), R"({"version":1,"state":"rolling","reason":"no memory"})");
  workers_.pool.halted = true;
  EXPECT_EQ(member(find(id), "release"), R"({"version":1,"state":"halted","reason":"no memory"})");
}

TEST_F(EndpointRoutesTest, AFailingStorageIsNoAnswer) {
  storage.faults.failOperation("records.create");
  EXPECT_THROW((void)call("POST", "/v1/endpoints", R"({"templateId":")" + template_ + "\"}"), StorageError);
  storage.faults.heal();
  EXPECT_EQ(node_.registry.entries().size(), 1U);
}

}  // namespace
}  // namespace jobq
