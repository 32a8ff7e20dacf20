// Tests of the calls on endpoints (core/endpoints/endpoint_service.h).
#include "core/endpoints/endpoint_service.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "endpoint_fixture.h"

namespace jobq {
namespace {

using testing::HasSubstr;
using testing::IsEmpty;
using testing::Not;

class EndpointServiceTest : public testing::Test, protected test::EndpointFixture {
 protected:
  template <class Result>
  static std::string refusal(const Result& result) {
    std::string all;
    if (!result) {
      for (const FieldFault& fault : result.failure().faults) all += fault.field + ": " + fault.message + "\n";
    }
    return all;
  }
  std::string refusalOf(const std::string& body) { return refusal(node_.endpoints.create(body)); }
  const EndpointSpec& formOf(const EndpointId& id) { return node_.registry.entry(id)->spec; }

  Node node_{*this, {fixedEndpoint("fixed")}};
  const std::string template_ = createTemplate(node_, "t");
};

TEST_F(EndpointServiceTest, ANewEndpointHasTheDefaultsAndARelease) {
  const EndpointId id = createEndpoint(node_, template_);
  const EndpointPtr endpoint = node_.registry.find(id);
  EXPECT_EQ(endpoint->spec.workersMin, 0U);
  EXPECT_EQ(endpoint->spec.workersMax, 3U);
  EXPECT_EQ(endpoint->spec.idleTimeout, Millis(5'000));
  EXPECT_EQ(endpoint->spec.executionTimeout, Millis(600'000));
  EXPECT_EQ(endpoint->release->templateId, template_);
  EXPECT_EQ(formOf(id).createdAt, "2026-01-01T00:00:00.000Z");
}

TEST_F(EndpointServiceTest, EveryWrongFieldIsNamed) {
  const std::string faults = refusalOf(R"({"workersMin":5,"workersMax":2,"idleTimeout":0,"queuePolicy":"none",)"
                                       R"("filters":["a","a"],"rateLimits":{"rn":{}}})");
  for (const char* part :
       {"templateId: templateId is missing", "workersMin: workersMin is greater than workersMax",
        "idleTimeout: ", "queuePolicy: queuePolicy none cannot be used: there is no policy none",
        "filters: filters has a wrong list", "rateLimits: rateLimits has no rn; the nearest one is run"}) {
    EXPECT_THAT(faults, HasSubstr(part));
  }
  EXPECT_TRUE(storage.real->records().list(kEndpointKind).empty());
}

TEST_F(EndpointServiceTest, ATemplateMustExistAndBeAbleToRun) {
  EXPECT_THAT(refusalOf(R"({"templateId":"nothing"})"), HasSubstr("templateId nothing is not a template"));
  const std::string broken = createTemplate(node_, "b", "plugin/other");
  EXPECT_THAT(refusalOf(R"({"templateId":")" + broken + "\"}"), HasSubstr("there is no handler other"));
}

TEST_F(EndpointServiceTest, AFilterMustBeAbleToRun) {
  EXPECT_THAT(refusalOf(R"({"templateId":")" + template_ + R"(","filters":["nothing"]})"),
              HasSubstr("filters cannot be used: nothing cannot run"));
}

TEST_F(EndpointServiceTest, AnUpdateChangesOnlyTheNamedFields) {
  const EndpointId id = createEndpoint(node_, template_);
  (void)node_.endpoints.update(id, R"({"workersMax":9,"retention":{"run":5000}})");
  (void)node_.endpoints.update(id, R"({"idleTimeout":60})");
  EXPECT_EQ(node_.registry.find(id)->spec.workersMax, 9U);
  EXPECT_EQ(node_.registry.find(id)->spec.runRetention, Millis(5'000));
  EXPECT_EQ(node_.registry.find(id)->spec.idleTimeout, Millis(60'000));
  EXPECT_EQ(node_.registry.find(id)->spec.version, 1U);
}

TEST_F(EndpointServiceTest, ADifferentTemplateIsARelease) {
  const EndpointId id = createEndpoint(node_, template_);
  const std::string next = createTemplate(node_, "u");
  (void)node_.endpoints.update(id, R"({"templateId":")" + next + "\"}");
  EXPECT_EQ(node_.registry.find(id)->spec.version, 2U);
  EXPECT_EQ(node_.registry.find(id)->release->templateId, next);
}

TEST_F(EndpointServiceTest, AWebhookSecretIsKeptSealedAndNeverTold) {
  const auto made = node_.endpoints.create(R"({"templateId":")" + template_ + R"(","webhookSecret":"whsec_c2VjcmV0"})");
  const EndpointId id = (*made)->spec.id;
  EXPECT_EQ(node_.registry.find(id)->webhookKey, "secret");
  EXPECT_THAT(storage.real->records().find(kEndpointKind, id)->body, Not(HasSubstr("c2VjcmV0")));
  EXPECT_THAT(writeForm(formOf(id), endpointFields(), false), Not(HasSubstr("webhookSecret")));
}

TEST_F(EndpointServiceTest, AnEndpointOfTheFileDoesNotChange) {
  EXPECT_THAT(refusal(node_.endpoints.update("fixed", R"({"workersMax":9})")), HasSubstr("configuration file"));
  EXPECT_THAT(refusal(node_.endpoints.remove("fixed")), HasSubstr("configuration file"));
  EXPECT_EQ(node_.registry.find("fixed")->spec.workersMax, 3U);
}

TEST_F(EndpointServiceTest, AnUpdateKeepsAConcurrentChangeOfADifferentNode) {
  const EndpointId id = createEndpoint(node_, template_);
  Node other(*this);
  other.registry.refresh();
  (void)other.endpoints.update(id, R"({"workersMax":9})");
  (void)node_.endpoints.update(id, R"({"idleTimeout":60})");
  EXPECT_EQ(node_.registry.find(id)->spec.workersMax, 9U);
  EXPECT_EQ(node_.registry.find(id)->spec.idleTimeout, Millis(60'000));
}

TEST_F(EndpointServiceTest, APauseIsToldAtOnceAndTwiceIsOnce) {
  const EndpointId id = createEndpoint(node_, template_);
  for (int times = 0; times < 2; ++times) {
    const auto paused = node_.endpoints.pause(id, true);
    EXPECT_TRUE((*paused)->spec.paused);
    EXPECT_TRUE(node_.registry.find(id)->spec.paused);
  }
  for (int times = 0; times < 2; ++times) {
    const auto resumed = node_.endpoints.pause(id, false);
    EXPECT_FALSE((*resumed)->spec.paused);
  }
  EXPECT_EQ(node_.endpoints.pause("nothing", true).failure().kind, Failure::Kind::notFound);
}

TEST_F(EndpointServiceTest, ARemovedEndpointIsUnknownToEveryCall) {
  const EndpointId id = createEndpoint(node_, template_);
  EXPECT_TRUE(node_.endpoints.remove(id));
  EXPECT_EQ(node_.endpoints.remove(id).failure().kind, Failure::Kind::notFound);
  EXPECT_EQ(node_.endpoints.update(id, "{}").failure().kind, Failure::Kind::notFound);
  EXPECT_EQ(node_.endpoints.pause(id, true).failure().kind, Failure::Kind::notFound);
  EXPECT_TRUE(storage.real->records().list(kPauseKind).empty());
}

TEST_F(EndpointServiceTest, AStoredRecordIsAnsweredBeforeTheRegistryCanReadTheRecord) {
  const EndpointId id = createEndpoint(node_, template_);
  storage.faults.failOperation("records.changedSince");
  const auto changed = node_.endpoints.update(id, R"({"workersMax":9})");
  EXPECT_EQ((*changed)->spec.workersMax, 9);
  EXPECT_EQ(node_.registry.find(id)->spec.workersMax, 3U);
  storage.faults.heal();
  node_.registry.refresh();
  EXPECT_EQ(node_.registry.find(id)->spec.workersMax, 9U);
}

TEST_F(EndpointServiceTest, AFailingStorageLeavesNoEndpointBehind) {
  for (int failing = 1; failing <= 3; ++failing) {
    storage.faults.failCall("records.find", static_cast<std::uint64_t>(failing), fault::CallFault::before);
    EXPECT_THROW((void)node_.endpoints.create(R"({"templateId":")" + template_ + "\"}"), StorageError) << failing;
    EXPECT_THAT(storage.real->records().list(kEndpointKind), IsEmpty())
        << "the caller repeats a creation after the answer 503";
  }
}

}  // namespace
}  // namespace jobq
