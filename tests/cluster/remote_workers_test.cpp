// A remote worker behind a load balancer, with two whole servers on one storage: the worker takes a job at one server,
// and delivers, pings and asks for stops at the other. Each call opens a connection.
#include <algorithm>
#include <future>
#include <string>
#include <vector>

#include "jobq/json.h"
#include "jobq/record_store.h"
#include "remote_cluster.h"

namespace jobq::test {
namespace {

TEST_P(RemoteClusterTest, ReportsCountAtAnyServer) {
  openRemote();
  const std::string id = beginJob();
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
  EXPECT_EQ(loop.told(), 0) << "the worker has already delivered the job";
}

TEST_P(RemoteClusterTest, ACountedChunkIsStoredOnceAtAnyServer) {
  openRemote();
  const std::string id = beginJob();
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

TEST_P(RemoteClusterTest, AConnectionToASecondServerKeepsTheJobs) {
  openRemote();
  StopLoop& loop = startLoop(two());
  const std::string id = beginJob();
  pass(Millis(60'000));
  EXPECT_EQ(find(id).state, JobState::inProgress);
  EXPECT_EQ(find(id).losses, 0U);
  endLoop(loop);
  eventually(
      "the loss of the job", [&] { return find(id).losses == 1; }, Millis(25'000));
}

TEST_P(RemoteClusterTest, MadeUpWorkersLoseNoJobOfAForeignEndpoint) {
  openRemote("endpoint.flood.image = docker.io/acme/worker:1\n");
  startLoop(two());
  const std::string id = beginJob();
  std::string jobs;
  for (int i = 0; i < 99; ++i) jobs += (i == 0 ? "" : ",") + std::to_string(i);
  for (int worker = 0; worker < 220; ++worker) {
    const std::string target = "/v2/flood/ping/" + std::to_string(worker) + "?job_id=" + jobs;
    ASSERT_EQ(two().call(workerKey_, "GET", target).status, 200);
  }
  pass(Millis(14'000));
  EXPECT_EQ(find(id).losses, 0U) << "the news omitted the connection to the other server";
  EXPECT_EQ(find(id).state, JobState::inProgress);
}

// Each call opens a connection and closes the connection in order, as a proxy does.
TEST_P(RemoteClusterTest, PingsAtASecondServerKeepTheJobsOfAWorkerWithoutAConnection) {
  openRemote();
  const std::string id = beginJob();
  for (int i = 0; i < 6; ++i) {
    pass(Millis(10'000));
    sendPing(two(), id);
  }
  EXPECT_EQ(find(id).losses, 0U);
  eventually(
      "the loss of the job", [&] { return find(id).losses == 1; }, Millis(30'000));
}

TEST_P(RemoteClusterTest, PingsAtASecondServerKeepAndLoseAJob) {
  openRemote();
  startLoop(two());
  const std::string id = beginJob();
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

TEST_P(RemoteClusterTest, AStopIsSentAtASecondServerUntilThePingsThereOmitTheJob) {
  openRemote();
  StopLoop& loop = startLoop(two());
  const std::string id = beginJob();
  pass(Millis(3'000));
  sendPing(two(), id);
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

TEST_P(RemoteClusterTest, AResultAtASecondServerEndsTheStop) {
  openRemote();
  StopLoop& loop = startLoop(two());
  const std::string id = beginJob();
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

TEST_P(RemoteClusterTest, AWorkerGetsAFailedJobAgainWithinSeconds) {
  openRemote();
  startLoop(two());
  const std::string id = beginJob();
  pass(Millis(3'000));
  report(two(), "job-done", id, R"({"error":"no"})");
  EXPECT_EQ(call(two(), "POST", "/v2/remote/retry/" + id).status, 200);
  std::string got;
  for (int i = 0; i < 8 && got.empty(); ++i) {
    sendPing(one(), "");  // the first server may learn only now of the start of the second server
    got = fetchJob(one(), true);
  }
  EXPECT_EQ(got, id) << "the first server has to learn of the result first";
  report(one(), "job-done", id, "{}");
  EXPECT_EQ(find(id).state, JobState::completed);
}

TEST_P(RemoteClusterTest, ALossMayBeReportedToAnyServer) {
  openRemote();
  startLoop(two());
  const std::string id = beginJob();
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
  EXPECT_EQ(got, id) << "the first server has to learn of the loss first";
  report(one(), "job-done", id, "{}");
  EXPECT_EQ(find(id).state, JobState::completed);
  EXPECT_EQ(find(id).losses, 1U);
}

TEST_P(RemoteClusterTest, TheJobsOfADeadServerAreStoppedAndRunAgain) {
  openRemote();
  StopLoop& loop = startLoop(two());
  const std::string id = beginJob();
  pass(Millis(5'000));
  disconnect(one());
  eventually(
      "the job to be in the queue", [&] { return find(id).state == JobState::inQueue; }, Millis(20'000));
  sendPing(two(), id);
  eventually(
      "the stop to be told", [&] { return loop.told() >= 1; }, Millis(8'000));
  EXPECT_EQ(fetchJob(two(), true), "") << "a late result would count for the new attempt";
  EXPECT_EQ(find(id).state, JobState::inQueue);
  report(two(), "job-done", id, R"({"output":"late"})");
  EXPECT_EQ(find(id).state, JobState::inQueue);
  EXPECT_EQ(fetchJob(two()), id) << "the call reports an idle worker";
  report(two(), "job-done", id, R"({"output":"new"})");
  EXPECT_EQ(find(id).output, "\"new\"");
  one().faults.heal();
  eventually("the first server to be back", [&] { return call(one(), "GET", "/readyz").status == 200; });
  one().isConnected = true;
}

TEST_P(RemoteClusterTest, AWorkerAskingForReplacementLeavesAllServers) {
  openRemote();
  const std::string id = beginJob();
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

TEST_P(RemoteClusterTest, AServerWithoutBusyWorkersWritesNoRecord) {
  openRemote();
  startLoop(two());
  pass(Millis(5'000));
  EXPECT_TRUE(storage_->records().list("remoteNews").empty());
  const std::string id = beginJob();
  eventually("one to say that it has the job, and the other that it has the connection",
             [&] { return storage_->records().list("remoteNews").size() == 2; });
  report(two(), "job-done", id, "{}");
  // A server that stops before reading of the delivery leaves the record, because the worker might still run the job.
  eventually("each server to know that the job has ended", [&] {
    const auto news = storage_->records().list("remoteNews");
    return std::none_of(news.begin(), news.end(),
                        [&](const Record& each) { return each.body.find(id) != std::string::npos; });
  });
  stop(one());
  stop(two());
  EXPECT_TRUE(storage_->records().list("remoteNews").empty());
}

INSTANTIATE_TEST_SUITE_P(Clocks, RemoteClusterTest, testing::Values(Millis(0), Millis(3'600'000)),
                         [](const auto& info) { return info.param == Millis(0) ? "Equal" : "AnHourAhead"; });

}  // namespace
}  // namespace jobq::test
