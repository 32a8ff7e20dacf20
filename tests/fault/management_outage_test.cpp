// Templates and endpoints over a storage with failures: each call to the storage fails in its turn, in the middle of
// every management operation. A caller reads 2xx, 4xx or 503. Acknowledged changes are there, refused changes are there
// whole or not at all, and the next sweep ends every half-done change.
#include <iostream>
#include <ostream>

#include "call_shares.h"
#include "management_fixture.h"

namespace jobq::fault {
namespace {

class ManagementOutage : public ManagementFaultTest {
 protected:
  void jobsInEveryState(const std::string& id) {
    const std::string path = "/v2/" + id;
    const auto run = [&](const std::string& body) { return insist("POST", path + "/run", body).field("id"); };
    const auto becomes = [&](const std::string& job, JobState state) {
      eventually(nameOf(state).data(), [&] { return stored(id, job) && stored(id, job)->state == state; });
    };
    becomes(run(R"({"input":{"output":1}})"), JobState::completed);
    becomes(run(R"({"input":{"fail":"no"}})"), JobState::failed);
    becomes(run(R"({"input":{"sleepMs":600000},"policy":{"executionTimeout":5000}})"), JobState::timedOut);
    becomes(run(kForever), JobState::inProgress);
    const std::string cancelled = run(R"({"input":{}})");
    EXPECT_EQ(insist("POST", path + "/cancel/" + cancelled).status, 200);
    EXPECT_EQ(stored(id, cancelled)->state, JobState::cancelled);
    EXPECT_EQ(stored(id, run(R"({"input":{}})"))->state, JobState::inQueue);
    EXPECT_EQ(jobsOf(id), 7U) << "the first job is counted, too";
  }

  void releaseDay() {
    openPatiently();
    const std::string a = makeTemplate("a");
    const std::string b = makeTemplate("b", R"(,"env":{"B":"1"})");
    const std::string one = makeEndpoint(a, R"(,"workersMax":1)");
    const std::string two = makeEndpoint(a, R"(,"workersMax":1)");
    eventually("the list is short", [&] {
      const std::string list = call("GET", "/v1/templates").body + call("GET", "/v1/endpoints").body;
      const auto has = [&](const std::string& id) { return list.find("\"id\":\"" + id) != std::string::npos; };
      return has(a) && has(b) && has(one) && has(two);
    });
    EXPECT_EQ(insist("GET", "/v1/templates/" + a).field("name"), "a");
    expectServes(one);
    change("PATCH", "/v1/templates/" + a, "env", R"({"A":"1"})");
    for (const std::string& id : {one, two}) expectVersion(id, "2");
    change("POST", "/v1/templates/" + a + "/update", "readme", "\"r\"");
    for (const std::string& id : {one, two}) expectVersion(id, "3");
    change("PATCH", "/v1/endpoints/" + two, "workersMax", "2");
    change("POST", "/v1/endpoints/" + two + "/update", "idleTimeout", "9");
    EXPECT_EQ(kept(kEndpointKind, two, "workersMax") + kept(kEndpointKind, two, "idleTimeout"), "29");
    change("PATCH", "/v1/endpoints/" + two, "templateId", "\"" + b + "\"");
    expectVersion(two, "4");
    expectVersion(one, "3");
    expectServes(two);
  }

  void removalDay() {
    openPatiently();
    const std::string a = makeTemplate("a");
    const std::string one = makeEndpoint(a, R"(,"workersMax":1)");
    expectServes(one);
    pause(one, true);
    const std::string waits = insist("POST", "/v2/" + one + "/run", R"({"input":{}})").field("id");
    EXPECT_EQ(stored(one, waits)->state, JobState::inQueue);
    pause(one, false);
    eventually("it does not go on", [&] { return stored(one, waits)->state == JobState::completed; });
    EXPECT_EQ(insist("POST", "/v2/" + one + "/purge-queue").status, 200);
    const std::string two = makeEndpoint(a, R"(,"workersMax":1)");
    expectServes(two);
    jobsInEveryState(two);
    pause(two, true);
    const Answer used = insist("DELETE", "/v1/templates/" + a);
    EXPECT_EQ(used.status, 400);
    EXPECT_THAT(used.body, HasSubstr(std::min(one, two)));
    for (const std::string& id : {two, one}) remove("/v1/endpoints/" + id);
    eventually("jobs are left", [&] { return jobsOf(one) + jobsOf(two) == 0; });
    eventually("endpoints are left", [&] { return ids(kEndpointKind).empty() && ids(kPauseKind).empty(); });
    for (const std::string& id : {one, two}) EXPECT_EQ(insist("POST", "/v2/" + id + "/run", kForever).status, 404);
    remove("/v1/templates/" + a);
    EXPECT_EQ(insist("POST", "/v1/endpoints", R"({"templateId":")" + a + "\"}").status, 400);
    EXPECT_NE(makeTemplate("a"), a) << "the name is free";
    eventually("a template is left", [&] { return ids(kTemplateKind) == std::set{named("a")}; });
  }

