// Tests of the rights of a key to a job (core/http/api/queue/job_access.h).
#include "core/http/api/queue/job_access.h"

#include <gtest/gtest.h>

#include <string>
#include <utility>

#include "jobq/job.h"
#include "queue_routes_fixture.h"

namespace jobq {
namespace {

using test::expectAnswer;

class JobAccessTest : public testing::Test, protected test::QueueRoutesFixture {
 protected:
  JobAccessTest() {
    insert("mine", "key");
    insert("foreign", "other");
    insert("old", "");
  }

  void insert(const JobId& id, const std::string& key) {
    JobSpec job;
    job.id = id;
    job.endpoint = "ep";
    job.apiKeyId = key;
    job.input = "{}";
    (void)storage_->jobs().insert(std::move(job), storage_.policy);
  }

  /// Returns the status of a call about a job.
  int ask(const std::string& method, const std::string& what, const std::string& job, Query query = {}) {
    query.emplace("wait", "1000");
    if (what == "status-sync") (void)storage_->jobs().cancel({"ep", job});  // the call does not wait
    return call(method, "/v2/ep/" + what + "/" + job, "", std::move(query)).status;
  }
};

constexpr std::pair<const char*, const char*> kCalls[] = {{"GET", "status"},       {"POST", "status"},
                                                          {"GET", "logs"},         {"GET", "status-sync"},
                                                          {"POST", "status-sync"}, {"POST", "cancel"}};

TEST_F(JobAccessTest, SubmitFollowsItsOwnJobsAlone) {
  useKey({"submit"});
  for (const auto& [method, what] : kCalls) {
    EXPECT_EQ(ask(method, what, "mine"), 200) << what;
    EXPECT_EQ(ask(method, what, "foreign"), 404) << what;
    EXPECT_EQ(ask(method, what, "old"), 404) << what << " of a job without a key";
  }
  EXPECT_EQ(ask("GET", "status", "mine", {{"ttl", "60000"}}), 200);
  EXPECT_EQ(ask("GET", "stream", "mine"), 200);
  EXPECT_EQ(ask("GET", "stream", "foreign", {{"offset", "0"}}), 404);
  EXPECT_EQ(ask("POST", "retry", "mine"), 400) << "a cancelled job cannot be retried";
  EXPECT_EQ(ask("POST", "retry", "foreign"), 404);
}

TEST_F(JobAccessTest, AForeignJobLooksLikeAnAbsentJob) {
  useKey({"submit"});
  expectAnswer(call("GET", "/v2/ep/status/foreign"), 404, noSuchJob("foreign"));
  expectAnswer(call("GET", "/v2/ep/status/none"), 404, noSuchJob("none"));
  EXPECT_EQ(storage_.stateOf("foreign"), JobState::inQueue);
  expectAnswer(call("POST", "/v2/ep/cancel/foreign"), 404, noSuchJob("foreign"));
  EXPECT_EQ(storage_.stateOf("foreign"), JobState::inQueue);
}

TEST_F(JobAccessTest, ReadSeesEveryJobAndChangesNone) {
  useKey({"read"});
  const auto expiry = storage_.real->jobs().find({"ep", "foreign"})->expiresAt;
  EXPECT_EQ(ask("GET", "status", "foreign"), 200);
  EXPECT_EQ(ask("GET", "logs", "foreign"), 200);
  for (const char* method : {"GET", "POST", "HEAD"}) {
    EXPECT_EQ(ask(method, "status", "foreign", {{"ttl", "60000"}}), 401) << method;
    EXPECT_EQ(ask(method, "stream", "foreign"), 401) << method;
  }
  EXPECT_EQ(storage_.real->jobs().find({"ep", "foreign"})->expiresAt, expiry);
  const LeaseRef lease = claim();
  ASSERT_EQ(reports_.append(lease, 0, {{"1", ""}}), ReportResult::accepted);
  (void)reports_.finish(lease, Completed{"7"}, false);
  EXPECT_EQ(ask("GET", "stream", lease.job), 401);
  EXPECT_EQ(call("GET", "/v2/ep/stream/" + lease.job, "", {{"offset", "0"}}).body, R"([{"output":1}])");
  useKey({"client"});
  EXPECT_EQ(call("GET", "/v2/ep/stream/" + lease.job).body, R"([{"output":1}])") << "the chunk was not consumed";
  const ApiResponse refused = [this] {
    useKey({"read"});
    return call("GET", "/v2/ep/stream/foreign");
  }();
  EXPECT_EQ(headersOf(refused), "WWW-Authenticate: Bearer realm=\"jobq\"\n");
  EXPECT_EQ(ask("GET", "status-sync", "foreign"), 200);
}

TEST_F(JobAccessTest, SubmitAndReadTogetherReadEveryJobAndChangeTheirOwn) {
  useKey({"read", "submit"});
  EXPECT_EQ(ask("GET", "status", "foreign"), 200);
  EXPECT_EQ(ask("GET", "status", "foreign", {{"ttl", "60000"}}), 401);
  EXPECT_EQ(ask("GET", "status", "mine", {{"ttl", "60000"}}), 200);
  EXPECT_EQ(ask("POST", "cancel", "foreign"), 401);
  EXPECT_EQ(ask("POST", "cancel", "mine"), 200);
}

TEST_F(JobAccessTest, ClientChangesEveryJob) {
  useKey({"client"});
  EXPECT_EQ(ask("GET", "status", "foreign", {{"ttl", "60000"}}), 200);
  EXPECT_EQ(ask("POST", "cancel", "foreign"), 200);
}

}  // namespace
}  // namespace jobq
