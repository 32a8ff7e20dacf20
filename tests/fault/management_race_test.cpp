// Two callers meet at one template or endpoint, and the storage fails one caller: templates are removed while coming
// into use, and calls hold an endpoint during its deletion.
#include "management_fixture.h"

namespace jobq::fault {
namespace {

/// Tests that hold one call in the storage while the test makes other calls.
class HeldCallTest : public ManagementFaultTest {
 protected:
  /// Starts the call, and returns when the storage holds it (FaultPlan::hold()).
  std::future<Answer> start(const std::string& method, const std::string& target, const std::string& body = "") {
    auto answer = std::async(std::launch::async, [=, this] { return call(method, target, body); });
    EXPECT_TRUE(reachedNow([&] { return plan_.isHolding(); })) << method << " " << target;
    return answer;
  }
  Answer end(std::future<Answer>& answer) {
    plan_.letGo();
    return testkit::resultOf("the answer of the call that was held", answer);
  }
};

// A caller removes a template while another caller brings the template into use: the server refuses one of the two,
// and no endpoint is left without its template.
class RemovalRace : public HeldCallTest {
 protected:
  std::future<Answer> startRemoval() { return start("DELETE", "/v1/templates/" + template_); }

  void SetUp() override {
    begin(CallFault::before);
    openPatiently();
    template_ = makeTemplate("raced");
    other_ = makeEndpoint(makeTemplate("other"), R"(,"workersMax":1)");
    body_ = R"({"templateId":")" + template_ + R"(","workersMax":1})";
  }

  void expectGone() {
    eventually("the template is left", [&] { return ids(kTemplateKind).size() == 1; });
    EXPECT_EQ(ids(kEndpointKind), std::set{other_});
    EXPECT_EQ(call("GET", "/v1/templates/" + template_).status, 404);
    expectServes(other_);
  }
  void expectKept(const std::string& user) {
    eventually("the removal is left", [&] { return kept(kTemplateKind, template_, "removal").empty(); });
    expectServes(user);
    EXPECT_EQ(call("POST", "/v1/endpoints", body_).status, 200);
  }

  std::string template_;
  std::string other_;  // an endpoint of another template
  std::string body_;   // makes an endpoint of the template
};

TEST_P(RemovalRace, AStoredEndpointIsSeen) {
  plan_.hold("records.create");
  auto maker = start("POST", "/v1/endpoints", body_);
  EXPECT_EQ(call("DELETE", "/v1/templates/" + template_).status, 400);
  const Answer made = end(maker);
  EXPECT_EQ(made.status, 200) << made.body;
  expectKept(made.field("id"));
}

TEST_P(RemovalRace, AnEndpointStoredAfterTheFirstLookIsSeen) {
  plan_.hold("records.list");
  auto removal = startRemoval();
  const Answer made = call("POST", "/v1/endpoints", body_);
  EXPECT_EQ(made.status, 200) << made.body;
  const Answer refused = end(removal);
  EXPECT_EQ(refused.status, 400);
  EXPECT_THAT(refused.body, HasSubstr(made.field("id")));
  expectKept(made.field("id"));
}

TEST_P(RemovalRace, ANewUseStepsBackFromARequestedRemoval) {
  plan_.hold("records.update");
  auto removal = startRemoval();
  EXPECT_EQ(call("POST", "/v1/endpoints", body_).status, 400);
  EXPECT_EQ(call("PATCH", "/v1/endpoints/" + other_, R"({"templateId":")" + template_ + "\"}").status, 400);
  EXPECT_EQ(end(removal).status, 204);
  expectGone();
}

TEST_P(RemovalRace, AnUpdateAfterTheLookupNoticesTheRemoval) {
  plan_.hold("records.find", 2);
  auto maker = start("POST", "/v1/endpoints", body_);
  EXPECT_EQ(call("DELETE", "/v1/templates/" + template_).status, 204);
  const Answer refused = end(maker);
  EXPECT_EQ(refused.status, 400);
  EXPECT_THAT(refused.body, HasSubstr("templateId"));
  expectGone();
}

TEST_P(RemovalRace, AnEndpointAboutToUseTheTemplateKeepsTheFormerTemplate) {
  const std::string own = kept(kEndpointKind, other_, "templateId");
  plan_.hold("records.find", 3);
  auto change = start("PATCH", "/v1/endpoints/" + other_, R"({"workersMax":2,"templateId":")" + template_ + "\"}");
  EXPECT_EQ(call("DELETE", "/v1/templates/" + template_).status, 204);
  EXPECT_EQ(end(change).status, 400);
  EXPECT_EQ(kept(kEndpointKind, other_, "templateId"), own);
  EXPECT_EQ(kept(kEndpointKind, other_, "workersMax"), "1") << "the refused change has no effect";
  expectGone();
}

