// Tests of the calls on templates (core/endpoints/template_service.h).
#include "core/endpoints/template_service.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "endpoint_fixture.h"

namespace jobq {
namespace {

using testing::HasSubstr;
using testing::Not;

class TemplateServiceTest : public testing::Test, protected test::EndpointFixture {
 protected:
  /// Returns the faults as `field: message` lines, or an empty string after a successful call.
  template <class Result>
  static std::string faultsOf(const Result& result) {
    std::string all;
    if (!result) {
      for (const FieldFault& fault : result.failure().faults) all += fault.field + ": " + fault.message + "\n";
    }
    return all;
  }

  Node node_{*this};
};

TEST_F(TemplateServiceTest, ANewTemplateIsStoredAndKnownAndTheEnvIsSealed) {
  const auto made = node_.templates.create(R"({"name":"t","imageName":"plugin/echo","env":{"TOKEN":"s3cr3t"}})");
  const auto& form = *made;
  EXPECT_EQ(form.env.at("TOKEN"), "s3cr3t");
  ASSERT_NE(node_.registry.findTemplate(form.id), nullptr);
  EXPECT_EQ(node_.registry.findTemplate(form.id)->form.env, form.env);
  EXPECT_THAT(storage.real->records().find(kTemplateKind, form.id)->body, Not(HasSubstr("s3cr3t")));
}

TEST_F(TemplateServiceTest, EveryWrongFieldIsNamed) {
  const std::string faults = faultsOf(node_.templates.create(R"({"ports":["x"],"category":"TPU","nme":"t"})"));
  for (const char* field : {"ports: ports must hold", "category: category must be one of", "nme: nme is not a field",
                            "name: name is missing", "imageName: imageName is missing"}) {
    EXPECT_THAT(faults, HasSubstr(field));
  }
  EXPECT_THAT(faults, HasSubstr("the nearest one is name"));
  EXPECT_TRUE(storage.real->records().list(kTemplateKind).empty());
}

TEST_F(TemplateServiceTest, ATemplateInUseGetsNoImageCloseToALocalOne) {
  const std::string id = createTemplate(node_, "t");
  EXPECT_EQ(faultsOf(node_.templates.update(id, R"({"imageName":"Plugin/echo"})")), "") << "no endpoint uses it";
  EXPECT_EQ(faultsOf(node_.templates.update(id, R"({"imageName":"plugin/echo"})")), "");
  EXPECT_TRUE(node_.endpoints.create(R"({"templateId":")" + id + R"("})"));
  EXPECT_EQ(
      faultsOf(node_.templates.update(id, R"({"imageName":"plugins/echo"})")),
      "imageName: imageName plugins/echo names remote workers, and is close to plugin/echo: write plugin/echo, or "
      "give the image of the workers another name\n");
  EXPECT_THAT(faultsOf(node_.templates.update(id, R"({"imageName":"my echo"})")), HasSubstr("has a blank"));
  EXPECT_EQ(faultsOf(node_.templates.update(id, R"({"imageName":"acme/echo:1"})")), "");
}

TEST_F(TemplateServiceTest, ACommandWithANulIsRefused) {
  const std::string faults = faultsOf(node_.templates.create(
      R"({"name":"t","imageName":"acme/worker:1","dockerEntrypoint":["a","b\u0000"],"dockerStartCmd":["\u0000"]})"));
  EXPECT_THAT(faults, HasSubstr("dockerEntrypoint holds a NUL"));
  EXPECT_THAT(faults, HasSubstr("dockerStartCmd holds a NUL"));
  const std::string id = createTemplate(node_, "t");
  EXPECT_THAT(faultsOf(node_.templates.update(id, R"({"dockerStartCmd":["\u0000"]})")),
              HasSubstr("dockerStartCmd holds a NUL"));
}

// An older server has stored it. Other fields can be changed.
TEST_F(TemplateServiceTest, AStoredCommandWithANulStays) {
  const std::string id = createTemplate(node_, "t");
  Record record = *storage.real->records().find(kTemplateKind, id);
  const std::string empty = R"("dockerStartCmd":[])";
  record.body.replace(record.body.find(empty), empty.size(), R"("dockerStartCmd":["\u0000"])");
  (void)storage.real->records().update(record, record.version);
  const auto changed = node_.templates.update(id, R"({"readme":"how"})");
  ASSERT_TRUE(changed);
  EXPECT_EQ(changed->dockerStartCmd, std::vector<std::string>{std::string(1, '\0')});
}

TEST_F(TemplateServiceTest, ANameIsTakenOnce) {
  const std::string first = createTemplate(node_, "t");
  EXPECT_THAT(faultsOf(node_.templates.create(R"({"name":"t","imageName":"plugin/echo"})")),
              HasSubstr("name t is the name of template " + first));
  const std::string second = createTemplate(node_, "u");
  EXPECT_THAT(faultsOf(node_.templates.update(second, R"({"name":"t"})")), HasSubstr("name t is the name of"));
}

TEST_F(TemplateServiceTest, AnUpdateChangesOnlyTheNamedFields) {
  const std::string id = createTemplate(node_, "t");
  (void)node_.templates.update(id, R"({"readme":"how","volumeInGb":7})");
  const auto changed = node_.templates.update(id, R"({"volumeInGb":8})");
  EXPECT_EQ(changed->readme, "how");
  EXPECT_EQ(node_.registry.findTemplate(id)->form.volumeInGb, 8);
}

TEST_F(TemplateServiceTest, AnUpdateWithoutAChangeIsNotARelease) {
  const std::string id = createTemplate(node_, "t");
  const EndpointId endpoint = createEndpoint(node_, id);
  (void)node_.templates.update(id, R"({"env":{"A":"1"}})");
  ASSERT_EQ(node_.registry.find(endpoint)->spec.version, 2U);
  (void)node_.templates.update(id, R"({"env":{"A":"1"}})");
  EXPECT_EQ(node_.registry.find(endpoint)->spec.version, 2U);
}

TEST_F(TemplateServiceTest, AFieldFixedAtCreationDoesNotChange) {
  const std::string id = createTemplate(node_, "t");
  EXPECT_THAT(faultsOf(node_.templates.update(id, R"({"category":"CPU"})")), HasSubstr("is fixed when it is created"));
}

TEST_F(TemplateServiceTest, AnUpdateKeepsAConcurrentChangeOfADifferentNode) {
  Node other(*this);
  const std::string id = createTemplate(node_, "t");
  other.registry.refresh();
  (void)other.templates.update(id, R"({"readme":"theirs"})");
  (void)node_.templates.update(id, R"({"volumeInGb":8})");
  EXPECT_EQ(node_.registry.findTemplate(id)->form.readme, "theirs");
  EXPECT_EQ(node_.registry.findTemplate(id)->form.volumeInGb, 8);
}

TEST_F(TemplateServiceTest, AUsedTemplateIsNotRemoved) {
  const std::string id = createTemplate(node_, "t");
  const EndpointId endpoint = createEndpoint(node_, id);
  EXPECT_THAT(faultsOf(node_.templates.remove(id)), HasSubstr("is used by endpoint " + endpoint));
  EXPECT_NE(node_.registry.findTemplate(id), nullptr);
  (void)node_.endpoints.remove(endpoint);
  EXPECT_TRUE(node_.templates.remove(id));
  EXPECT_EQ(node_.registry.findTemplate(id), nullptr);
}

TEST_F(TemplateServiceTest, TheNameOfARemovedTemplateIsFree) {
  const std::string id = createTemplate(node_, "t");
  ASSERT_TRUE(node_.templates.remove(id));
  EXPECT_NE(createTemplate(node_, "t"), id);
}

TEST_F(TemplateServiceTest, AnUnknownTemplateIsUnknownToEveryCall) {
  const std::string removed = createTemplate(node_, "t");
  (void)node_.templates.remove(removed);
  for (const std::string& id : {std::string("nothing"), removed}) {
    EXPECT_EQ(node_.templates.update(id, "{}").failure().kind, Failure::Kind::notFound);
    EXPECT_EQ(node_.templates.remove(id).failure().kind, Failure::Kind::notFound);
  }
}

TEST_F(TemplateServiceTest, AFailingStorageChangesNothing) {
  storage.faults.failNext("records.create");
  EXPECT_THROW((void)node_.templates.create(R"({"name":"t","imageName":"plugin/echo"})"), StorageError);
  const std::string id = createTemplate(node_, "t");
  storage.faults.failNext("records.update");
  EXPECT_THROW((void)node_.templates.update(id, R"({"readme":"how"})"), StorageError);
  node_.registry.refresh();
  EXPECT_EQ(node_.registry.findTemplate(id)->form.readme, "");
}

}  // namespace
}  // namespace jobq
