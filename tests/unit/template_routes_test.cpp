// Tests of the routes under /v1/templates without a socket (core/http/api/management/template_routes.cpp).
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <string>

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

class TemplateRoutesTest : public testing::Test, protected test::EndpointFixture, protected test::RouteFixture {
 protected:
  TemplateRoutesTest() { addTemplateRoutes(router_, node_.templates, node_.registry, runtimes_); }

  static std::string notThere(const std::string& id) {
    return R"({"message":"there is no template )" + id + R"(: check the id"})";
  }
  std::string message(const ApiResponse& response) const {
    const auto read = json::read(response.body);
    const auto* document = std::get_if<json::Document>(&read);
    const auto value = document == nullptr ? std::nullopt : document->find("message");
    return value ? json::toText(*value).value_or("") : "";
  }

  Node node_{*this};
  RuntimeMeter runtimes_{storage->records(), storage.clock};
};

TEST_F(TemplateRoutesTest, ANewTemplateIsAnsweredFoundAndListed) {
  const ApiResponse made =
      call("POST", "/v1/templates", R"({"name":"t","imageName":"plugin/echo","env":{"A":"1"},"ports":["80/http"]})");
  EXPECT_EQ(made.status, 200);
  EXPECT_EQ(scope_, Scope::admin);
  ASSERT_EQ(node_.registry.templates().size(), 1U);
  const std::string id = node_.registry.templates()[0]->form.id;
  EXPECT_THAT(made.body, HasSubstr(R"({"id":")" + id + R"(","name":"t","imageName":"plugin/echo",)"));
  EXPECT_THAT(made.body, HasSubstr(R"("env":{"A":"1"},)"));
  EXPECT_THAT(made.body, HasSubstr(R"("ports":["80/http"],)"));
  EXPECT_THAT(made.body, HasSubstr(R"("runtimeInMin":0})"));
  expectAnswer(call("GET", "/v1/templates/" + id), 200, made.body);
  expectAnswer(call("GET", "/v1/templates"), 200, "[" + made.body + "]");
  runtimes_.tick({{id, 2}});
  storage.clock.advance(Millis(90'000));
  runtimes_.tick({{id, 2}});
  EXPECT_THAT(call("GET", "/v1/templates/" + id).body, HasSubstr(R"("runtimeInMin":3})")) << "two workers, 90 s each";
}

TEST_F(TemplateRoutesTest, ReadersSeeNoValuesOfTheEnvironment) {
  ASSERT_EQ(call("POST", "/v1/templates", R"({"name":"t","imageName":"plugin/echo","env":{"A":"s3cret"}})").status,
            200);
  const std::string path = "/v1/templates/" + node_.registry.templates()[0]->form.id;
  EXPECT_THAT(call("GET", path).body, HasSubstr(R"("env":{"A":"s3cret"})"));
  useKey({"read"});
  EXPECT_EQ(call("GET", "/v1/templates").body, "[" + call("GET", path).body + "]");
  EXPECT_EQ(scope_, Scope::read);
  EXPECT_THAT(call("GET", path).body, HasSubstr(R"env("env":{"A":"(hidden)"})env"));
}

TEST_F(TemplateRoutesTest, EachWrongFieldOfANewTemplateIsNamed) {
  expectAnswer(call("POST", "/v1/templates", R"({"ports":["80"],"isPublic":1})"), 400,
               R"({"message":"ports must hold items like 8888/http or 22/tcp, with a port from 1 to 65535, not 80; )"
               R"(isPublic must be true or false; )"
               R"(name is missing: give the template a name that no other one has; )"
               R"(imageName is missing: name a handler, such as plugin/echo, or an image","errors":[)"
               R"({"field":"ports","message":"ports must hold items like 8888/http or 22/tcp, )"
               R"(with a port from 1 to 65535, not 80"},)"
               R"({"field":"isPublic","message":"isPublic must be true or false"},)"
               R"({"field":"name","message":"name is missing: give the template a name that no other one has"},)"
               R"({"field":"imageName","message":"imageName is missing: name a handler, such as plugin/echo, )"
               R"(or an image"}]})");
  expectAnswer(call("GET", "/v1/templates"), 200, "[]");
}

