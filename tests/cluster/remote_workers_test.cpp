// A remote worker behind a load balancer, with two whole servers on one storage: it takes its job at one server, and
// delivers, pings and asks for stops at the other. Each call has a connection of its own.
#include <algorithm>
#include <atomic>
#include <future>
#include <mutex>
#include <string>
#include <vector>

#include "cluster_fixture.h"
#include "jobq/json.h"

namespace jobq::test {
namespace {

using testing::HasSubstr;

constexpr const char* kLong = R"({"input":{},"policy":{"executionTimeout":3600000}})";

/// Asks a server for stops again and again, as a worker does, and so keeps a connection open.
class StopLoop {
 public:
  StopLoop(const Server& server, std::string key)
      : loop_(std::async(std::launch::async, [this, address = server.application->address(), key = std::move(key)] {
          while (!isOver_) {  // also while the server stops, which forgets its address
            const Answer answer = callAt(address, key, "GET", "/v2/remote/job-stop/w?gpu=none", "");
            if (answer.status == 200) ++told_;
          }
        })) {}

  int told() const { return told_; }
  void end() { isOver_ = true; }
  bool hasEnded() const { return loop_.wait_for(std::chrono::seconds(0)) == std::future_status::ready; }

 private:
  std::atomic<bool> isOver_ = false;
  std::atomic<int> told_ = 0;
  std::future<void> loop_;
};

class RemoteClusterTest : public ClusterTest {
 protected:
  void openRemote() {
    open("endpoint.remote.image = docker.io/acme/worker:1\n");
    workerKey_ = call(one(), "POST", "/v1/keys", R"({"name":"worker","scopes":["worker"]})").field("key");
    eventually("the key at the other server",
               [&] { return two().call(workerKey_, "GET", "/v2/remote/ping/nobody").status == 200; });
  }
  ~RemoteClusterTest() override {
    for (const auto& loop : loops_) endLoop(*loop);
  }

