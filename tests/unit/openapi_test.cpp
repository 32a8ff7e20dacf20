// Tests of the completion of the API description (core/http/api/openapi.h), and of the schemas of fields
// (core/http/api/field_schemas.h).
#include "core/http/api/openapi.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <string>

#include "core/http/api/field_schemas.h"
#include "jobq/json.h"

namespace jobq {
namespace {

using testing::EndsWith;
using testing::HasSubstr;
using testing::Not;
using testing::StartsWith;

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

TEST(FieldSchemas, ASchemaWithoutATableStays) {
  EXPECT_EQ(withFields("Job", R"({"type":"object"})"), R"({"type":"object"})");
}

TEST(FieldSchemas, TheFieldsOfTheTableComeBeforeTheOthers) {
  const std::string schema =
      withFields("NewKey", R"({"type":"object","required":["key"],"properties":{"key":{"type":"string"}}})");
  EXPECT_THAT(schema, StartsWith(R"({"type":"object","required":["id","name","scopes","endpoints","createdAt",)"
                                 R"("expiresAt","lastUsedAt","key"],"properties":{"id":{"type":"string",)"));
  EXPECT_THAT(schema, EndsWith(R"("key":{"type":"string"}}})"));
}

TEST(FieldSchemas, ARequestOfCreationHasDefaultsAndNulls) {
  const std::string schema = withFields("EndpointInput", "{}");
  EXPECT_THAT(schema, StartsWith(R"({"properties":{"id":{"type":["string","null"],)"));
  EXPECT_THAT(schema, HasSubstr(R"("workersMax":{"type":["integer","null"],"minimum":0,"maximum":10000,"default":3,)"));
  EXPECT_THAT(schema,
              HasSubstr(R"("imageName":{"type":["string","null"],"minLength":1,"maxLength":512,"description":)"));
  EXPECT_THAT(schema, HasSubstr(R"("computeType":{"enum":["GPU","CPU",null],"default":"GPU",)"));
  EXPECT_THAT(schema,
              HasSubstr(R"("retention":{"type":["object","null"],"properties":{"run":{"type":["integer","null"],)"));
  EXPECT_THAT(schema, Not(HasSubstr(R"("createdAt":)"))) << "the server sets the field";
}

TEST(FieldSchemas, AChangeHasNoFixedFieldsAndNoDefaults) {
  const std::string schema = withFields("TemplateChange", "{}");
  EXPECT_THAT(schema, HasSubstr(R"("name":{"type":["string","null"],)"));
  EXPECT_THAT(schema, Not(HasSubstr(R"("category":)")));
  EXPECT_THAT(schema, Not(HasSubstr(R"("default":)")));
  EXPECT_THAT(schema, Not(HasSubstr(R"("required":)")));
}

TEST(FieldSchemas, AnAnswerHasNoSecretsAndNullsOnlyWhereNullIsAValue) {
  const std::string schema = withFields("Endpoint", "{}");
  EXPECT_THAT(schema, Not(HasSubstr("webhookSecret")));
  EXPECT_THAT(schema, Not(HasSubstr("templateRecord"))) << "only records have the field";
  EXPECT_THAT(schema, HasSubstr(R"("maxStuck":{"type":["integer","null"],)"));
  EXPECT_THAT(schema, HasSubstr(R"("idleTimeout":{"type":"integer","minimum":0,"maximum":3600,)"));
  EXPECT_THAT(schema,
              HasSubstr(R"("retention":{"type":"object","properties":{"run":{"type":"integer","minimum":1000,)"));
}

TEST(FieldSchemas, ALenientNumberHasItsRangeInTheDescription) {
  const std::string schema = withFields("LenientPolicy", "{}");
  EXPECT_THAT(schema, HasSubstr(R"("ttl":{"type":["number","null"],"default":86400000,"description":)"));
  EXPECT_THAT(schema, HasSubstr("The range is 10000 to 604800000."));
  EXPECT_THAT(schema, HasSubstr(R"("executionTimeout":{"type":["number","null"],"description":)"))
      << "the default is the endpoint's";
}

// A fault in a schema's keywords would be a fault in the whole description.
TEST(Openapi, TheDescriptionIsJson) {
  EXPECT_TRUE(json::valid(openapiText()));
  EXPECT_THAT(openapiText(), HasSubstr(R"("TemplateInput":)"));
}

}  // namespace
}  // namespace jobq