TEST_F(TemplateRoutesTest, ANameBelongsToASingleTemplate) {
  const std::string first = createTemplate(node_, "t");
  const std::string second = createTemplate(node_, "u");
  const std::string taken =
      "name t is the name of template " + first + " already: choose another, or change that template";
  const ApiResponse again = call("POST", "/v1/templates", R"({"name":"t","imageName":"plugin/echo"})");
  EXPECT_EQ(again.status, 400);
  EXPECT_EQ(message(again), taken);
  const ApiResponse changed = call("PATCH", "/v1/templates/" + second, R"({"name":"t"})");
  EXPECT_EQ(changed.status, 400);
  EXPECT_EQ(message(changed), taken);
}

TEST_F(TemplateRoutesTest, BothRoutesOfAChangeChange) {
  const std::string id = createTemplate(node_, "t");
  const ApiResponse changed = call("PATCH", "/v1/templates/" + id, R"({"name":"u","env":{"B":"2"}})");
  EXPECT_EQ(changed.status, 200);
  EXPECT_THAT(changed.body, HasSubstr(R"("name":"u","imageName":"plugin/echo",)"));
  expectAnswer(call("GET", "/v1/templates/" + id), 200, changed.body);
  const ApiResponse again = call("POST", "/v1/templates/" + id + "/update", R"({"readme":"text"})");
  EXPECT_EQ(again.status, 200);
  EXPECT_THAT(again.body, HasSubstr(R"("env":{"B":"2"},)"));
  EXPECT_THAT(again.body, HasSubstr(R"("readme":"text",)"));
  expectAnswer(call("GET", "/v1/templates/" + id), 200, again.body);
  const ApiResponse fixed = call("PATCH", "/v1/templates/" + id, R"({"category":"CPU"})");
  EXPECT_EQ(fixed.status, 400);
  EXPECT_EQ(message(fixed), "category of a template is fixed when it is created: leave it out");
}

TEST_F(TemplateRoutesTest, AnUnknownTemplateIs404) {
  expectAnswer(call("GET", "/v1/templates/none"), 404, notThere("none"));
  expectAnswer(call("PATCH", "/v1/templates/none", "{}"), 404, notThere("none"));
  expectAnswer(call("POST", "/v1/templates/none/update", "{}"), 404, notThere("none"));
  expectAnswer(call("DELETE", "/v1/templates/none"), 404, notThere("none"));
  const std::string longId(100, 'x');
  expectAnswer(call("GET", "/v1/templates/" + longId), 404, notThere(longId.substr(0, 64) + "..."));
}

TEST_F(TemplateRoutesTest, ATemplateInUseStaysAndAnUnusedTemplateGoes) {
  const std::string id = createTemplate(node_, "t");
  const EndpointId endpoint = createEndpoint(node_, id);
  const ApiResponse used = call("DELETE", "/v1/templates/" + id);
  EXPECT_EQ(used.status, 400);
  EXPECT_EQ(message(used), "template " + id + " is used by endpoint " + endpoint +
                               ": delete the endpoint, or give it another template first");
  const std::string unused = createTemplate(node_, "u");
  expectAnswer(call("DELETE", "/v1/templates/" + unused), 204, "");
  expectAnswer(call("GET", "/v1/templates/" + unused), 404, notThere(unused));
  EXPECT_THAT(call("GET", "/v1/templates").body, Not(HasSubstr(unused)));
}

TEST_F(TemplateRoutesTest, AWrongFlagIsNamedAndARightFlagChangesNoAnswer) {
  const std::string id = createTemplate(node_, "t");
  for (const char* flag : {"includeEndpointBoundTemplates", "includePublicTemplates", "includeRunpodTemplates"}) {
    for (const std::string& path : {std::string("/v1/templates"), "/v1/templates/" + id}) {
      const ApiResponse plain = call("GET", path);
      expectAnswer(call("GET", path, "", {{flag, "true"}}), 200, plain.body);
      const ApiResponse wrong = call("GET", path, "", {{flag, "yes"}});
      EXPECT_EQ(wrong.status, 400);
      EXPECT_THAT(message(wrong), HasSubstr(flag));
    }
  }
}

TEST_F(TemplateRoutesTest, AFailingStorageIsNoAnswer) {
  storage.faults.failOperation("records.create");
  EXPECT_THROW((void)call("POST", "/v1/templates", R"({"name":"t","imageName":"plugin/echo"})"), StorageError);
  storage.faults.heal();
  expectAnswer(call("GET", "/v1/templates"), 200, "[]");
}

}  // namespace
}  // namespace jobq
