// Tests of the followed records of endpoints, templates and pauses (core/endpoints/endpoint_records.h). Each object
// stands for a node of a shared storage.
#include "core/endpoints/endpoint_records.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <future>
#include <set>
#include <string>
#include <variant>

#include "core/base/secret_box.h"
#include "core/config/endpoint_spec.h"
#include "core/config/template.h"
#include "core/endpoints/endpoint_record.h"
#include "jobq/error.h"
#include "jobq/record_store.h"
#include "testkit/temporary_folder.h"
#include "testkit/wait_for.h"
#include "unit_storage.h"

namespace jobq {
namespace {

using testing::ElementsAre;
using testing::IsEmpty;
using testing::StartsWith;

using Touched = std::set<EndpointId>;

class EndpointRecordsTest : public testing::Test {
 protected:
  struct Node {
    explicit Node(EndpointRecordsTest& world) : records(world.storage_->records(), world.box_, world.storage_.log) {}

    /// Follows the records and returns the endpoints with a change.
    Touched follow() {
      Touched touched;
      records.follow(touched);
      return touched;
    }
    std::uint64_t versionOf(const EndpointId& id) const {
      const EndpointSpec* spec = records.find(id);
      return spec == nullptr ? 0 : spec->version;
    }

    EndpointRecords records;
  };

  /// Returns the store without the planned faults.
  RecordStore& store() { return storage_.real->records(); }

  static std::uint64_t versionOf(const std::variant<Stored, NameTaken>& result) {
    return std::get<Stored>(result).version;
  }
  static Template templateNamed(const std::string& id, const std::string& removal = "") {
    Template form;
    form.id = id;
    form.name = id;
    form.imageName = "plugin/echo";
    form.removal = removal;
    return form;
  }
  /// Stores a template and returns the version of its record.
  std::uint64_t createTemplate(const std::string& id, const std::string& removal = "") {
    return versionOf(store().create(toRecord(templateNamed(id, removal), box_)));
  }
  void changeTemplate(const std::string& id, const std::string& removal = "") {
    Template form = templateNamed(id, removal);
    form.readme = "changed";
    const auto present = store().find(kTemplateKind, id);
    ASSERT_TRUE(std::holds_alternative<Stored>(store().update(toRecord(form, box_), present.value().version)));
  }
  /// Stores an endpoint made from the record `templateRecord` of the template.
  void createEndpoint(const EndpointId& id, const std::string& templateId, std::uint64_t templateRecord,
                      bool deleting = false) {
    EndpointSpec spec;
    spec.id = id;
    spec.templateId = templateId;
    spec.templateRecord = templateRecord;
    spec.deleting = deleting;
    (void)versionOf(store().create(toRecord(spec, box_)));
  }
  /// Makes the stored record unreadable.
  void damage(const char* kind, const std::string& id) {
    Record record = store().find(kind, id).value();
    record.body = "[]";
    ASSERT_TRUE(std::holds_alternative<Stored>(store().update(record, record.version)));
  }