TEST_P(RemovalRace, ARecordChangedMeanwhileIsRemoved) {
  plan_.hold("records.update");
  auto removal = startRemoval();
  EXPECT_EQ(call("PATCH", "/v1/templates/" + template_, R"({"readme":"r"})").status, 200);
  EXPECT_EQ(end(removal).status, 204);
  expectGone();
}

// The caller of the removal is gone, or the storage: the next sweep decides.
TEST_P(RemovalRace, AnInterruptedRemovalGoesOn) {
  plan_.failNext("records.changedSince");
  EXPECT_EQ(call("DELETE", "/v1/templates/" + template_).status, 503);
  EXPECT_EQ(call("POST", "/v1/endpoints", body_).status, 400)
      << "the template takes no new endpoint during the removal";
  // The sweep removes the record first and then publishes its view, from which GET answers.
  eventually("GET still finds the template", [&] { return call("GET", "/v1/templates/" + template_).status == 404; });
  expectGone();
}

TEST_P(RemovalRace, AnInterruptedRemovalIsTakenBackForAUser) {
  plan_.hold("records.list");
  auto removal = startRemoval();
  const Answer made = call("POST", "/v1/endpoints", body_);
  EXPECT_EQ(made.status, 200) << made.body;
  plan_.failNext("records.changedSince");
  EXPECT_EQ(end(removal).status, 503);
  expectKept(made.field("id"));
}

/// Calls with a reference to an endpoint during its deletion.
class DeletedMeanwhile : public HeldCallTest {};

// A job arrives after the removal of the endpoint's last job: without another removal the job would stay unseen
// forever.
TEST_P(DeletedMeanwhile, AJobUnderSubmissionIsRemovedToo) {
  begin(CallFault::before);
  openPatiently();
  const std::string id = makeEndpoint(makeTemplate("a"), R"(,"workersMax":1)");
  expectServes(id);
  plan_.hold("before jobs.insert");
  auto submission = start("POST", "/v2/" + id + "/run", R"({"input":{"output":1}})");
  EXPECT_EQ(call("DELETE", "/v1/endpoints/" + id).status, 204);
  eventually("jobs are left", [&] { return jobsOf(id) == 0; });
  for (int second = 0; second < 3; ++second) {
    clock_.awaitWaiter(Millis(0), Millis(1'000));
    clock_.advance(Millis(1'000));
  }
  const Answer answer = end(submission);
  EXPECT_EQ(answer.status, 200) << answer.body;
  eventually("the job is left", [&] { return jobsOf(id) == 0; });
  eventually("the endpoint is left", [&] { return ids(kEndpointKind).empty(); });
  EXPECT_EQ(jobsOf(id), 0U);
}

// A node without news of the deletion pauses the deleted endpoint: no record of the pause stays.
TEST_P(DeletedMeanwhile, ALatePauseLeavesNoRecord) {
  begin(CallFault::before);
  openPatiently();
  const std::string id = makeEndpoint(makeTemplate("a"));
  plan_.failNext("records.changedSince");
  EXPECT_EQ(call("DELETE", "/v1/endpoints/" + id).status, 204);
  EXPECT_EQ(call("POST", "/v1/endpoints/" + id + "/pause").status, 404);
  eventually("something is left", [&] { return ids(kEndpointKind).empty() && ids(kPauseKind).empty(); });
}

INSTANTIATE_TEST_SUITE_P(Over, DeletedMeanwhile, testing::ValuesIn(testkit::andMysql({"memory", "sqlite"})),
                         nameOfStorage);

INSTANTIATE_TEST_SUITE_P(Over, RemovalRace, testing::ValuesIn(testkit::andMysql({"memory", "sqlite"})), nameOfStorage);
}  // namespace
}  // namespace jobq::fault
