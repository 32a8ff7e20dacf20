// Tests of the results of jobq-worker on their way to the server (core/worker_program/result_queue.h, result_sender.h).
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <future>
#include <memory>
#include <stop_token>
#include <string>
#include <vector>

#include "core/base/clock.h"
#include "core/worker_program/call_addresses.h"
#include "core/worker_program/end_request.h"
#include "core/worker_program/jobs_in_hand.h"
#include "core/worker_program/remote_context.h"
#include "core/worker_program/report_sender.h"
#include "core/worker_program/result_queue.h"
#include "core/worker_program/result_sender.h"
#include "scripted_server.h"
#include "testkit/recording_log.h"
#include "testkit/wait_for.h"

namespace jobq::worker {
namespace {

using testing::ElementsAre;
using testing::HasSubstr;
using testing::IsEmpty;

UnsentResult unsentResult(const JobId& id, std::string report) {
  return {std::make_shared<JobInHand>(TakenJob{id, "{}"}), Instant::max(), std::move(report)};
}

std::vector<JobId> idsOf(const std::vector<UnsentResult>& results) {
  std::vector<JobId> ids;
  for (const UnsentResult& result : results) ids.push_back(result.job->job.id);
  return ids;
}

class ResultQueueTest : public testing::Test {
 protected:
  void add(const JobId& id, std::size_t bytes = 10) { results_.add(unsentResult(id, std::string(bytes, 'x'))); }
  std::vector<JobId> next(std::size_t most = 1'000) { return idsOf(results_.awaitBatch(most)); }

  ResultQueue results_;
};

TEST_F(ResultQueueTest, ABatchHasAllGatheredResults) {
  for (const char* id : {"a", "b", "c"}) add(id);
  EXPECT_THAT(next(2), ElementsAre("a", "b"));
  EXPECT_THAT(next(2), ElementsAre("c"));
  auto waiting = std::async(std::launch::async, [this] { return next(); });
  add("d");
  EXPECT_THAT(testkit::resultOf("the batch", waiting), ElementsAre("d"));
  results_.endAdding();
  EXPECT_THAT(next(), IsEmpty());
}

TEST_F(ResultQueueTest, ABatchIsBoundedInBytes) {
  add("a", ResultQueue::kBatchBytes - 10);
  add("b", 10);
  add("c", 1);
  add("d", ResultQueue::kBatchBytes + 1);
  add("e", 1);
  EXPECT_THAT(next(), ElementsAre("a", "b"));
  EXPECT_THAT(next(), ElementsAre("c"));
  EXPECT_THAT(next(), ElementsAre("d")) << "a result beyond the bound is sent alone";
  EXPECT_THAT(next(), ElementsAre("e"));
}

TEST_F(ResultQueueTest, ALoneResultIsSentSeparately) {
  for (const char* id : {"a", "b", "c"}) add(id);
  auto batch = results_.awaitBatch(2);
  for (UnsentResult& result : batch) result.isAlone = true;
  results_.putFirst(std::move(batch));
  add("d");
  EXPECT_THAT(next(), ElementsAre("a"));
  EXPECT_THAT(next(), ElementsAre("b"));
  EXPECT_THAT(next(), ElementsAre("c", "d"));
}

TEST_F(ResultQueueTest, HandlersWaitWhileTooManyBytesWait) {
  add("a", ResultQueue::kMostBytes + 1);
  auto adding = std::async(std::launch::async, [this] { add("b"); });
  EXPECT_THAT(next(), ElementsAre("a"));
  testkit::resultOf("the second result", adding);
  EXPECT_THAT(next(), ElementsAre("b"));
}

TEST_F(ResultQueueTest, AbandonedResultsAreDropped) {
  add("a", ResultQueue::kMostBytes + 1);
  auto adding = std::async(std::launch::async, [this] { add("b"); });
  results_.abandon();
  testkit::resultOf("the second result", adding);
  add("c");
  EXPECT_THAT(next(), IsEmpty());
}

class ResultSenderTest : public testing::Test {
 protected:
  ResultSenderTest() { jobs_.addHandler(); }