  test::UnitStorage storage_;
  const testkit::TemporaryFolder folder_;
  const SecretBox box_{folder_ / "secret.key"};
};

TEST_F(EndpointRecordsTest, AChangeIsReadOnce) {
  createEndpoint("a", "t", createTemplate("t"));
  createEndpoint("b", "t", store().find(kTemplateKind, "t")->version);
  (void)store().create({kPauseKind, "b", "", "{}", 0, {}});
  Node node(*this);
  EXPECT_THAT(node.follow(), ElementsAre("a", "b"));
  ASSERT_NE(node.records.find("a"), nullptr);
  EXPECT_EQ(node.records.find("a")->templateId, "t");
  EXPECT_EQ(node.versionOf("a"), 1U) << "the endpoint has the template's current record";
  EXPECT_FALSE(node.records.isPaused("a"));
  EXPECT_TRUE(node.records.isPaused("b"));
  EXPECT_EQ(node.records.templates().find("t")->form.name, "t");
  EXPECT_THAT(node.follow(), IsEmpty());
}

TEST_F(EndpointRecordsTest, ARemovedRecordIsAChange) {
  createEndpoint("a", "t", createTemplate("t"));
  (void)store().create({kPauseKind, "a", "", "{}", 0, {}});
  Node node(*this);
  (void)node.follow();
  (void)store().remove(kPauseKind, "a");
  EXPECT_THAT(node.follow(), ElementsAre("a"));
  EXPECT_FALSE(node.records.isPaused("a"));
  (void)store().remove(kTemplateKind, "t");
  EXPECT_THAT(node.follow(), ElementsAre("a"));
  EXPECT_THAT(node.records.templates().all(), IsEmpty());
  (void)store().remove(kEndpointKind, "a");
  EXPECT_THAT(node.follow(), ElementsAre("a"));
  EXPECT_EQ(node.records.find("a"), nullptr);
}

TEST_F(EndpointRecordsTest, AChangedTemplateRaisesTheEndpointsOnASingleNode) {
  const std::uint64_t t = createTemplate("t");
  const std::uint64_t u = createTemplate("u");
  createEndpoint("a", "t", t);
  createEndpoint("b", "u", u);
  createEndpoint("c", "t", t, true);
  Node one(*this);
  Node two(*this);
  (void)one.follow();
  (void)two.follow();
  changeTemplate("t");
  EXPECT_THAT(one.follow(), ElementsAre("a", "c"));
  EXPECT_THAT(two.follow(), ElementsAre("a", "c"));
  for (const Node* node : {&one, &two}) {
    EXPECT_EQ(node->versionOf("a"), 2U);
    EXPECT_EQ(node->records.find("a")->templateRecord, store().find(kTemplateKind, "t")->version);
    EXPECT_EQ(node->versionOf("b"), 1U) << "the endpoint has a different template";
    EXPECT_EQ(node->versionOf("c"), 1U) << "the endpoint is being deleted";
  }
}

TEST_F(EndpointRecordsTest, TwoNodesAtTheSameTimeRaiseAVersionOnce) {
  createEndpoint("a", "t", createTemplate("t"));
  Node one(*this);
  Node two(*this);
  (void)one.follow();
  (void)two.follow();
  changeTemplate("t");
  // Node two has read the templates and the endpoints, and waits for the pauses until node one has raised the version.
  storage_.faults.hold("records.changedSince", 3);
  auto slow = std::async(std::launch::async, [&two] { return two.follow(); });
  const bool isHeld = test::holdsSoon([this] { return storage_.faults.isHolding(); });
  if (isHeld) {
    EXPECT_THAT(one.follow(), ElementsAre("a"));
  }
  storage_.faults.letGo();
  EXPECT_THAT(testkit::resultOf("the slow node", slow), ElementsAre("a"));
  ASSERT_TRUE(isHeld) << "the slow node did not read the pauses";
  EXPECT_EQ(one.versionOf("a"), 2U);
  EXPECT_EQ(two.versionOf("a"), 2U);
  EXPECT_EQ(endpointSpecOf(store().find(kEndpointKind, "a").value(), box_).version, 2U);
}

TEST_F(EndpointRecordsTest, AFailedRaiseIsCompletedByTheNextCall) {
  const std::uint64_t t = createTemplate("t");
  constexpr int kEndpoints = 40;  // more than the threads that write
  for (int i = 0; i < kEndpoints; ++i) createEndpoint("e" + std::to_string(i), "t", t);
  Node node(*this);
  (void)node.follow();
  changeTemplate("t");
  storage_.faults.failNext("records.update");
  Touched touched;
  EXPECT_THROW(node.records.follow(touched), StorageError);
  EXPECT_EQ(touched.size(), kEndpoints) << "each endpoint of the changed template";
  node.records.follow(touched);
  EXPECT_EQ(touched.size(), kEndpoints);
  for (const EndpointId& id : touched) EXPECT_EQ(node.versionOf(id), 2U) << id;
  EXPECT_THAT(node.follow(), IsEmpty());
}

TEST_F(EndpointRecordsTest, AFailedReadKeepsTheChangesReadBefore) {
  createEndpoint("a", "t", createTemplate("t"));
  (void)store().create({kPauseKind, "b", "", "{}", 0, {}});
  Node node(*this);
  storage_.faults.failCall("records.changedSince", 3, fault::CallFault::before);  // the read of the pauses
  Touched touched;
  EXPECT_THROW(node.records.follow(touched), StorageError);
  EXPECT_THAT(touched, ElementsAre("a"));
  EXPECT_NE(node.records.find("a"), nullptr);
  EXPECT_FALSE(node.records.isPaused("b"));
  EXPECT_THAT(node.follow(), ElementsAre("b"));
  EXPECT_TRUE(node.records.isPaused("b"));
}

TEST_F(EndpointRecordsTest, ADamagedEndpointIsUnknownUntilTheRepair) {
  createEndpoint("a", "t", createTemplate("t"));
  createEndpoint("b", "t", store().find(kTemplateKind, "t")->version);
  Node node(*this);
  (void)node.follow();
  const Record sound = store().find(kEndpointKind, "a").value();
  damage(kEndpointKind, "a");
  EXPECT_THAT(node.follow(), ElementsAre("a"));
  EXPECT_EQ(node.records.find("a"), nullptr);
  EXPECT_NE(node.records.find("b"), nullptr);
  EXPECT_THAT(storage_.log.lines(),
              ElementsAre(StartsWith("endpoints.damaged: the endpoint a in the storage is damaged")));
  (void)store().update(sound, store().find(kEndpointKind, "a")->version);
  EXPECT_THAT(node.follow(), ElementsAre("a"));
  EXPECT_NE(node.records.find("a"), nullptr);
}

TEST_F(EndpointRecordsTest, ADamagedTemplateStaysUnchanged) {
  createEndpoint("a", "t", createTemplate("t"));
  Node node(*this);
  (void)node.follow();
  damage(kTemplateKind, "t");
  EXPECT_THAT(node.follow(), IsEmpty());
  EXPECT_EQ(node.records.templates().find("t")->form.name, "t");
  EXPECT_EQ(node.versionOf("a"), 1U);
  EXPECT_THAT(storage_.log.lines(), ElementsAre(StartsWith("endpoints.damaged: ")));
}

TEST_F(EndpointRecordsTest, AnUnusedTemplateIsRemovedOnRequest) {
  const std::uint64_t t = createTemplate("t");
  createEndpoint("leaving", "t", t, true);
  Node one(*this);
  Node two(*this);
  (void)one.follow();
  (void)two.follow();
  changeTemplate("t", kRemovalAsked);
  (void)one.follow();
  EXPECT_THAT(one.records.templates().all(), IsEmpty());
  EXPECT_FALSE(store().find(kTemplateKind, "t"));
  (void)two.follow();
  EXPECT_THAT(two.records.templates().all(), IsEmpty());
}

TEST_F(EndpointRecordsTest, AUsedTemplateIsKeptAndTheRequestIsWithdrawn) {
  createEndpoint("a", "t", createTemplate("t"));
  Node node(*this);
  (void)node.follow();
  changeTemplate("t", kRemovalAsked);
  (void)node.follow();
  ASSERT_NE(node.records.templates().find("t"), nullptr);
  EXPECT_EQ(node.records.templates().find("t")->form.removal, "");
  EXPECT_EQ(templateOf(store().find(kTemplateKind, "t").value(), box_).removal, "");
}

// A node has died between the decision and the removal of the record.
TEST_F(EndpointRecordsTest, ADecidedRemovalIsCompletedByTheNextNode) {
  createTemplate("t", kRemovalDecided);
  Node node(*this);
  EXPECT_THAT(node.follow(), IsEmpty());
  EXPECT_THAT(node.records.templates().all(), IsEmpty());
  EXPECT_FALSE(store().find(kTemplateKind, "t"));
}

}  // namespace
}  // namespace jobq
