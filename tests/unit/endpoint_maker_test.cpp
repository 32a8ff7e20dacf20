// Tests of making an endpoint from its description by the API or the file (core/endpoints/endpoint_maker.h).
#include "core/endpoints/endpoint_maker.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "endpoint_fixture.h"

namespace jobq {
namespace {

using testing::HasSubstr;

class EndpointMakerTest : public testing::Test, protected test::EndpointFixture {
 protected:
  EndpointMakerTest() {
    form_.id = "ep";
    form_.templateId = "t";
  }
  EndpointPtr make(const std::string& image, const EndpointPtr& before = nullptr) {
    return makeEndpoint(form_, {"t", image, {{"A", "1"}}}, resolver(), before);
  }

  EndpointSpec form_;
};

TEST_F(EndpointMakerTest, TheRulesAreThoseOfTheForm) {
  form_.workersMin = 2;
  form_.workersMax = 7;
  form_.idleTimeout = 60;
  form_.stopGraceMs = 123;
  form_.runRetentionMs = 5'000;
  form_.scalerType = "REQUEST_COUNT";
  form_.scalerValue = 9;
  const EndpointPtr endpoint = make("plugin/echo");
  EXPECT_EQ(endpoint->workersMin, 2U);
  EXPECT_EQ(endpoint->workersMax, 7U);
  EXPECT_EQ(endpoint->maxStuck, 7U) << "as many as workersMax unless it is said";
  EXPECT_EQ(endpoint->idleTimeout, Millis(60'000));
  EXPECT_EQ(endpoint->stopGrace, Millis(123));
  EXPECT_EQ(endpoint->runRetention, Millis(5'000));
  EXPECT_FALSE(endpoint->runsyncRetention);
  EXPECT_EQ(endpoint->scaling, (Scaling{ScalerType::requestCount, 9}));
  EXPECT_EQ(endpoint->env.at("A"), "1");
  EXPECT_EQ(endpoint->policy, &storage.policy);
  form_.maxStuck = 1;
  EXPECT_EQ(make("plugin/echo")->maxStuck, 1U);
}

TEST_F(EndpointMakerTest, TheReleaseOfTheSameVersionIsTheSameObject) {
  const EndpointPtr before = make("plugin/echo");
  form_.workersMax = 9;
  EXPECT_EQ(make("plugin/echo", before)->release, before->release);
  ++form_.version;
  EXPECT_NE(make("plugin/echo", before)->release, before->release);
}

TEST_F(EndpointMakerTest, WhatCannotRunHasAFaultAndTheReleaseBeforeGoesOn) {
  const EndpointPtr before = make("plugin/echo");
  ++form_.version;
  const EndpointPtr broken = make("plugin/other", before);
  EXPECT_THAT(broken->fault, HasSubstr("there is no handler other"));
  EXPECT_EQ(broken->release, before->release);
  const EndpointPtr first = make("");
  EXPECT_THAT(first->fault, HasSubstr("the template t does not exist"));
  EXPECT_EQ(first->release, nullptr);
}

TEST_F(EndpointMakerTest, WithoutItsPolicyTheServersRanksTheJobs) {
  form_.queuePolicy = "gone";
  const EndpointPtr endpoint = make("plugin/other");
  EXPECT_THAT(endpoint->fault, HasSubstr("there is no handler other; there is no policy gone"));
  EXPECT_EQ(endpoint->policy, &storage.policy);
}

TEST_F(EndpointMakerTest, AFaultOfAnImageOrAFilterIsOneSentence) {
  handlers.scripts = {"good"};
  EXPECT_EQ(imageFault("plugin/echo", resolver()), std::nullopt);
  EXPECT_EQ(imageFault("lua/good", resolver()), std::nullopt);
  EXPECT_EQ(imageFault("ghcr.io/me/worker:1", resolver()), std::nullopt) << "remote workers run it";
  EXPECT_EQ(imageFault("lua/bad", resolver()), "lua/bad cannot run: there is no such script");
  EXPECT_EQ(imageFault("plugin/other", resolver()), "there is no handler other");
  EXPECT_EQ(filterFault({}, resolver()), std::nullopt);
  EXPECT_EQ(filterFault({"gone"}, resolver()), "gone cannot run: there is no filter gone");
  EXPECT_NE(filterFault({"a b"}, resolver()), std::nullopt);
}

TEST_F(EndpointMakerTest, AnEndpointOfTheFileKnowsMilliseconds) {
  EndpointConfig config = fixedEndpoint("fixed");
  config.idleTimeout = Millis(1'500);
  config.webhookKey = "its own";
  config.filters = std::vector<std::string>{};
  const EndpointEntry entry = makeStatic(config, resolver());
  EXPECT_TRUE(entry.form.isStatic);
  EXPECT_EQ(entry.endpoint->idleTimeout, Millis(1'500));
  EXPECT_EQ(entry.endpoint->webhookKey, "its own");
  config.image = "lua/";
  EXPECT_THROW((void)makeStatic(config, resolver()), ConfigError);
}

}  // namespace
}  // namespace jobq