  /// Plays `day` with each call of `operation` failing in turn, until a day ran to its end without a fault.
  void strikeEach(const std::string& operation, CallFault how, const std::function<void()>& day) {
    const std::uint64_t stride = std::string(GetParam()) == "mysql" ? sparseness() : 1;
    std::uint64_t number = 1;
    int days = 0;
    for (bool struck = true; struck; number += stride) {
      begin(how);
      plan_.failCall(operation, number, how);
      day();
      mend();
      plan_.heal();
      struck = plan_.failed().size() > faultsBefore_;
      days += struck ? 1 : 0;
      if (!HasFailure()) expectSlots("t", 1);
      clear();
      ASSERT_FALSE(HasFailure()) << operation << " number " << number << ", how " << static_cast<int>(how);
      ASSERT_LT(number, 500U) << "the day has no end";
    }
    std::cout << "  " << operation << " " << days << std::endl;
    EXPECT_GT(days, 0) << operation << " was never called";
  }
};

constexpr const char* kChanges[] = {"records.create", "records.update", "records.remove"};
constexpr const char* kQuestions[] = {"records.find", "records.list", "records.changedSince"};

TEST_P(ManagementOutage, ADayOfReleasesWithEachChangeStruck) {
  for (const CallFault how : {CallFault::before, CallFault::done, CallFault::onward}) {
    for (const char* operation : {kChanges[0], kChanges[1]}) {
      strikeEach(operation, how, [this] { releaseDay(); });
      if (HasFailure()) return;
    }
  }
}

TEST_P(ManagementOutage, ADayOfReleasesWithEachQuestionStruck) {
  for (const char* operation : kQuestions) {
    strikeEach(operation, CallFault::before, [this] { releaseDay(); });
    if (HasFailure()) return;
  }
}

TEST_P(ManagementOutage, ADayOfRemovalsWithEachChangeStruck) {
  for (const CallFault how : {CallFault::before, CallFault::done, CallFault::onward}) {
    for (const char* operation : {kChanges[0], kChanges[1], kChanges[2], "jobs.remove"}) {
      strikeEach(operation, how, [this] { removalDay(); });
      if (HasFailure()) return;
    }
  }
}

TEST_P(ManagementOutage, ADayOfRemovalsWithEachQuestionStruck) {
  for (const char* operation : kQuestions) {
    strikeEach(operation, CallFault::before, [this] { removalDay(); });
    if (HasFailure()) return;
  }
  strikeEach("leases.giveBack", CallFault::before, [this] { removalDay(); });
}

// A release is stored for one endpoint after another: no event in between leaves an endpoint behind.
TEST_P(ManagementOutage, AnInterruptedReleaseLeavesNoEndpoint) {
  for (const CallFault how : {CallFault::before, CallFault::done, CallFault::onward}) {
    for (const std::uint64_t number : {2U, 11U, 21U}) {  // after the template itself
      begin(how);
      openPatiently();
      const std::string made = makeTemplate("a");
      std::vector<std::string> users;
      for (int i = 0; i < 20; ++i) users.push_back(makeEndpoint(made));
      plan_.failCall("records.update", number, how);
      EXPECT_EQ(call("PATCH", "/v1/templates/" + made, R"({"env":{"A":"1"}})").status, 200);
      EXPECT_GT(plan_.failed().size(), faultsBefore_);
      for (const std::string& id : users) expectVersion(id, "2");
      expectServes(users.back());
      clear();
    }
  }
}

INSTANTIATE_TEST_SUITE_P(Over, ManagementOutage, testing::ValuesIn(testkit::andMysql({"memory", "sqlite"})),
                         nameOfStorage);

}  // namespace
}  // namespace jobq::fault