  /// Adds the result of a job in hand, and returns the job.
  JobPtr add(const JobId& id, Instant latest = Instant::max()) {
    (void)jobs_.add({TakenJob{id, "{}"}});
    const JobPtr job = jobs_.awaitJob(last_);
    last_ = job;
    results_.add({job, latest, R"({"output":1})"});
    return job;
  }
  /// Sends all results.
  void send() {
    results_.endAdding();
    runResultLoop(deps_, results_, jobs_, over_.get_token());
  }
  std::vector<std::string> calls() const { return server_.calls(); }
  static std::string single(const JobId& id) { return "POST /v2/ep/job-done/w/" + id + "?gpu=none {\"output\":1}"; }
  static std::string batch(const std::vector<JobId>& ids) {
    std::string text;
    for (const JobId& id : ids) text += (text.empty() ? "[{\"id\":\"" : ",{\"id\":\"") + id + "\",\"output\":1}";
    return "POST /v2/ep/job-done-batch/w?gpu=none " + text + "]";
  }

  test::ScriptedServer server_;
  SystemClock clock_;
  testkit::RecordingLog log_;
  EndRequest end_;
  const CallAddresses addresses_ = CallAddresses::ofEndpoint(server_.url(), "ep", "w", "");
  const std::string key_ = "the-key";
  const CallDeps deps_{addresses_, key_, clock_, log_, end_};
  ResultQueue results_;
  JobsInHand jobs_{1};
  JobPtr last_;
  std::stop_source over_;
};

TEST_F(ResultSenderTest, ResultsGoTogether) {
  for (const char* id : {"a", "b", "c"}) add(id);
  server_.answer("{}");
  send();
  EXPECT_THAT(calls(), ElementsAre(batch({"a", "b", "c"})));
  EXPECT_THAT(jobs_.ids(), IsEmpty());
}

TEST_F(ResultSenderTest, ASingleResultIsASeparateReport) {
  add("a");
  server_.answer("{}");
  send();
  EXPECT_THAT(calls(), ElementsAre(single("a")));
}

TEST_F(ResultSenderTest, AnOlderServerGetsSingleResults) {
  for (const char* status : {"404 Not Found", "405 Method Not Allowed"}) {
    test::ScriptedServer older;
    older.answer(R"({"error":"no such path"})", status);
    const CallAddresses addresses = CallAddresses::ofEndpoint(older.url(), "ep", "w", "");
    ResultQueue results;
    for (const char* id : {"a", "b", "c"}) results.add(unsentResult(id, R"({"output":1})"));
    for (int i = 0; i < 3; ++i) older.answer("{}");
    results.endAdding();
    runResultLoop({addresses, key_, clock_, log_, end_}, results, jobs_, over_.get_token());
    EXPECT_THAT(older.calls(), ElementsAre(batch({"a", "b", "c"}), single("a"), single("b"), single("c"))) << status;
  }
}

// The other batches are not concerned: the reason may be one of the results.
TEST_F(ResultSenderTest, ARefusedBatchIsSentAsSingleResults) {
  add("a");
  add("b");
  server_.answer(R"({"error":"element 1 is nested too deep"})", "400 Bad Request");
  server_.answer("{}");
  server_.answer(R"({"error":"no"})", "400 Bad Request");
  send();
  EXPECT_THAT(calls(), ElementsAre(batch({"a", "b"}), single("a"), single("b")));
  EXPECT_THAT(log_.lines(), ElementsAre("report.refused: the server refuses a report of a job: no"));
  EXPECT_THAT(jobs_.ids(), IsEmpty());
}

TEST_F(ResultSenderTest, ARefusedBatchIsRepeatedInHalves) {
  for (const char* id : {"a", "b", "c", "d"}) add(id);
  server_.answer(R"({"error":"the disk is full"})", "503 Service Unavailable");
  for (int i = 0; i < 2; ++i) server_.answer("{}");
  send();
  EXPECT_THAT(calls(), ElementsAre(batch({"a", "b", "c", "d"}), batch({"a", "b"}), batch({"c", "d"})));
  EXPECT_THAT(jobs_.ids(), IsEmpty());
}

TEST_F(ResultSenderTest, ARefusedResultDoesNotHoldUpTheOtherResults) {
  for (const char* id : {"a", "b"}) add(id);
  const char* const kFull = "507 Insufficient Storage";
  server_.answer("{}", kFull);
  server_.answer("{}", kFull);
  server_.answer("{}");
  server_.answer("{}");
  send();
  EXPECT_THAT(calls(), ElementsAre(batch({"a", "b"}), single("a"), single("b"), single("a")));
}

TEST_F(ResultSenderTest, StoppedAndLateResultsGetASingleTry) {
  add("a")->stop.request_stop();
  add("b", clock_.now());
  add("c");
  server_.answer("{}", "503 Service Unavailable");
  server_.answer("{}");
  send();
  EXPECT_THAT(calls(), ElementsAre(batch({"a", "b", "c"}), single("c")));
  EXPECT_THAT(jobs_.ids(), IsEmpty());
}

TEST_F(ResultSenderTest, AnAbandonedResultIsNotSent) {
  add("a")->isAbandoned = true;
  add("b");
  server_.answer("{}");
  send();
  EXPECT_THAT(calls(), ElementsAre(single("b")));
}

TEST_F(ResultSenderTest, ALostAnswerIsAskedForAgain) {
  add("a");
  add("b");
  server_.answerRaw("HTTP/1.1 200 OK\r\nContent-Length: 10\r\n\r\n{");
  server_.answer("{}");
  server_.answer("{}");
  send();
  EXPECT_THAT(calls(), ElementsAre(batch({"a", "b"}), single("a"), single("b")));
  EXPECT_THAT(log_.lines().at(0), HasSubstr("reports of jobs fail and are repeated"));
}

class RemoteContextTest : public ResultSenderTest {
 protected:
  RemoteContextTest() : job_(TakenJob{"a-u1", "{}"}) {}

