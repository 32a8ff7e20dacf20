// Tests of the parts of jobq-worker that need no server: addresses, answers, reports, the command line
// (core/worker_program).
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <fstream>
#include <future>
#include <map>
#include <optional>
#include <string>
#include <vector>

#include "core/base/clock.h"
#include "core/client/exit_code.h"
#include "core/handler_process/bounded_threads.h"
#include "core/worker_program/call_addresses.h"
#include "core/worker_program/call_pauses.h"
#include "core/worker_program/report_text.h"
#include "core/worker_program/server_connection.h"
#include "core/worker_program/taken_job.h"
#include "core/worker_program/worker_options.h"
#include "scripted_server.h"
#include "testkit/recording_log.h"
#include "testkit/temporary_folder.h"
#include "testkit/wait_for.h"

namespace jobq::worker {
namespace {

using testing::ElementsAre;
using testing::HasSubstr;
using testing::IsEmpty;
using testing::SizeIs;
using testing::StartsWith;
using Variables = std::map<std::string, std::string>;

/// Returns code and sentence of the failure, or an empty string without a failure.
template <class Act>
std::string failureOf(Act&& act) {
  try {
    act();
    return "";
  } catch (const cli::CommandError& failure) {
    return std::to_string(static_cast<int>(failure.code())) + " " + failure.what();
  }
}

Variables callVariables() {
  const std::string base = "http://host:8000/sdk/v2/ep";
  return {{"RUNPOD_WEBHOOK_GET_JOB", base + "/job-take/$ID?gpu=none"},
          {"RUNPOD_WEBHOOK_POST_OUTPUT", base + "/job-done/$RUNPOD_POD_ID/$ID?gpu=none"},
          {"RUNPOD_WEBHOOK_POST_STREAM", base + "/job-stream/$RUNPOD_POD_ID/$ID"},
          {"RUNPOD_WEBHOOK_PING", base + "/ping/$RUNPOD_POD_ID?gpu=none"}};
}

TEST(CallAddressesTest, AreMadeOfAnEndpoint) {
  const auto calls = CallAddresses::ofEndpoint("http://host:8000/behind/", "ep", "w-1", "");
  EXPECT_EQ(calls.server().host, "host");
  EXPECT_EQ(calls.endpoint(), "ep");
  EXPECT_EQ(calls.jobs(4, true), "/behind/v2/ep/job-take-batch/w-1?gpu=none&batch_size=4&job_in_progress=1");
  EXPECT_EQ(calls.jobs(1, false), "/behind/v2/ep/job-take-batch/w-1?gpu=none&batch_size=1&job_in_progress=0");
  EXPECT_EQ(calls.stops(), "/behind/v2/ep/job-stop/w-1?gpu=none");
  EXPECT_EQ(calls.ping({}), "/behind/v2/ep/ping/w-1?gpu=none");
  EXPECT_EQ(calls.ping({"a-u1", "b-u1"}), "/behind/v2/ep/ping/w-1?gpu=none&job_id=a-u1%2Cb-u1");
  EXPECT_EQ(calls.result("a-u1"), "/behind/v2/ep/job-done/w-1/a-u1?gpu=none");
  EXPECT_EQ(calls.results(), "/behind/v2/ep/job-done-batch/w-1?gpu=none");
  EXPECT_EQ(calls.chunk("a-u1", 7), "/behind/v2/ep/job-stream/w-1/a-u1?gpu=none&first=7");
}

TEST(CallAddressesTest, AreMadeOfVariables) {
  const auto calls = CallAddresses::ofVariables(callVariables(), "w-1", "");
  EXPECT_EQ(calls.server().port, 8000);
  EXPECT_EQ(calls.endpoint(), "ep");
  EXPECT_EQ(calls.jobs(2, false), "/sdk/v2/ep/job-take-batch/w-1?gpu=none&batch_size=2&job_in_progress=0");
  EXPECT_EQ(calls.stops(), "/sdk/v2/ep/job-stop/w-1?gpu=none");
  EXPECT_EQ(calls.result("a-u1"), "/sdk/v2/ep/job-done/w-1/a-u1?gpu=none");
  EXPECT_EQ(calls.results(), "/sdk/v2/ep/job-done-batch/w-1?gpu=none");
  EXPECT_EQ(calls.chunk("a-u1", std::nullopt), "/sdk/v2/ep/job-stream/w-1/a-u1?gpu=none") << "every path has a query";
  EXPECT_EQ(calls.ping({"a-u1"}), "/sdk/v2/ep/ping/w-1?gpu=none&job_id=a-u1");
}

TEST(CallAddressesTest, EndpointsAndWorkersWithTheNameOfACall) {
  for (const std::string name : {"ping", "job-take", "job-done", "job-stream"}) {
    Variables variables = callVariables();
    for (auto& [key, value] : variables) value.replace(value.find("/ep/"), 4, "/" + name + "/");
    for (const auto& calls : {CallAddresses::ofVariables(variables, name, ""),
                              CallAddresses::ofEndpoint("http://host/sdk", name, name, "")}) {
      const std::string endpoint = "/sdk/v2/" + name;
      EXPECT_EQ(calls.endpoint(), name);
      EXPECT_THAT(calls.jobs(1, false), StartsWith(endpoint + "/job-take-batch/" + name + "?"));
      EXPECT_THAT(calls.stops(), StartsWith(endpoint + "/job-stop/" + name + "?"));
      EXPECT_THAT(calls.result("a"), StartsWith(endpoint + "/job-done/" + name + "/a?"));
      EXPECT_THAT(calls.results(), StartsWith(endpoint + "/job-done-batch/" + name + "?"));
    }
  }
}

TEST(CallAddressesTest, AnAddressOfADifferentFormMayNameAnything) {
  Variables variables = callVariables();
  variables["RUNPOD_WEBHOOK_PING"] = "http://host:8000/sdk/ping/$RUNPOD_POD_ID";
  variables["RUNPOD_WEBHOOK_POST_OUTPUT"] = "http://host:8000/sdk/v2/ep/job-done/job-done/$ID";
  EXPECT_EQ(CallAddresses::ofVariables(variables, "job-done", "").ping({"a"}), "/sdk/ping/job-done?gpu=none&job_id=a");
}

TEST(CallAddressesTest, AnUnusualAddressOfResultsHasNoBatches) {
  for (const char* path : {"/sdk/v2/ep/done/$RUNPOD_POD_ID/$ID", "/sdk/v2/ep/job-done/$RUNPOD_POD_ID?id=$ID"}) {
    Variables variables = callVariables();
    variables["RUNPOD_WEBHOOK_POST_OUTPUT"] = std::string("http://host:8000") + path;
    EXPECT_EQ(CallAddresses::ofVariables(variables, "w-1", "").results(), "") << path;
  }
}

TEST(CallAddressesTest, MalformedVariablesAreNamed) {
  const auto refused = [](const std::string& name, const std::string& value) {
    Variables variables = callVariables();
    variables.erase(name);
    if (!value.empty()) variables[name] = value;
    return failureOf([&] { (void)CallAddresses::ofVariables(variables, "w-1", ""); });
  };
  EXPECT_THAT(refused("RUNPOD_WEBHOOK_PING", ""), StartsWith("2 the variable RUNPOD_WEBHOOK_PING is missing"));
  EXPECT_THAT(refused("RUNPOD_WEBHOOK_PING", "JOB_DONE_URL"),
              HasSubstr("is not an http:// or https:// address of a call: 'JOB_DONE_URL'"));
  EXPECT_THAT(refused("RUNPOD_WEBHOOK_GET_JOB", "ftp://host:8000/v2/ep/job-take/$ID"),
              HasSubstr("RUNPOD_WEBHOOK_GET_JOB is not an http:// or https:// address"));
  EXPECT_THAT(refused("RUNPOD_WEBHOOK_PING", "http://other/ping?a"),
              HasSubstr("RUNPOD_WEBHOOK_GET_JOB and RUNPOD_WEBHOOK_PING name several servers"));
  for (const char* call : {"POST_OUTPUT", "POST_STREAM", "PING"}) {
    const std::string name = std::string("RUNPOD_WEBHOOK_") + call;
    std::string ofAnother = callVariables()[name];
    ofAnother.replace(ofAnother.find("/ep/"), 4, "/other/");
    EXPECT_THAT(refused(name, ofAnother),
                StartsWith("2 the variable " + name + " is for the endpoint other, RUNPOD_WEBHOOK_GET_JOB for ep"));
  }
  for (const char* path : {"/v2/ep/take/$ID?a", "/job-take/$ID?a", "/v2/e p/job-take/$ID?a"}) {
    EXPECT_THAT(refused("RUNPOD_WEBHOOK_GET_JOB", std::string("http://host:8000") + path),
                HasSubstr("no endpoint before /job-take/"));
  }
}

TEST(TakenJobTest, JobsOfAnAnswer) {
  const auto jobs = readTakenJobs(R"([{"id":"a-u1","input":{"n": 1.0},"s3Config":{"a":1},"webhook":"http://a"},
    {"input":[],"id":"b-u1","policy":{"executionTimeout":7000},"more":true}])");
  ASSERT_TRUE(jobs);
  ASSERT_THAT(*jobs, SizeIs(2));
  EXPECT_EQ((*jobs)[0].id, "a-u1");
  EXPECT_EQ((*jobs)[0].input, R"({"n": 1.0})");
  EXPECT_EQ((*jobs)[0].s3Config, R"({"a":1})");
  EXPECT_FALSE((*jobs)[0].executionTimeout);
  EXPECT_EQ((*jobs)[1].executionTimeout, Millis(7'000));
  const auto single = readTakenJobs(R"({"id":"a-u1","input":{}})");
  ASSERT_TRUE(single);
  EXPECT_THAT(*single, SizeIs(1));
  for (const char* none : {"null", "[]"}) {
    const auto read = readTakenJobs(none);
    ASSERT_TRUE(read) << none;
    EXPECT_THAT(*read, IsEmpty()) << none;
  }
  for (const char* bad :
       {"", "<html>", "7", "[7]", R"([{"id":"a"}])", R"([{"input":{}}])", R"({"id":"a/b","input":{}})"}) {
    EXPECT_FALSE(readTakenJobs(bad)) << bad;
  }
}

TEST(TakenJobTest, StopsOfAnAnswer) {
  EXPECT_THAT(readStops(R"({"jobsToStop":["a-u1","b-u1",7]})"), ElementsAre("a-u1", "b-u1"));
  for (const char* none : {"", "[]", "{}", R"({"jobsToStop":null})", R"({"jobsToStop":[]})"}) {
    EXPECT_THAT(readStops(none), IsEmpty()) << none;
  }
}

TEST(ReportTextTest, EachReport) {
  EXPECT_EQ(resultText(Completed{"[1.0]"}), R"({"output":[1.0]})");
  EXPECT_EQ(resultText(Failed{"a \"b\"", ""}), R"({"error":"a \"b\""})");
  EXPECT_EQ(resultText(Failed{"a", "{}"}), R"({"error":"a","output":{}})");
  EXPECT_EQ(namedText("a-u1", resultText(Completed{"1"})), R"({"id":"a-u1","output":1})");
  EXPECT_EQ(resultText(Failed{"", ""}), R"({"error":"the handler failed without a message"})");
  EXPECT_EQ(progressText("50"), R"({"status":"IN_PROGRESS","output":50})");
  EXPECT_EQ(chunkText("\"x\"", ""), R"({"output":"x"})");
  EXPECT_EQ(chunkText("1", R"({"a":2})"), R"({"output":1,"metrics":{"a":2}})");
}

class WorkerOptionsTest : public testing::Test {
 protected:
  static WorkerOptions read(const std::vector<std::string>& given, const Variables& environment = {}) {
    return readOptions(cli::parseArguments(given, workerOptionRows()), environment);
  }
  static std::string refused(const std::vector<std::string>& given, const Variables& environment = {}) {
    return failureOf([&] { (void)read(given, environment); });
  }

