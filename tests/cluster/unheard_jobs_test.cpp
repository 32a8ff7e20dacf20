// Jobs unknown to all other servers when their server dies, with two whole servers on one storage.
#include <string>

#include "remote_cluster.h"

namespace jobq::test {
namespace {

class UnheardJobsTest : public RemoteClusterTest {};

TEST_P(UnheardJobsTest, AServerDiesWithAnUnheardJob) {
  openRemote();
  StopLoop& loop = startLoop(two());
  const std::string id = submit(one(), "remote", kLong);
  one().faults.failOperation("records.create");
  ASSERT_EQ(fetchJob(one()), id);
  disconnect(one());
  sendPing(two(), id);
  pass(Millis(3'000));
  EXPECT_EQ(loop.told(), 0) << "the storage still assigns the job to the worker";
  eventually(
      "the job to be in the queue", [&] { return find(id).state == JobState::inQueue; }, Millis(20'000));
  eventually(
      "the stop to be told", [&] { return loop.told() >= 1; }, Millis(3'000));
  EXPECT_EQ(fetchJob(two(), true), "");
  one().faults.heal();
  one().isConnected = true;
}

TEST_P(UnheardJobsTest, AResultOfAnUnheardRunDoesNotCountForTheNextAttempt) {
  openRemote();
  const std::string id = loseUnheardJob();
  const std::string fresh = submit(two(), "remote", kLong);
  EXPECT_EQ(fetchJob(two(), true), "") << "the worker may run the job, and a report names no attempt";
  report(two(), "job-done", id, R"({"output":"first"})");
  EXPECT_EQ(find(id).state, JobState::inQueue);
  EXPECT_EQ(fetchJob(two(), false, "w2"), id) << "a second worker gets the job at once";
  report(two(), "job-done", id, R"({"output":"first"})");
  EXPECT_EQ(find(id).state, JobState::inProgress);
  report(two(), "job-done", id, R"({"output":"second"})", "w2");
  EXPECT_EQ(find(id).output, "\"second\"");
  EXPECT_EQ(fetchJob(two(), true), fresh) << "the queue goes on";
  reconnect(one());
}

TEST_P(UnheardJobsTest, APingShowsThatAWorkerDoesNotRunAJob) {
  openRemote();
  const std::string id = loseUnheardJob();
  EXPECT_EQ(fetchJob(two(), true), "");
  // A ping counts from two seconds after the moment at which the server has noticed the end of the other life. The
  // clock moves without waiting for the server's threads, so the first ping may be early. A worker pings for ever.
  std::string fetched;
  for (int pings = 0; pings < 3 && fetched.empty(); ++pings) {
    pass(Millis(3'000));
    sendPing(two(), busy_);
    fetched = fetchJob(two(), true);
  }
  EXPECT_EQ(fetched, id) << "the answer with the job was lost with the first server";
  report(two(), "job-done", id, R"({"output":1})");
  EXPECT_EQ(find(id).state, JobState::completed);
  reconnect(one());
}

TEST_P(UnheardJobsTest, APingListingTheJobKeepsTheJobFromTheWorker) {
  openRemote();
  const std::string id = loseUnheardJob();
  EXPECT_EQ(fetchJob(two(), true), "");
  pass(Millis(3'000));
  sendPing(two(), busy_ + "," + id);
  EXPECT_EQ(fetchJob(two(), true), "");
  EXPECT_EQ(find(id).state, JobState::inQueue);
  reconnect(one());
}

TEST_P(UnheardJobsTest, APingAtAThirdServerShowsTheJobs) {
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

INSTANTIATE_TEST_SUITE_P(Clocks, UnheardJobsTest, testing::Values(Millis(0), Millis(3'600'000)),
                         [](const auto& info) { return info.param == Millis(0) ? "Equal" : "AnHourAhead"; });

}  // namespace
}  // namespace jobq::test