  ReportSender reports_{deps_};
  JobInHand job_;
  RemoteContext context_{deps_, reports_, job_};
};

TEST_F(RemoteContextTest, ChunksAreCounted) {
  server_.answer(R"({"next":1})");
  server_.answer(R"({"next":4})");
  server_.answer("{}");
  server_.answer("{}");
  for (const char* chunk : {"1", "2", "3", "4"}) context_.emit(chunk, "");
  const std::string path = "POST /v2/ep/job-stream/w/a-u1?gpu=none";
  EXPECT_THAT(calls(), ElementsAre(path + "&first=0 {\"output\":1}", path + "&first=1 {\"output\":2}",
                                   path + "&first=4 {\"output\":3}", path + " {\"output\":4}"));
}

// core/http/API.md, "/job-done, /job-done-batch and /job-stream": the server stores no chunk behind a missing one.
TEST_F(RemoteContextTest, AChunkAfterMissingChunksFailsTheJob) {
  server_.answer(R"({"next":2})");
  server_.answer(R"({"next":1})");
  context_.emit("1", "");
  try {
    context_.emit("2", "");
    FAIL() << "the second chunk is not stored";
  } catch (const JobFailed& failure) {
    EXPECT_THAT(failure.what(), HasSubstr("the server has 1 of 2 chunks"));
  }
}

class LossTest : public ResultSenderTest {
 protected:
  std::vector<std::string> report() {
    ReportSender(deps_).postLoss("a-u1", over_.get_token(), clock_.now() + Millis(10'000));
    return calls();
  }

  const std::string call_ = R"(POST /v2/ep/job-done-batch/w?gpu=none {"lost":["a-u1"]})";
};

TEST_F(LossTest, AnUnavailableServerIsAskedAgain) {
  server_.answer("", "503 Service Unavailable");
  server_.answer("{}");
  EXPECT_THAT(report(), ElementsAre(call_, call_));
}

// The job may be in the hands of the worker again.
TEST_F(LossTest, AReportWithoutAnAnswerIsNotRepeated) { EXPECT_THAT(report(), ElementsAre(call_)); }

TEST_F(LossTest, AnOlderServerLearnsOfTheLossByThePings) {
  server_.answer(R"({"error":"the body is not an array of results"})", "400 Bad Request");
  EXPECT_THAT(report(), ElementsAre(call_));
  EXPECT_FALSE(end_.failure());
}

// The server may hand out the job before the worker has the answer to the report of the loss.
TEST_F(LossTest, ALostJobMayComeAgain) {
  const JobPtr lost = add("a");
  lost->isLost = true;
  EXPECT_THAT(jobs_.ids(), IsEmpty());
  EXPECT_THAT(jobs_.add({TakenJob{"a", "{}"}}), IsEmpty());
  jobs_.remove({&lost, 1});
  EXPECT_THAT(jobs_.ids(), ElementsAre("a"));
  EXPECT_NE(jobs_.awaitJob(lost), lost);
}

TEST(TakenJobTest, TheNumberOfTheNextChunk) {
  EXPECT_EQ(readNextChunk(R"({"next":3})"), 3U);
  for (const char* none : {"", "{}", "[]", R"({"next":-1})", R"({"next":"3"})"}) {
    EXPECT_EQ(readNextChunk(none), std::nullopt) << none << ": the server does not count";
  }
}

}  // namespace
}  // namespace jobq::worker