  /// Takes a job for a worker at the server. Returns its id, or nothing if none comes within 24 s.
  std::string fetchJob(const Server& server, bool holdsJobs = false, const std::string& worker = "w") {
    auto taking = std::async(std::launch::async, [&] { return fetch(server, holdsJobs, worker); });
    eventually("the answer of job-take", [&] { return hasPassed(taking); });
    const Answer answer = taking.get();
    return answer.status == 200 ? answer.field("id") : "";
  }
  Answer fetch(const Server& server, bool holdsJobs = false, const std::string& worker = "w") const {
    return server.call(workerKey_, "GET",
                       "/v2/remote/job-take/" + worker + "?job_in_progress=" + (holdsJobs ? "1" : "0"));
  }
  /// Returns true if the call is answered, and lets some time pass otherwise: most calls are held for 20 s.
  bool hasPassed(const std::future<Answer>& call) {
    if (call.wait_for(std::chrono::seconds(0)) == std::future_status::ready) return true;
    pass(Millis(200));
    return false;
  }
  void report(const Server& server, const std::string& call, const std::string& job, const std::string& body,
              const std::string& worker = "w") {
    const Answer answer =
        server.call(workerKey_, "POST", "/v2/remote/" + call + "/" + worker + "/" + job + "?isStream=false", body);
    EXPECT_EQ(answer.status, 200) << answer.body;
  }
  void sendPing(const Server& server, const std::string& jobs) {
    const std::string list = jobs.empty() ? "" : "?job_id=" + jobs;
    EXPECT_EQ(server.call(workerKey_, "GET", "/v2/remote/ping/w" + list).status, 200);
  }
  StopLoop& startLoop(const Server& server) {
    return *loops_.emplace_back(std::make_unique<StopLoop>(server, workerKey_));
  }
  void endLoop(StopLoop& loop) {
    loop.end();
    eventually("the end of the calls for stops", [&] { return loop.hasEnded() || (pass(Millis(200)), false); });
  }
  /// Has the first server hand out a job to the worker `w`, which has a job of the second server, and die before any
  /// other server hears of it. Returns the id of the job when it is in the queue again.
  std::string loseUnheardJob() {
    busy_ = submit(two(), "remote", kLong);
    EXPECT_EQ(fetchJob(two()), busy_);
    startLoop(two());
    pass(Millis(3'000));
    const std::string id = submit(one(), "remote", kLong);
    one().faults.failOperation("records.create");
    EXPECT_EQ(fetchJob(one(), true), id);
    disconnect(one());
    eventually(
        "the job to be in the queue", [&] { return find(id).state == JobState::inQueue; }, Millis(20'000));
    return id;
  }
  void reconnect(Server& server) {
    server.faults.heal();
    eventually("the server to be back", [&] { return call(server, "GET", "/readyz").status == 200; });
    server.isConnected = true;
  }
  Job find(const std::string& id) { return storage_->jobs().find({"remote", id}).value(); }

  std::string workerKey_;
  std::string busy_;
  std::vector<std::unique_ptr<StopLoop>> loops_;
};

TEST_P(RemoteClusterTest, ReportsCountAtAnyServer) {
  openRemote();
  const std::string id = submit(one(), "remote", kLong);
  ASSERT_EQ(fetchJob(one()), id);
  report(two(), "job-done", id, R"({"status":"IN_PROGRESS","output":"half"})");
  EXPECT_EQ(status(one(), "remote", id).field("output"), "half");
  for (int i = 0; i < 6; ++i) {
    report(i % 3 == 0 ? one() : two(), "job-stream", id, R"({"output":)" + std::to_string(i) + "}");
  }
  auto waiting = std::async(std::launch::async,
                            [&] { return call(one(), "GET", "/v2/remote/status-sync/" + id + "?wait=60000"); });
  report(two(), "job-done", id, R"({"output":{"n":1}})");
  eventually("the answer of /status-sync",
             [&] { return waiting.wait_for(std::chrono::seconds(0)) == std::future_status::ready; });
  EXPECT_EQ(waiting.get().field("output"), R"({"n":1})");
  EXPECT_EQ(storage_->jobs().counts("remote").completed, 1U);
  std::string chunks;
  const auto page = storage_->chunks().read({"remote", id}, 0, 10'000);
  for (const Chunk& chunk : page->chunks) chunks += chunk.output;
  EXPECT_EQ(chunks, "012345");
  const std::string next = submit(two(), "remote", kLong);
  EXPECT_EQ(fetchJob(one(), true), next) << "the next job comes at once";
  report(two(), "job-done", next, "{}");
  eventually(
      "the places to be free", [&] { return healthSays(one(), "remote", R"("running":0)"); }, Millis(3'000));
  pass(Millis(3'000));
  StopLoop& loop = startLoop(one());
  pass(Millis(5'000));
  EXPECT_EQ(loop.told(), 0) << "no stop of a job that the worker has delivered";
}

TEST_P(RemoteClusterTest, ACountedChunkIsStoredOnceAtAnyServer) {
  openRemote();
  const std::string id = submit(one(), "remote", kLong);
  ASSERT_EQ(fetchJob(one()), id);
  const auto send = [&](const Server& server, int first) {
    const std::string target = "/v2/remote/job-stream/w/" + id + "?first=" + std::to_string(first);
    return server.call(workerKey_, "POST", target, R"({"output":)" + std::to_string(first) + "}").body;
  };
  EXPECT_EQ(send(one(), 0), R"({"next":1})");
  EXPECT_EQ(send(two(), 0), R"({"next":1})") << "the answer was lost";
  EXPECT_EQ(send(two(), 1), R"({"next":2})");
  EXPECT_EQ(send(one(), 1), R"({"next":2})");
  EXPECT_EQ(storage_->chunks().read({"remote", id}, 0, 10'000)->chunks.size(), 2U);
}

TEST_P(RemoteClusterTest, AConnectionToAnotherServerKeepsTheJobs) {
  openRemote();
  StopLoop& loop = startLoop(two());
  const std::string id = submit(one(), "remote", kLong);
  ASSERT_EQ(fetchJob(one()), id);
  pass(Millis(60'000));
  EXPECT_EQ(find(id).state, JobState::inProgress);
  EXPECT_EQ(find(id).losses, 0U);
  endLoop(loop);
  eventually(
      "the loss of the job", [&] { return find(id).losses == 1; }, Millis(25'000));
}

TEST_P(RemoteClusterTest, PingsAtAnotherServerKeepAndLoseAJob) {
  openRemote();
  startLoop(two());
  const std::string id = submit(one(), "remote", kLong);
  ASSERT_EQ(fetchJob(one()), id);
  pass(Millis(25'000));
  for (int i = 0; i < 3; ++i) {
    sendPing(two(), "");
    pass(Millis(5'000));
    sendPing(two(), id);
    pass(Millis(5'000));
  }
  EXPECT_EQ(find(id).losses, 0U) << "no two in a row";
  sendPing(two(), "");
  pass(Millis(5'000));
  EXPECT_EQ(find(id).losses, 0U);
  sendPing(one(), "");
  eventually(
      "the loss of the job", [&] { return find(id).losses == 1; }, Millis(3'000));
}

TEST_P(RemoteClusterTest, AStopIsToldAtAnotherServerUntilThePingsThereOmitTheJob) {
  openRemote();
  StopLoop& loop = startLoop(two());
  const std::string id = submit(one(), "remote", kLong);
  ASSERT_EQ(fetchJob(one()), id);
  pass(Millis(3'000));
  EXPECT_EQ(loop.told(), 0);
  EXPECT_EQ(call(one(), "POST", "/v2/remote/cancel/" + id).field("status"), "CANCELLED");
  eventually(
      "the stop to be told twice", [&] { return loop.told() >= 2; }, Millis(6'000));
  for (int i = 0; i < 2; ++i) {
    sendPing(two(), "");
    pass(Millis(4'000));
  }
  const int told = loop.told();
  pass(Millis(5'000));
  EXPECT_EQ(loop.told(), told) << "the worker has obeyed";
}

TEST_P(RemoteClusterTest, AResultAtAnotherServerEndsTheStop) {
  openRemote();
  StopLoop& loop = startLoop(two());
  const std::string id = submit(one(), "remote", kLong);
  ASSERT_EQ(fetchJob(one()), id);
  pass(Millis(3'000));
  call(one(), "POST", "/v2/remote/cancel/" + id);
  eventually(
      "the stop to be told", [&] { return loop.told() >= 1; }, Millis(6'000));
  report(two(), "job-done", id, R"({"output":1})");
  EXPECT_EQ(find(id).state, JobState::cancelled);
  pass(Millis(3'000));
  const int told = loop.told();
  pass(Millis(5'000));
  EXPECT_EQ(loop.told(), told);
}

TEST_P(RemoteClusterTest, AWorkerGetsItsFailedJobAgainWithinSeconds) {
  openRemote();
  startLoop(two());
  const std::string id = submit(one(), "remote", kLong);
  ASSERT_EQ(fetchJob(one()), id);
  pass(Millis(3'000));
  report(two(), "job-done", id, R"({"error":"no"})");
  EXPECT_EQ(call(two(), "POST", "/v2/remote/retry/" + id).status, 200);
  std::string got;
  for (int i = 0; i < 8 && got.empty(); ++i) {
    sendPing(one(), "");  // the first server may only now learn that the second one has begun
    got = fetchJob(one(), true);
  }
  EXPECT_EQ(got, id) << "the first server has to hear of the result before";
  report(one(), "job-done", id, "{}");
  EXPECT_EQ(find(id).state, JobState::completed);
}

TEST_P(RemoteClusterTest, ALossMayBeReportedToAnyServer) {
  openRemote();
  startLoop(two());
  const std::string id = submit(one(), "remote", kLong);
  ASSERT_EQ(fetchJob(one()), id);
  pass(Millis(3'000));
  const std::string body = R"({"lost":[")" + id + R"("]})";
  EXPECT_EQ(two().call(workerKey_, "POST", "/v2/remote/job-done-batch/w", body).status, 200);
  EXPECT_EQ(find(id).state, JobState::inQueue);
  EXPECT_EQ(find(id).losses, 1U);
  for (int i = 0; i < 3; ++i) {
    sendPing(one(), "");
    pass(Millis(3'000));
  }
  std::string got;
  for (int i = 0; i < 5 && got.empty(); ++i) got = fetchJob(one(), true);
  EXPECT_EQ(got, id) << "the first server has to hear of the loss before";
  report(one(), "job-done", id, "{}");
  EXPECT_EQ(find(id).state, JobState::completed);
  EXPECT_EQ(find(id).losses, 1U);
}

TEST_P(RemoteClusterTest, TheJobsOfADeadServerAreStoppedAndRunAgain) {
  openRemote();
  StopLoop& loop = startLoop(two());
  const std::string id = submit(one(), "remote", kLong);
  ASSERT_EQ(fetchJob(one()), id);
  pass(Millis(5'000));
  disconnect(one());
  eventually(
      "the job to be in the queue", [&] { return find(id).state == JobState::inQueue; }, Millis(20'000));
  sendPing(two(), id);
  eventually(
      "the stop to be told", [&] { return loop.told() >= 1; }, Millis(8'000));
  EXPECT_EQ(fetchJob(two(), true), "") << "a late result would look like that of a new attempt";
  EXPECT_EQ(find(id).state, JobState::inQueue);
  report(two(), "job-done", id, R"({"output":"late"})");
  EXPECT_EQ(find(id).state, JobState::inQueue);
  EXPECT_EQ(fetchJob(two()), id) << "the worker has no job, by its word";
  report(two(), "job-done", id, R"({"output":"new"})");
  EXPECT_EQ(find(id).output, "\"new\"");
  one().faults.heal();
  eventually("the first server to be back", [&] { return call(one(), "GET", "/readyz").status == 200; });
  one().isConnected = true;
}

TEST_P(RemoteClusterTest, AServerThatDiesWithAJobThatNobodyHasHeardOf) {
  openRemote();
  StopLoop& loop = startLoop(two());
  const std::string id = submit(one(), "remote", kLong);
  one().faults.failOperation("records.create");
  ASSERT_EQ(fetchJob(one()), id);
  disconnect(one());
  sendPing(two(), id);
  pass(Millis(3'000));
  EXPECT_EQ(loop.told(), 0) << "the storage says that the worker has the job";
  eventually(
      "the job to be in the queue", [&] { return find(id).state == JobState::inQueue; }, Millis(20'000));
  eventually(
      "the stop to be told", [&] { return loop.told() >= 1; }, Millis(3'000));
  EXPECT_EQ(fetchJob(two(), true), "");
  one().faults.heal();
  one().isConnected = true;
}

TEST_P(RemoteClusterTest, AResultOfARunThatNobodyHasHeardOfDoesNotCountForTheNextAttempt) {
  openRemote();
  const std::string id = loseUnheardJob();
  const std::string fresh = submit(two(), "remote", kLong);
  EXPECT_EQ(fetchJob(two(), true), "") << "the worker may run the job, and its report names no attempt";
  report(two(), "job-done", id, R"({"output":"first"})");
  EXPECT_EQ(find(id).state, JobState::inQueue);
  EXPECT_EQ(fetchJob(two(), false, "w2"), id) << "another worker gets it at once";
  report(two(), "job-done", id, R"({"output":"first"})");
  EXPECT_EQ(find(id).state, JobState::inProgress);
  report(two(), "job-done", id, R"({"output":"second"})", "w2");
  EXPECT_EQ(find(id).output, "\"second\"");
  EXPECT_EQ(fetchJob(two(), true), fresh) << "the queue goes on";
  reconnect(one());
}

TEST_P(RemoteClusterTest, APingShowsThatAWorkerDoesNotRunAJob) {
  openRemote();
  const std::string id = loseUnheardJob();
  EXPECT_EQ(fetchJob(two(), true), "");
  pass(Millis(3'000));
  sendPing(two(), busy_);
  EXPECT_EQ(fetchJob(two(), true), id) << "the answer to its call was lost with the first server";
  report(two(), "job-done", id, R"({"output":1})");
  EXPECT_EQ(find(id).state, JobState::completed);
  reconnect(one());
}

TEST_P(RemoteClusterTest, APingThatListsTheJobKeepsItFromItsWorker) {
  openRemote();
  const std::string id = loseUnheardJob();
  EXPECT_EQ(fetchJob(two(), true), "");
  pass(Millis(3'000));
  sendPing(two(), busy_ + "," + id);
  EXPECT_EQ(fetchJob(two(), true), "");
  EXPECT_EQ(find(id).state, JobState::inQueue);
  reconnect(one());
}

TEST_P(RemoteClusterTest, APingAtAThirdServerShowsTheJobs) {
  openRemote();
  start("endpoint.remote.image = docker.io/acme/worker:1\n");
  const Server& three = *servers_.at(2);
  eventually("the key at the third server",
             [&] { return three.call(workerKey_, "GET", "/v2/remote/ping/nobody").status == 200; });
  pass(Millis(5'000));
  const std::string id = loseUnheardJob();
  sendPing(three, busy_);
  EXPECT_EQ(fetchJob(two(), true), "");
  pass(Millis(6'000));
  EXPECT_EQ(fetchJob(two(), true), "") << "no ping since the question";
  std::string got;
  for (int i = 0; i < 5 && got.empty(); ++i) {
    sendPing(three, busy_);
    pass(Millis(3'000));
    got = fetchJob(two(), true);
  }
  EXPECT_EQ(got, id);
  reconnect(one());
}

TEST_P(RemoteClusterTest, AWorkerThatAsksToBeReplacedLeavesAllServers) {
  openRemote();
  const std::string id = submit(one(), "remote", kLong);
  ASSERT_EQ(fetchJob(one()), id);
  sendPing(two(), id);
  auto waiting = std::async(std::launch::async, [&] { return fetch(two()); });
  eventually("the place of the call", [&] { return healthSays(two(), "remote", R"("idle":1)"); });
  report(one(), "job-done", id, R"({"output":1,"stopPod":true})");
  eventually(
      "the answer of the other server, which would come after 25 s", [&] { return hasPassed(waiting); },
      Millis(15'000));
  EXPECT_EQ(waiting.get().status, 204);
  pass(Millis(6'000));
  const std::string next = submit(two(), "remote", kLong);
  EXPECT_EQ(fetchJob(two()), next) << "a new process under the same id";
}

TEST_P(RemoteClusterTest, AServerWithoutBusyWorkersWritesNothing) {
  openRemote();
  startLoop(two());
  pass(Millis(5'000));
  EXPECT_TRUE(storage_->records().list("remoteNews").empty());
  const std::string id = submit(one(), "remote", kLong);
  ASSERT_EQ(fetchJob(one()), id);
  eventually("one to say that it has the job, and the other that it has the connection",
             [&] { return storage_->records().list("remoteNews").size() == 2; });
  report(two(), "job-done", id, "{}");
  pass(Millis(3'000));
  stop(one());
  stop(two());
  EXPECT_TRUE(storage_->records().list("remoteNews").empty());
}

INSTANTIATE_TEST_SUITE_P(Clocks, RemoteClusterTest, testing::Values(Millis(0), Millis(3'600'000)),
                         [](const auto& info) { return info.param == Millis(0) ? "Equal" : "AnHourAhead"; });

}  // namespace
}  // namespace jobq::test
