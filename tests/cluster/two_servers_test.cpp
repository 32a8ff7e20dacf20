// Two whole servers on one storage: each job, whichever server took it, is run, read, streamed and cancelled through
// any server, and the end of a server ends no job.
#include <future>

#include "cluster_fixture.h"
#include "testkit/thrown_text.h"

namespace jobq::test {
namespace {

using testing::Contains;
using testing::HasSubstr;

constexpr const char* kForever = R"({"input":{"sleepMs":3600000},"policy":{"executionTimeout":7200000}})";

TEST_P(ClusterTest, JobsRunAtTheServerWithTheWorkers) {
  open(singleWorkers());
  for (const std::uint32_t index : {0U, 1U}) {
    const std::string endpoint = endpointAt(index);
    const std::string id = submit(one(), endpoint, R"({"input":{"output":{"n":1.0}}})");
    EXPECT_LE(awaitState(one(), endpoint, id, "COMPLETED"), Millis(1'000));
    EXPECT_EQ(status(two(), endpoint, id).field("output"), R"({"n":1.0})");
    for (Server* server : {&one(), &two()}) {
      eventually("the worker in the sum of both servers", [&] { return healthSays(*server, endpoint, R"("idle":1)"); });
    }
  }
}

TEST_P(ClusterTest, ACallerWaitsForAJobRunningElsewhere) {
  open(singleWorkers());
  const std::string endpoint = endpointAt(1);
  auto waiting = std::async(std::launch::async, [&] {
    return call(one(), "POST", "/v2/" + endpoint + "/runsync", R"({"input":{"output":"done"}})");
  });
  eventually("the answer of /runsync",
             [&] { return waiting.wait_for(std::chrono::seconds(0)) == std::future_status::ready; });
  const Answer answer = waiting.get();
  EXPECT_EQ(answer.status, 200);
  EXPECT_EQ(answer.field("status"), "COMPLETED");
  EXPECT_EQ(answer.field("output"), "done");
}

TEST_P(ClusterTest, AJobIsStreamedThroughTheOtherServer) {
  open(singleWorkers());
  const std::string endpoint = endpointAt(1);
  const std::string id = submit(one(), endpoint, R"({"input":{"chunks":5,"chunkMs":300}})");
  auto reading = std::async(std::launch::async, [&] {
    std::string outputs;
    for (;;) {
      const Answer answer = call(one(), "GET", "/v2/" + endpoint + "/stream/" + id);
      if (answer.body != "[]") outputs += answer.body;
      if (answer.headers.at("X-Job-Status") == "COMPLETED" && answer.body == "[]") return outputs;
    }
  });
  eventually("the end of the stream",
             [&] { return reading.wait_for(std::chrono::seconds(0)) == std::future_status::ready; });
  const std::string outputs = reading.get();
  std::size_t chunks = 0;
  for (std::size_t at = 0; (at = outputs.find("\"output\"", at)) != std::string::npos; ++at) ++chunks;
  EXPECT_EQ(chunks, 5U) << outputs;
}

TEST_P(ClusterTest, ACancelStopsAHandlerAtTheOtherServer) {
  open(singleWorkers());
  const std::string endpoint = endpointAt(1);
  const std::string id = submit(one(), endpoint, kForever);
  awaitState(one(), endpoint, id, "IN_PROGRESS");
  EXPECT_EQ(call(one(), "POST", "/v2/" + endpoint + "/cancel/" + id).field("status"), "CANCELLED");
  const Millis passed = eventually("the worker to be idle", [&] { return healthSays(two(), endpoint, R"("idle":1)"); });
  EXPECT_LE(passed, Millis(2'000)) << "a beat asks about each running attempt";
  EXPECT_EQ(status(two(), endpoint, id).field("status"), "CANCELLED");
}

TEST_P(ClusterTest, AnExecutionTimeoutEndsARunWhicheverClockTheServerHas) {
  open(singleWorkers());
  for (const std::uint32_t index : {0U, 1U}) {
    const std::string endpoint = endpointAt(index);
    const std::string id =
        submit(one(), endpoint, R"({"input":{"sleepMs":3600000},"policy":{"executionTimeout":30000}})");
    awaitState(one(), endpoint, id, "IN_PROGRESS");
    const Millis passed = awaitState(one(), endpoint, id, "TIMED_OUT");
    EXPECT_GE(passed, Millis(28'000));
    EXPECT_LE(passed, Millis(32'000));
    eventually("the worker to be idle", [&] { return healthSays(one(), endpoint, R"("idle":1)"); });
  }
}

TEST_P(ClusterTest, AServerWithAnotherSecretKeyDoesNotStart) {
  open(singleWorkers());
  std::filesystem::remove(secrets_ / "secret.key");
  EXPECT_THAT(testkit::thrownText<ConfigError>([&] { return start(singleWorkers()); }), HasSubstr("secret.keyFile"));
  servers_.pop_back();
}

TEST_P(ClusterTest, EachServerListsTheNodes) {
  open(singleWorkers());
  const Answer listed = call(two(), "GET", "/v1/nodes");
  EXPECT_EQ(listed.status, 200);
  EXPECT_THAT(listed.body,
              HasSubstr(R"([{"name":"node0","self":false,"alive":true,"draining":false,"epoch":1,"beatAge":)"));
  EXPECT_THAT(listed.body,
              HasSubstr(R"({"name":"node1","self":true,"alive":true,"draining":false,"epoch":2,"beatAge":)"));
  stop(two());
  EXPECT_THAT(call(one(), "GET", "/v1/nodes").body, HasSubstr(R"({"name":"node1","self":false,"alive":false,)"));
}

TEST_P(ClusterTest, WorkersMaxHoldsForBothServersTogether) {
  open(
      "endpoint.t.image = plugin/trial\nendpoint.t.workersMax = 3\nendpoint.t.scalerType = REQUEST_COUNT\n"
      "endpoint.t.scalerValue = 1\n");
  for (int i = 0; i < 9; ++i) submit(i % 2 == 0 ? one() : two(), "t", kForever);
  eventually("three running jobs", [&] { return healthSays(one(), "t", R"("running":3)"); });
  pass(Millis(10'000));
  for (Server* server : {&one(), &two()}) {
    EXPECT_TRUE(healthSays(*server, "t", R"("running":3)")) << call(*server, "GET", "/v2/t/health").body;
    EXPECT_TRUE(healthSays(*server, "t", R"("inProgress":3)"));
  }
  std::map<std::string, int> perServer;
  for (const Job& job : storage_->jobs().list({"t", JobState::inProgress}, {}).jobs) {
    ++perServer[job.workerId.substr(0, job.workerId.find('-'))];
  }
  EXPECT_EQ(perServer.size(), 2U) << "both servers work";
}

// The first server runs a job with the only worker; the second server, which has the part now, waits for the end of the
// job.
TEST_P(ClusterTest, ANewServerStartsNoWorkerBesideTheLastOfAnother) {
  start(singleWorkers());
  key_ = *readFile(one().dir / "jobq-data/admin.key");
  key_.pop_back();
  const std::string endpoint = endpointAt(1);
  const std::string first = submit(one(), endpoint, kForever);
  awaitState(one(), endpoint, first, "IN_PROGRESS");
  pass(Millis(2'000));  // the next beat names the worker
  start(singleWorkers());
  const std::string second = submit(two(), endpoint, R"({"input":{}})");
  pass(Millis(10'000));
  EXPECT_EQ(status(two(), endpoint, second).field("status"), "IN_QUEUE");
  call(two(), "POST", "/v2/" + endpoint + "/cancel/" + first);
  EXPECT_LE(awaitState(two(), endpoint, second, "COMPLETED"), Millis(5'000));
}

TEST_P(ClusterTest, KeysTemplatesAndEndpointsReachTheOtherServerWithinASecond) {
  open(singleWorkers());
  const Answer made = call(one(), "POST", "/v1/keys", R"({"name":"client","scopes":["client"]})");
  ASSERT_EQ(made.status, 200) << made.body;
  const std::string client = made.field("key");
  const auto isOpen = [&] { return two().call(client, "GET", "/v2/e0/health").status == 200; };
  EXPECT_LE(eventually("the key at the other server", isOpen), Millis(1'500));
  const std::string endpoint =
      call(one(), "POST", "/v1/templates", R"({"name":"t","imageName":"plugin/echo"})").field("id");
  const Answer created =
      call(one(), "POST", "/v1/endpoints", R"({"name":"n","templateId":")" + endpoint + R"(","workersMax":2})");
  ASSERT_EQ(created.status, 200) << created.body;
  const std::string id = created.field("id");
  const auto isServed = [&] { return call(two(), "GET", "/v2/" + id + "/health").status == 200; };
  EXPECT_LE(eventually("the endpoint at the other server", isServed), Millis(1'500));
  const std::string job = submit(two(), id, R"({"input":{}})");
  awaitState(one(), id, job, "COMPLETED");
  EXPECT_EQ(call(two(), "DELETE", "/v1/endpoints/" + id).status, 204);
  const auto isGone = [&] { return call(one(), "GET", "/v2/" + id + "/health").status == 404; };
  EXPECT_LE(eventually("the end of the endpoint at the first server", isGone), Millis(1'500));
  eventually("the removal of its jobs", [&] { return storage_->jobs().list({id, {}}, {}).total == 0; });
}

TEST_P(ClusterTest, TheJobsOfAServerWithoutStorageRunAgainElsewhere) {
  open(
      "endpoint.t.image = plugin/trial\nendpoint.t.workersMax = 2\nendpoint.t.scalerType = REQUEST_COUNT\n"
      "endpoint.t.scalerValue = 1\n");
  for (int i = 0; i < 2; ++i) submit(one(), "t", kForever);
  eventually("a job at each server", [&] { return healthSays(one(), "t", R"("running":2)"); });
  pass(Millis(2'000));
  const auto theirs = [&] {
    std::map<std::string, std::vector<Job>> jobs;
    for (Job& job : storage_->jobs().list({"t", JobState::inProgress}, {}).jobs) {
      jobs[job.workerId.substr(0, job.workerId.find('-'))].push_back(std::move(job));
    }
    return jobs;
  };
  ASSERT_EQ(theirs().size(), 2U);
  disconnect(two());
  pass(Millis(10'500));
  // No clock moves meanwhile: only the thread of the fence has to be scheduled.
  testkit::waitFor("the fence of the second server",
                   [this] { return testing::Value(two().log.lines(), Contains(HasSubstr("node.fenced"))); });
  const Answer ready = two().call(key_, "GET", "/readyz");
  EXPECT_EQ(ready.status, 503);
  EXPECT_THAT(ready.body, HasSubstr("leases"));
  EXPECT_EQ(storage_->jobs().counts("t").retried, 0U) << "the handlers stop before a second server gets the jobs";
  const Millis passed = eventually("the first server to have both jobs", [&] {
    const auto jobs = theirs();
    return jobs.size() == 1 && jobs.begin()->second.size() == 2;
  });
  EXPECT_LE(Millis(10'500) + passed, kLeaseLife + Millis(5'000)) << "lease + 2 s, and 3 s until the parts are counted";
  EXPECT_EQ(storage_->jobs().counts("t").retried, 1U);
  two().faults.heal();
  eventually("the second server to be back", [&] { return two().call(key_, "GET", "/readyz").status == 200; });
  two().isConnected = true;
  EXPECT_THAT(two().log.lines(), Contains(HasSubstr("node.resumed")));
  for (const Job& job : storage_->jobs().list({"t", {}}, {}).jobs) {
    EXPECT_EQ(job.state, JobState::inProgress) << "no result of a stopped handler was taken";
    call(two(), "POST", "/v2/t/cancel/" + job.id);
  }
  eventually("both workers to be idle", [&] { return healthSays(two(), "t", R"("running":0)"); });
  const std::string id = submit(two(), "t", R"({"input":{}})");
  awaitState(one(), "t", id, "COMPLETED");
}

// An outage of the storage for all servers costs no attempt: results of jobs that end meanwhile are stored afterwards.
TEST_P(ClusterTest, AnOutageOfTheStorageLosesNoJob) {
  open(
      "endpoint.t.image = plugin/trial\nendpoint.t.workersMax = 2\nendpoint.t.scalerType = REQUEST_COUNT\n"
      "endpoint.t.scalerValue = 1\n");
  std::vector<std::string> ids;
  for (int i = 0; i < 2; ++i) ids.push_back(submit(one(), "t", R"({"input":{"sleepMs":4000,"output":"kept"}})"));
  eventually("a job at each server", [&] { return healthSays(one(), "t", R"("running":2)"); });
  for (Server* server : {&one(), &two()}) disconnect(*server);
  pass(Millis(60'000));
  for (Server* server : {&one(), &two()}) server->faults.heal();
  for (const std::string& id : ids) {
    EXPECT_LE(awaitState(one(), "t", id, "COMPLETED"), Millis(5'000));
    EXPECT_EQ(status(two(), "t", id).field("output"), "kept");
  }
  EXPECT_EQ(storage_->jobs().counts("t").retried, 0U);
  for (Server* server : {&one(), &two()}) {
    eventually(server->name + " to be ready", [&] { return server->call(key_, "GET", "/readyz").status == 200; });
    server->isConnected = true;
  }
}

TEST_P(ClusterTest, AStoppingServerHandsTheJobsOverAtOnce) {
  open(
      "endpoint.t.image = plugin/trial\nendpoint.t.workersMax = 4\nendpoint.t.scalerType = REQUEST_COUNT\n"
      "endpoint.t.scalerValue = 1\n");
  for (int i = 0; i < 4; ++i) submit(one(), "t", kForever);
  eventually("four running jobs", [&] { return healthSays(one(), "t", R"("running":4)"); });
  stop(two());
  const Millis passed =
      eventually("the first server to run all", [&] { return healthSays(one(), "t", R"("running":4)"); });
  EXPECT_LE(passed, Millis(5'000)) << "the parts are counted every 3 s";
  EXPECT_EQ(storage_->jobs().counts("t").retried, 0U) << "a drain counts no attempt";
}

TEST_P(ClusterTest, ADrainedServerClaimsNoJobUntilTheResume) {
  open("endpoint.echo.image = plugin/echo\nendpoint.echo.workersMax = 4\n");
  EXPECT_EQ(call(one(), "POST", "/v1/nodes/node1/drain").status, 200) << "any server takes the order";
  eventually(
      "node1 to drain", [&] { return call(two(), "GET", "/readyz").status == 503; }, Millis(2'000));
  EXPECT_EQ(call(one(), "GET", "/readyz").status, 200);
  disconnect(one());
  const std::string id = submit(two(), "echo", R"({"input":{}})");
  pass(Millis(2'000));
  EXPECT_EQ(status(two(), "echo", id).field("status"), "IN_QUEUE");
  EXPECT_EQ(call(two(), "POST", "/v1/nodes/node1/resume").status, 200);
  awaitState(two(), "echo", id, "COMPLETED");
  EXPECT_EQ(call(two(), "POST", "/v1/nodes/nobody/drain").status, 404);
}

constexpr char kQuick[] = R"({"input":{"output":1}})";

// The only worker of the endpoint is idle at the drained server, and has to count no more.
TEST_P(ClusterTest, AnotherServerStartsTheWorkersOfADrainedServer) {
  open(singleWorkers());
  const std::string endpoint = endpointAt(1);
  awaitState(one(), endpoint, submit(one(), endpoint, kQuick), "COMPLETED");
  EXPECT_TRUE(healthSays(two(), endpoint, R"("idle":1)")) << "the worker stays for a while";
  call(one(), "POST", "/v1/nodes/node1/drain");
  eventually(
      "node1 to drain", [&] { return call(two(), "GET", "/readyz").status == 503; }, Millis(2'000));
  EXPECT_TRUE(healthSays(two(), endpoint, R"("ready":0)")) << "a draining server takes no job";
  const std::string id = submit(one(), endpoint, kQuick);
  EXPECT_LE(awaitState(one(), endpoint, id, "COMPLETED"), Millis(6'000)) << "the parts are counted every 3 s";
}

INSTANTIATE_TEST_SUITE_P(Clocks, ClusterTest, testing::Values(Millis(0), Millis(3'600'000)),
                         [](const auto& info) { return info.param == Millis(0) ? "Equal" : "AnHourAhead"; });

}  // namespace
}  // namespace jobq::test