  testkit::TemporaryFolder folder_;
};

TEST_F(WorkerOptionsTest, Defaults) {
  const WorkerOptions options = read({"--endpoint", "ep", "--image", "plugin/echo"});
  EXPECT_EQ(options.addresses.server().url, "http://127.0.0.1:8000");
  EXPECT_THAT(options.addresses.worker(), SizeIs(14)) << "a random name";
  EXPECT_EQ(options.key, "");
  EXPECT_EQ(options.handler.plugin, "echo");
  EXPECT_EQ(options.handler.script, "");
  EXPECT_EQ(options.concurrency, 1U);
  EXPECT_EQ(options.batch, 1U);
  EXPECT_EQ(options.drain, Millis(30'000));
  EXPECT_EQ(options.pingInterval, Millis(10'000));
}

TEST_F(WorkerOptionsTest, EveryOption) {
  const WorkerOptions options =
      read({"--url", "http://host:9", "--endpoint=ep", "--image=lua/reverse", "--worker=w.1", "--concurrency=8",
            "--drain", "2s", "--isolation", "process", "--scripts", "/scripts", "--env", "A=1", "--env", "B=x=y"},
           {{"JOBQ_KEY", "the-key"}, {"JOBQ_URL", "http://other"}, {"RUNPOD_POD_ID", "pod"}});
  EXPECT_EQ(options.addresses.server().url, "http://host:9");
  EXPECT_EQ(options.addresses.worker(), "w.1");
  EXPECT_EQ(options.key, "the-key");
  EXPECT_EQ(options.handler.plugin, "lua");
  EXPECT_EQ(options.handler.script, "reverse");
  EXPECT_EQ(options.batch, 8U) << "the batch is the number of parallel jobs";
  EXPECT_EQ(options.drain, Millis(2'000));
  EXPECT_EQ(options.scripts, "/scripts");
  EXPECT_EQ(options.isolation, Isolation::process);
  EXPECT_EQ(options.variables, (Variables{{"A", "1"}, {"B", "x=y"}}));
}

TEST_F(WorkerOptionsTest, TheKeyBelongsToTheServer) {
  Variables environment = callVariables();
  environment["RUNPOD_AI_API_KEY"] = "pod-key";
  environment["JOBQ_KEY"] = "admin-key";
  environment["RUNPOD_POD_ID"] = "pod";
  environment["RUNPOD_PING_INTERVAL"] = "1000";
  const WorkerOptions ofVariables = read({"--image", "plugin/echo"}, environment);
  EXPECT_EQ(ofVariables.key, "pod-key");
  EXPECT_EQ(ofVariables.addresses.worker(), "pod");
  EXPECT_EQ(ofVariables.pingInterval, Millis(1'000));
  EXPECT_EQ(read({"--image", "plugin/echo", "--endpoint", "ep"}, environment).key, "admin-key");
  std::ofstream(folder_.path() / "key") << "file-key\n";
  const std::string file = (folder_.path() / "key").string();
  EXPECT_EQ(read({"--image", "plugin/echo", "--key-file", file}, environment).key, "file-key");
}

TEST_F(WorkerOptionsTest, WrongUsageNamesTheOption) {
  const auto with = [](std::vector<std::string> more) {
    more.insert(more.end(), {"--endpoint", "ep", "--image", "plugin/echo"});
    return refused(more);
  };
  EXPECT_THAT(refused({}), StartsWith("2 --endpoint is missing"));
  EXPECT_THAT(refused({"--url", "http://host"}, callVariables()), StartsWith("2 --endpoint is missing"));
  Variables withoutTake = callVariables();
  withoutTake.erase("RUNPOD_WEBHOOK_GET_JOB");
  EXPECT_THAT(refused({}, withoutTake), StartsWith("2 the variable RUNPOD_WEBHOOK_GET_JOB is missing"));
  EXPECT_THAT(refused({"--endpoint", "ep"}), StartsWith("2 --image is missing"));
  EXPECT_THAT(refused({"--endpoint", "a b", "--image", "plugin/echo"}), StartsWith("2 --endpoint takes"));
  for (const char* image : {"docker.io/a", "plugin/", "lua/../x"}) {
    EXPECT_THAT(refused({"--endpoint", "ep", "--image", image}), StartsWith("2 --image ")) << image;
  }
  for (const char* number : {"0", "1001", "x", "1.5", ""}) {
    EXPECT_THAT(with({"--concurrency", number}), StartsWith("2 --concurrency takes")) << number;
    EXPECT_THAT(with({"--batch", number}), StartsWith("2 --batch takes")) << number;
  }
  EXPECT_THAT(with({"--drain", "5"}), StartsWith("2 --drain takes"));
  EXPECT_THAT(with({"--isolation", "fibre"}), StartsWith("2 --isolation takes thread or process, not 'fibre'"));
  EXPECT_THAT(with({"--worker", "a/b"}), StartsWith("2 --worker (or RUNPOD_POD_ID) takes"));
  EXPECT_THAT(with({"--url", "host:80"}), HasSubstr("is not an address"));
  EXPECT_THAT(with({"--key-file", "/nowhere"}), HasSubstr("'/nowhere' cannot be read"));
  EXPECT_THAT(with({"--env", "A"}), StartsWith("2 --env takes NAME=VALUE"));
  EXPECT_THAT(with({"plugin/echo"}), StartsWith("2 'plugin/echo' is not an option"));
  EXPECT_THAT(with({"--nothing"}), StartsWith("2 "));
}

class ServerConnectionTest : public testing::Test {
 protected:
  test::ScriptedServer server_;
  SystemClock clock_;
  const cli::ServerAddress address_ = cli::readServerAddress(server_.url(), "");
  ServerConnection connection_{address_, "the-key", Millis(30'000), clock_};
};

TEST_F(ServerConnectionTest, EveryStatusIsAnAnswer) {
  server_.answer("{}");
  server_.answer(R"({"error":"too warm"})", "503 Service Unavailable", "Connection: close\r\n");
  server_.answerRaw("HTTP/1.1 204 No Content\r\nConnection: close\r\n\r\n");
  EXPECT_EQ(connection_.post("/a?b=1", "{\"c\":2}").body, "{}");
  const Answer refusal = connection_.get("/d");
  EXPECT_EQ(refusal.status, 503);
  EXPECT_EQ(refusal.refusal, "too warm");
  EXPECT_TRUE(refusal.isTransient());
  EXPECT_EQ(connection_.get("/e").status, 204);
  EXPECT_THAT(server_.calls(), ElementsAre("POST /a?b=1 {\"c\":2}", "GET /d", "GET /e"));
  EXPECT_THAT(server_.requests()[0], HasSubstr("\r\nAuthorization: Bearer the-key\r\n"));
}

// The server of the test closes each connection after its answer, without a word.
TEST_F(ServerConnectionTest, AnEndedKeptConnectionIsReplaced) {
  for (int i = 0; i < 3; ++i) {
    server_.answer("[]");
    EXPECT_EQ(connection_.get("/a").body, "[]");
  }
  EXPECT_THAT(server_.calls(), ElementsAre("GET /a", "GET /a", "GET /a"));
}

TEST_F(ServerConnectionTest, AnIncompleteAnswerIsAFailure) {
  server_.answerRaw("HTTP/1.1 200 OK\r\nContent-Length: 10\r\n\r\nshort");
  EXPECT_THAT(failureOf([this] { (void)connection_.get("/a"); }), StartsWith("3 "));
  EXPECT_THAT(failureOf([this] { (void)connection_.get("/a"); }), StartsWith("3 cannot reach the server at "));
}

TEST(CallPausesTest, AnOutageIsLoggedOnce) {
  SystemClock clock;
  testkit::RecordingLog log;
  std::stop_source stop;
  CallPauses pauses("calls", clock, log, stop.get_token());
  pauses.noteSuccess();
  EXPECT_TRUE(pauses.pause(""));
  EXPECT_TRUE(pauses.pause("it is gone"));
  EXPECT_TRUE(pauses.pause("it is still gone"));
  pauses.noteSuccess();
  EXPECT_THAT(log.lines(), ElementsAre("server.failing: calls fail and are repeated: it is gone",
                                       "server.answering: calls succeed again"));
  stop.request_stop();
  EXPECT_FALSE(pauses.pause("it is gone"));
}

TEST(BoundedThreadsTest, TheEndIsAwaitedForABoundedTime) {
  SystemClock clock;
  BoundedThreads threads(clock);
  std::promise<void> allowed;
  threads.start("test", [end = allowed.get_future().share()] { end.wait_for(testkit::kHangDeadline); });
  EXPECT_FALSE(threads.awaitEnd(clock.now() + Millis(1)));
  allowed.set_value();
  EXPECT_TRUE(threads.awaitEnd(clock.now() + Millis(testkit::kHangDeadline)));
}

}  // namespace
}  // namespace jobq::worker
