// Tests of making an endpoint from its description by the API or the file (core/endpoints/endpoint_maker.h).
#include "core/endpoints/endpoint_maker.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "endpoint_fixture.h"
#include "jobq/error.h"

namespace jobq {
namespace {

using testing::HasSubstr;
using testing::ThrowsMessage;

class EndpointMakerTest : public testing::Test, protected test::EndpointFixture {
 protected:
  EndpointMakerTest() {
    spec_.id = "ep";
    spec_.templateId = "t";
    spec_.env = {{"A", "1"}};
  }
  EndpointPtr make(const std::string& image, const EndpointPtr& before = nullptr) {
    spec_.image = image;
    return makeEndpoint(spec_, plugins, before);
  }

  EndpointSpec spec_;
};

TEST_F(EndpointMakerTest, WithoutThePolicyOfTheServerTheReasonIsTold) {
  plugins.policyOfServerFails = true;
  EXPECT_THAT([this] { (void)make("plugin/echo"); }, ThrowsMessage<ConfigError>(HasSubstr("refuses its settings")));
}

TEST_F(EndpointMakerTest, TheEndpointHasTheRulesOfTheForm) {
  spec_.workersMin = 2;
  spec_.workersMax = 7;
  spec_.idleTimeout = Millis(60'000);
  spec_.stopGrace = Millis(123);
  spec_.runRetention = Millis(5'000);
  spec_.scaling = {ScalerType::requestCount, 9};
  const EndpointPtr endpoint = make("plugin/echo");
  EXPECT_EQ(endpoint->spec.workersMin, 2U);
  EXPECT_EQ(endpoint->spec.workersMax, 7U);
  EXPECT_EQ(endpoint->maxStuck(), 7U) << "the default is workersMax";
  EXPECT_EQ(endpoint->spec.idleTimeout, Millis(60'000));
  EXPECT_EQ(endpoint->spec.stopGrace, Millis(123));
  EXPECT_EQ(endpoint->spec.runRetention, Millis(5'000));
  EXPECT_FALSE(endpoint->spec.runsyncRetention);
  EXPECT_EQ(endpoint->spec.scaling, (Scaling{ScalerType::requestCount, 9}));
  EXPECT_EQ(endpoint->spec.env.at("A"), "1");
  EXPECT_EQ(endpoint->policy, &storage.policy);
  EXPECT_EQ(endpoint->maxQueued(), 1'000'000U);
  plugins.serverDefaults.maxQueued = 9;
  EXPECT_EQ(make("plugin/echo")->maxQueued(), 9U) << "the server's";
  spec_.maxQueued = 5;
  EXPECT_EQ(make("plugin/echo")->maxQueued(), 5U);
  spec_.maxStuck = 1;
  EXPECT_EQ(make("plugin/echo")->maxStuck(), 1U);
}

TEST_F(EndpointMakerTest, TheReleaseOfTheSameVersionIsTheSameObject) {
  const EndpointPtr before = make("plugin/echo");
  spec_.workersMax = 9;
  EXPECT_EQ(make("plugin/echo", before)->release, before->release);
  ++spec_.version;
  EXPECT_NE(make("plugin/echo", before)->release, before->release);
}

TEST_F(EndpointMakerTest, AnUnusableEndpointHasAFaultAndTheFormerReleaseGoesOn) {
  const EndpointPtr before = make("plugin/echo");
  ++spec_.version;
  const EndpointPtr broken = make("plugin/other", before);
  EXPECT_THAT(broken->runnable.failure().message(), HasSubstr("there is no handler other"));
  EXPECT_EQ(broken->release, before->release);
  const EndpointPtr first = make("");
  EXPECT_THAT(first->runnable.failure().message(), HasSubstr("the template t does not exist"));
  EXPECT_EQ(first->release, nullptr);
}

TEST_F(EndpointMakerTest, AFailureWithoutAReasonIsAFailure) {
  EXPECT_FALSE(make("plugin/silent")->runnable);
  EXPECT_THROW((void)makeStatic(spec_, plugins), ConfigError);
}

TEST_F(EndpointMakerTest, WithoutAPolicyOfTheEndpointTheServersPolicyRanksTheJobs) {
  spec_.queuePolicy = "gone";
  const EndpointPtr endpoint = make("plugin/other");
  EXPECT_THAT(endpoint->runnable.failure().message(), HasSubstr("there is no handler other; there is no policy gone"));
  EXPECT_EQ(endpoint->policy, &storage.policy);
}

TEST_F(EndpointMakerTest, AFaultOfAnImageOrAFilterIsASingleSentence) {
  plugins.handlers.scripts = {"good"};
  EXPECT_TRUE(checkImage("plugin/echo", plugins));
  EXPECT_TRUE(checkImage("lua/good", plugins));
  EXPECT_TRUE(checkImage("ghcr.io/me/worker:1", plugins)) << "the image is accepted, and the jobs wait";
  EXPECT_EQ(checkImage("lua/bad", plugins).failure().message(), "lua/bad cannot run: there is no such script");
  EXPECT_EQ(checkImage("plugin/other", plugins).failure().message(), "there is no handler other");
  EXPECT_THAT(checkImage("Plugin/echo", plugins).failure().message(), HasSubstr("is close to plugin/echo"));
  EXPECT_TRUE(checkFilters({}, plugins));
  EXPECT_EQ(checkFilters({"gone"}, plugins).failure().message(), "gone cannot run: there is no filter gone");
  EXPECT_FALSE(checkFilters({"a b"}, plugins));
}

TEST_F(EndpointMakerTest, AnEndpointOfTheFileKnowsMilliseconds) {
  EndpointSpec spec = fixedEndpoint("fixed");
  spec.idleTimeout = Millis(1'500);
  spec.webhookSecret = "its own";
  spec.filters = std::vector<std::string>{};
  const EndpointPtr endpoint = makeStatic(spec, plugins);
  EXPECT_TRUE(endpoint->spec.isStatic);
  EXPECT_EQ(endpoint->spec.idleTimeout, Millis(1'500));
  EXPECT_EQ(endpoint->webhookKey, "its own");
  spec.image = "lua/";
  EXPECT_THROW((void)makeStatic(spec, plugins), ConfigError);
}

}  // namespace
}  // namespace jobq
