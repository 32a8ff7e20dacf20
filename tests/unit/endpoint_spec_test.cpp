// Tests of the one table of an endpoint's fields (core/config/endpoint_spec.h): records of earlier versions, the same
// bounds for the API and the file, and the fields of a release.
#include "core/config/endpoint_spec.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "jobq/error.h"

namespace jobq {
namespace {

using testing::HasSubstr;
using testing::Not;

constexpr const char* kDefaultRecord =
    R"({"id":"","name":"","templateId":"","workersMin":0,"workersMax":3,"idleTimeout":5,"scalerType":"QUEUE_DELAY",)"
    R"("scalerValue":4,"executionTimeoutMs":600000,"flashboot":false,"computeType":"GPU","gpuCount":1,"gpuTypeIds":[],)"
    R"("allowedCudaVersions":[],"minCudaVersion":"","cpuFlavorIds":[],"vcpuCount":2,"dataCenterIds":[],)"
    R"("networkVolumeId":"","networkVolumeIds":[],"maxAttempts":3,"stopGraceMs":5000,"maxStuck":null,)"
    R"("isolation":"thread","maxQueued":null,"queuePolicy":"","filters":null,"retention":{},"webhookRetries":{},)"
    R"("rateLimits":{},"webhookSecret":"",)"
    R"("createdAt":"","userId":"","version":1,"static":false,"paused":false,"env":{},"instanceIds":[],)"
    R"("templateRecord":0,"deleting":false,"sealed":""})";

constexpr const char* kOldRecord =
    R"({"id":"ep","templateId":"t","workersMin":1,"workersMax":2,"idleTimeout":60,"scalerType":"REQUEST_COUNT",)"
    R"("scalerValue":9,"executionTimeoutMs":5000,"maxAttempts":7,"stopGraceMs":0,"maxStuck":4,"filters":["a"],)"
    R"("retention":{"run":1000},"rateLimits":{"run":{"windowMs":5}},"version":6,"templateRecord":12,"deleting":true})";

const FormField<EndpointSpec>& row(const std::string& name) {
  for (const auto& field : endpointFields()) {
    if (field.name == name) return field;
  }
  throw Error("there is no row " + name);
}

TEST(EndpointSpecTest, ARecordHasTheBytesOfEarlierVersions) {
  EXPECT_EQ(writeForm(EndpointSpec(), endpointFields(), true), kDefaultRecord);
}

TEST(EndpointSpecTest, ARecordIsReadIntoTypedMembers) {
  EndpointSpec spec;
  ASSERT_TRUE(readRecord(spec, kOldRecord, endpointFields()));
  EXPECT_EQ(spec.idleTimeout, Millis(60'000));
  EXPECT_EQ(spec.scaling, (Scaling{ScalerType::requestCount, 9}));
  EXPECT_EQ(spec.executionTimeout, Millis(5'000));
  EXPECT_EQ(spec.stopGrace, Millis(0));
  EXPECT_EQ(spec.maxStuck, 4U);
  EXPECT_EQ(spec.filters, std::vector<std::string>{"a"});
  EXPECT_EQ(spec.runRetention, Millis(1'000));
  EXPECT_EQ(spec.limits[static_cast<std::size_t>(Operation::run)].window, Millis(5));
  EXPECT_EQ(spec.version, 6U);
  EXPECT_EQ(spec.templateRecord, 12U);
  EXPECT_TRUE(spec.deleting);
}

TEST(EndpointSpecTest, TheImageIsInTheFileOnly) {
  EndpointSpec spec;
  spec.image = "plugin/echo";
  EXPECT_THAT(writeForm(spec, endpointFields(), false), Not(HasSubstr("image")));
  EXPECT_FALSE(readForm(spec, R"({"image":"plugin/other"})", endpointFields(), "an endpoint", true).empty());
  EXPECT_EQ(spec.image, "plugin/echo");
}

TEST(EndpointSpecTest, TheFileAndTheApiHaveTheSameBounds) {
  for (const char* name : {"workersMin", "workersMax", "maxStuck", "maxAttempts", "scalerValue"}) {
    EndpointSpec spec;
    for (const char* number : {"-1", "1000001"}) {
      EXPECT_THROW(row(name).setting.parse(spec, name, number), ConfigError) << name;
      EXPECT_FALSE(row(name).read(spec, {json::Kind::number, number})) << name;
    }
  }
  EndpointSpec spec;
  row("executionTimeoutMs").setting.parse(spec, "executionTimeout", "7d");
  EXPECT_EQ(spec.executionTimeout, Millis(604'800'000));
  EXPECT_THROW(row("executionTimeoutMs").setting.parse(spec, "executionTimeout", "8d"), ConfigError);
  EXPECT_FALSE(row("executionTimeoutMs").read(spec, {json::Kind::number, "604800001"}));
}

TEST(EndpointSpecTest, OnlyADifferentTemplateMakesARelease) {
  EndpointSpec before;
  before.templateId = "t";
  EndpointSpec after = before;
  after.workersMax = 9;
  after.queuePolicy = "fifo";
  EXPECT_FALSE(needsRelease(before, after));
  after.templateId = "u";
  EXPECT_TRUE(needsRelease(before, after));
}

}  // namespace
}  // namespace jobq
