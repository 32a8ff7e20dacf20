// Tests of the known endpoints and templates on every node of a shared storage (core/endpoints/endpoint_registry.h).
#include "core/endpoints/endpoint_registry.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <future>

#include "endpoint_fixture.h"
#include "testkit/thrown_text.h"
#include "testkit/wait_for.h"

namespace jobq {
namespace {

using test::holdsSoon;
using testing::Contains;
using testing::ElementsAre;
using testing::HasSubstr;
using testing::IsEmpty;

class EndpointRegistryTest : public testing::Test, protected test::EndpointFixture {
 protected:
  static std::vector<EndpointId> idsOf(const std::vector<EndpointPtr>& endpoints) {
    std::vector<EndpointId> ids;
    for (const EndpointPtr& endpoint : endpoints) ids.push_back(endpoint->spec.id);
    return ids;
  }
};

TEST_F(EndpointRegistryTest, EndpointsOfTheFileAreKnownAtOnce) {
  const Node node(*this, {fixedEndpoint("b"), fixedEndpoint("a")});
  EXPECT_THAT(idsOf(node.registry.all()), ElementsAre("a", "b"));
  const EndpointPtr found = node.registry.find("a");
  ASSERT_NE(found, nullptr);
  EXPECT_EQ(found->spec.image, "plugin/echo");
  EXPECT_NE(found->release, nullptr);
  EXPECT_TRUE(node.registry.entry("a")->spec.isStatic);
  EXPECT_EQ(node.registry.find("c"), nullptr);
}

TEST_F(EndpointRegistryTest, AnUnusableEndpointOfTheFileStopsTheServer) {
  const auto refusal = [this](const EndpointSpec& config) {
    return testkit::thrownText<ConfigError>([&] { const Node node(*this, {config}); });
  };
  EXPECT_THAT(refusal(fixedEndpoint("a", "plugin/other")), HasSubstr("endpoint.a"));
  EXPECT_THAT(refusal(fixedEndpoint("a", "plugin/")), HasSubstr("endpoint.a.image"));
  EXPECT_THAT(refusal(fixedEndpoint("a", "lua/none")), HasSubstr("there is no such script"));
  EndpointSpec filtered = fixedEndpoint("a");
  filtered.filters = std::vector<std::string>{"nothing"};
  EXPECT_THAT(refusal(filtered), HasSubstr("endpoint.a.filters: nothing cannot run: there is no filter nothing"));
}

TEST_F(EndpointRegistryTest, UnusableFiltersOfTheServerStopTheServer) {
  plugins.serverDefaults.filters = {"nothing"};
  EXPECT_THROW(Node(*this, {}), ConfigError);
}

TEST_F(EndpointRegistryTest, AStoredEndpointIsKnownToANodeAfterARefresh) {
  Node one(*this);
  Node two(*this);
  const std::string form = createTemplate(one, "t");
  const EndpointId id = createEndpoint(one, form);
  EXPECT_NE(one.registry.find(id), nullptr) << "the creating node knows the endpoint";
  EXPECT_EQ(two.registry.find(id), nullptr);
  two.registry.refresh();
  ASSERT_NE(two.registry.find(id), nullptr);
  EXPECT_EQ(two.registry.findTemplate(form)->form.name, "t");
  EXPECT_EQ(two.registry.templates().size(), 1U);
  EXPECT_THAT(two.heard, ElementsAre(id + " 1"));
}

TEST_F(EndpointRegistryTest, ARefreshWithoutNewsNotifiesNoListener) {
  Node node(*this);
  const EndpointId id = createEndpoint(node, createTemplate(node, "t"));
  node.heard.clear();
  const EndpointPtr before = node.registry.find(id);
  node.registry.refresh();
  EXPECT_THAT(node.heard, IsEmpty());
  EXPECT_EQ(node.registry.find(id), before);
}

TEST_F(EndpointRegistryTest, AChangeOfTheRulesKeepsTheRelease) {
  Node node(*this);
  const EndpointId id = createEndpoint(node, createTemplate(node, "t"));
  const ReleasePtr release = node.registry.find(id)->release;
  (void)node.endpoints.update(id, R"({"workersMax":9})");
  EXPECT_EQ(node.registry.find(id)->spec.workersMax, 9U);
  EXPECT_EQ(node.registry.find(id)->release, release) << "no worker is replaced";
  EXPECT_THAT(node.heard, ElementsAre(id + " 1", id + " 1"));
}

TEST_F(EndpointRegistryTest, AChangedTemplateReleasesEachEndpointWithTheTemplate) {
  Node one(*this);
  Node two(*this);
  const std::string form = createTemplate(one, "t");
  const EndpointId first = createEndpoint(one, form);
  const EndpointId second = createEndpoint(one, form);
  const EndpointId other = createEndpoint(one, createTemplate(one, "o"));
  (void)one.templates.update(form, R"({"env":{"CITY":"Ulm"}})");
  two.registry.refresh();
  for (Node* node : {&one, &two}) {
    for (const EndpointId& id : {first, second}) {
      EXPECT_EQ(node->registry.find(id)->spec.version, 2U);
      EXPECT_EQ(node->registry.find(id)->release->version, 2U);
      EXPECT_EQ(node->registry.find(id)->release->env.at("CITY"), "Ulm");
    }
    EXPECT_EQ(node->registry.find(other)->spec.version, 1U);
  }
  two.registry.refresh();
  one.registry.refresh();
  EXPECT_EQ(one.registry.find(first)->spec.version, 2U) << "a second node raises the version no further";
}

TEST_F(EndpointRegistryTest, AnInterruptedReleaseIsContinuedByTheNextRefresh) {
  Node node(*this);
  const std::string form = createTemplate(node, "t");
  const EndpointId id = createEndpoint(node, form);
  storage.faults.failNext("records.changedSince");  // the template is stored, and the node cannot read it back
  (void)node.templates.update(form, R"({"env":{"CITY":"Ulm"}})");
  EXPECT_EQ(node.registry.find(id)->spec.version, 1U);
  EXPECT_THAT(storage.log.lines(), Contains(HasSubstr("endpoints.refresh")));
  Node next(*this);
  next.registry.refresh();
  EXPECT_EQ(next.registry.find(id)->spec.version, 2U);
  node.registry.refresh();
  EXPECT_EQ(node.registry.find(id)->spec.version, 2U);
}

TEST_F(EndpointRegistryTest, AFailedRefreshKeepsKnownEndpointsAndLosesNoChange) {
  Node one(*this);
  Node two(*this);
  const EndpointId id = createEndpoint(one, createTemplate(one, "t"));
  for (int failing = 1; failing <= 3; ++failing) {
    storage.faults.failCall("records.changedSince", static_cast<std::uint64_t>(failing), fault::CallFault::before);
    EXPECT_THROW(two.registry.refresh(), StorageError) << "question " << failing;
  }
  two.registry.refresh();
  ASSERT_NE(two.registry.find(id), nullptr);
  EXPECT_TRUE(two.registry.find(id)->runnable) << "the template has been read";
  storage.faults.failOperation("records.changedSince");
  EXPECT_FALSE(two.registry.tryRefresh());
  EXPECT_NE(two.registry.find(id), nullptr);
  storage.faults.heal();
  EXPECT_TRUE(two.registry.tryRefresh());
}

TEST_F(EndpointRegistryTest, ADeletedEndpointIsGoneAndTheJobsAreStillToBeRemoved) {
  Node one(*this);
  Node two(*this);
  const EndpointId id = createEndpoint(one, createTemplate(one, "t"));
  two.registry.refresh();
  (void)one.endpoints.remove(id);
  two.registry.refresh();
  for (Node* node : {&one, &two}) {
    EXPECT_EQ(node->registry.find(id), nullptr);
    EXPECT_THAT(node->registry.leaving(), ElementsAre(id));
    EXPECT_EQ(node->heard.back(), id + " gone");
  }
  one.endpoints.forget(id);
  two.registry.refresh();
  for (Node* node : {&one, &two}) EXPECT_THAT(node->registry.leaving(), IsEmpty());
  EXPECT_FALSE(storage.real->records().find(kEndpointKind, id));
}

TEST_F(EndpointRegistryTest, AnEndpointIsInHandDuringACall) {
  Node node(*this);
  const EndpointId id = createEndpoint(node, createTemplate(node, "t"));
  EndpointPtr old = node.registry.find(id);
  (void)node.endpoints.update(id, R"({"workersMax":9})");
  EndpointPtr call = node.registry.find(id);
  (void)node.endpoints.remove(id);
  EXPECT_TRUE(node.registry.isInUse(id));
  call.reset();
  EXPECT_TRUE(node.registry.isInUse(id)) << "a second call holds the former version";
  old.reset();
  EXPECT_FALSE(node.registry.isInUse(id));
  EXPECT_FALSE(node.registry.isInUse("unknown"));
}

TEST_F(EndpointRegistryTest, APauseIsSeenByEveryNodeAndOfTheFilesEndpointsToo) {
  Node one(*this, {fixedEndpoint("fixed")});
  Node two(*this, {fixedEndpoint("fixed")});
  const EndpointId id = createEndpoint(one, createTemplate(one, "t"));
  for (const EndpointId& each : {id, EndpointId("fixed")}) {
    (void)one.endpoints.pause(each, true);
    two.registry.refresh();
    EXPECT_TRUE(one.registry.find(each)->spec.paused);
    EXPECT_TRUE(two.registry.find(each)->spec.paused);
    EXPECT_EQ(two.registry.find(each)->spec.version, 1U) << "a pause is not a release";
    (void)two.endpoints.pause(each, false);
    one.registry.refresh();
    EXPECT_FALSE(one.registry.find(each)->spec.paused);
    EXPECT_FALSE(two.registry.find(each)->spec.paused);
  }
}

TEST_F(EndpointRegistryTest, ADamagedRecordIsLoggedAndHidesNoOther) {
  Node node(*this);
  const std::string form = createTemplate(node, "t");
  const EndpointId good = createEndpoint(node, form);
  const EndpointId bad = createEndpoint(node, form);
  const auto record = storage.real->records().find(kEndpointKind, bad).value();
  (void)storage.real->records().update({kEndpointKind, bad, "", "{\"workersMin\":\"many\"}", 0, {}}, record.version);
  node.registry.refresh();
  EXPECT_EQ(node.registry.find(bad), nullptr) << "a damaged record is absent, as after a start";
  EXPECT_EQ(node.heard.back(), bad + " gone");
  EXPECT_NE(node.registry.find(good), nullptr);
  EXPECT_THAT(storage.log.lines(), Contains(HasSubstr("endpoints.damaged")));
}

TEST_F(EndpointRegistryTest, AnEndpointBothInTheFileAndInTheStorageStopsTheServer) {
  Node first(*this);
  const EndpointId id = createEndpoint(first, createTemplate(first, "t"));
  Node clash(*this, {fixedEndpoint(id)});
  EXPECT_THAT(testkit::thrownText<ConfigError>([&] { return clash.registry.checkIds(); }), HasSubstr("endpoint." + id));
  Node fine(*this, {fixedEndpoint("fine")});
  EXPECT_NO_THROW(fine.registry.checkIds());
}

TEST_F(EndpointRegistryTest, AnUnusableReleaseKeepsTheLastUsableRelease) {
  Node node(*this);
  const std::string form = createTemplate(node, "t");
  const EndpointId id = createEndpoint(node, form);
  (void)node.templates.update(form, R"({"imageName":"plugin/other"})");
  const EndpointPtr endpoint = node.registry.find(id);
  EXPECT_EQ(endpoint->spec.version, 2U);
  EXPECT_THAT(endpoint->runnable.failure().message(), HasSubstr("there is no handler other"));
  ASSERT_NE(endpoint->release, nullptr);
  EXPECT_EQ(endpoint->release->version, 1U);
}

TEST_F(EndpointRegistryTest, ANewScriptLetsTheReleaseGoOn) {
  plugins.handlers.scripts = {"one"};
  Node node(*this);
  const std::string form = createTemplate(node, "t", "lua/one");
  const EndpointId id = createEndpoint(node, form);
  (void)node.templates.update(form, R"({"imageName":"lua/two"})");
  EXPECT_THAT(node.registry.find(id)->runnable.failure().message(), HasSubstr("there is no such script"));
  node.registry.refresh();
  EXPECT_EQ(node.registry.find(id)->release->script, "one");
  plugins.handlers.scripts.insert("two");
  node.registry.refresh();
  EXPECT_TRUE(node.registry.find(id)->runnable);
  EXPECT_EQ(node.registry.find(id)->release->script, "two");
}

TEST_F(EndpointRegistryTest, AnImageOfRemoteWorkersHasAReleaseWithoutAHandler) {
  Node node(*this);
  const EndpointId id = createEndpoint(node, createTemplate(node, "t", "ghcr.io/me/worker:1"));
  ASSERT_NE(node.registry.find(id)->release, nullptr);
  EXPECT_TRUE(node.registry.find(id)->release->isRemote);
  EXPECT_EQ(node.registry.find(id)->release->handler, nullptr);
  EXPECT_TRUE(node.registry.find(id)->runnable);
}

// A removal takes two steps. After the death of a node between the steps, the next refresh takes the second step
// (core/config/template.h).
TEST_F(EndpointRegistryTest, TheNextRefreshCompletesTheRemovalOfATemplate) {
  Node one(*this);
  Node two(*this);
  const std::string form = createTemplate(one, "t");
  two.registry.refresh();
  Template asked = one.registry.findTemplate(form)->form;
  asked.removal = kRemovalAsked;
  (void)storage.real->records().update(toRecord(asked, box), one.registry.findTemplate(form)->record);
  two.registry.refresh();
  EXPECT_EQ(two.registry.findTemplate(form), nullptr);
  EXPECT_FALSE(storage.real->records().find(kTemplateKind, form));
  one.registry.refresh();
  EXPECT_EQ(one.registry.findTemplate(form), nullptr);
}

TEST_F(EndpointRegistryTest, ATemplateTakenIntoUseIsKept) {
  Node one(*this);
  const std::string form = createTemplate(one, "t");
  const EndpointId id = createEndpoint(one, form);
  Template asked = one.registry.findTemplate(form)->form;
  asked.removal = kRemovalAsked;
  (void)storage.real->records().update(toRecord(asked, box), one.registry.findTemplate(form)->record);
  one.registry.refresh();
  ASSERT_NE(one.registry.findTemplate(form), nullptr);
  EXPECT_EQ(one.registry.findTemplate(form)->form.removal, "");
  EXPECT_TRUE(one.registry.find(id)->runnable);
}

TEST_F(EndpointRegistryTest, ARefreshSeesAllRecordsStoredBeforeTheCall) {
  Node node(*this);
  Node other(*this);
  const std::string form = createTemplate(node, "t");
  storage.faults.hold("records.changedSince", 2);  // the read of the endpoints is done, without the next endpoint
  auto slow = std::async(std::launch::async, [&node] { node.registry.refresh(); });
  ASSERT_TRUE(holdsSoon([this] { return storage.faults.isHolding(); })) << "the refresh did not ask";
  other.registry.refresh();
  const EndpointId id = createEndpoint(other, form);
  auto second = std::async(std::launch::async, [&node] { node.registry.refresh(); });
  storage.faults.letGo();
  testkit::resultOf("the second refresh", second);
  EXPECT_NE(node.registry.find(id), nullptr);
  testkit::resultOf("the refresh that was held", slow);
}

}  // namespace
}  // namespace jobq
