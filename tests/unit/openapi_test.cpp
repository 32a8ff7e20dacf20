// Tests of the completion of the API description (core/http/api/openapi.h).
#include "core/http/api/openapi.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <string>

namespace jobq {
namespace {

using testing::HasSubstr;
using testing::Not;

TEST(Openapi, ThePathsOfTheFirstMountAreInTheSecondMountToo) {
  EXPECT_EQ(completedOpenapi(R"({"paths":{"/v2/{endpoint}/run":{"get":{}},"/v1/keys":{"get":{}}}})"),
            R"({"paths":{"/v2/{endpoint}/run":{"get":{}},"/sdk/v2/{endpoint}/run":{"get":{}},"/v1/keys":{"get":{}}}})");
}

TEST(Openapi, TheSecondMountHasOperationsAndTagsOfItsOwn) {
  const std::string text = completedOpenapi(
      R"({"paths":{"/v2/a":{"get":{"operationId":"a","tags":["Jobs"]},"post":{"operationId":"aByPost"}}}})");
  EXPECT_THAT(text,
              HasSubstr(R"("/v2/a":{"get":{"operationId":"a","tags":["Jobs"]},"post":{"operationId":"aByPost"}})"));
  EXPECT_THAT(text, HasSubstr(R"("/sdk/v2/a":{"get":{"operationId":"aForSdk","tags":["Jobs for SDKs"]},)"
                              R"("post":{"operationId":"aForSdkByPost"}})"));
}

TEST(Openapi, TheSecondMountRefersToTheLenientComponents) {
  const std::string text = completedOpenapi(
      R"({"paths":{"/v2/a":{"get":[{"$ref":"#/components/parameters/wait"},{"$ref":"#/components/parameters/job"},)"
      R"({"$ref":"#/components/links/a"}]}}})");
  EXPECT_THAT(text, HasSubstr(R"("/sdk/v2/a":{"get":[{"$ref":"#/components/parameters/lenientWait"},)"
                              R"({"$ref":"#/components/parameters/job"},{"$ref":"#/components/links/aForSdk"}]})"));
}

TEST(Openapi, ALinkIntoAMountHasATwin) {
  const std::string text = completedOpenapi(
      R"({"components":{"links":{"a":{"operationId":"a","parameters":{"endpoint":"$request.path.endpoint"}},)"
      R"("b":{"operationId":"b"}}}})");
  EXPECT_THAT(text, HasSubstr(R"("aForSdk":{"operationId":"aForSdk","parameters":)"));
  EXPECT_THAT(text, Not(HasSubstr("bForSdk")));
}

TEST(Openapi, TheRequestOfAJobHasALenientTwin) {
  EXPECT_THAT(completedOpenapi(
                  R"({"components":{"schemas":{"JobRequest":{"policy":{"$ref":"#/components/schemas/Policy"}}}}})"),
              HasSubstr(R"("LenientJobRequest":{"policy":{"$ref":"#/components/schemas/LenientPolicy"}})"));
}

}  // namespace
}  // namespace jobq
