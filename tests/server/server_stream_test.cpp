// Tests of /stream on the whole server with the manual clock (core/http/API.md, "Reading a stream";
// core/decisions/jobs.md).
#include "server_fixture.h"

namespace {

using namespace jobq;
using testing::HasSubstr;

constexpr const char* kScripted =
    "storage = memory\nplugins.path = " JOBQ_PLUGIN_DIR ":" JOBQ_FIXTURE_DIR
    "\nendpoint.s.image = plugin/scripted\nendpoint.p.image = plugin/scripted\nendpoint.p.workersMax = 0\n"
    "endpoint.t.image = plugin/trial\n";

class ServerStreamTest : public ServerTest {
 protected:
  ServerStreamTest() { open(kScripted); }

  std::string submit(const std::string& script) { return run("s", "{\"input\":" + script + "}").field("id"); }
  std::string ended(const std::string& script) {
    std::string id = submit(script);
    EXPECT_EQ(call("GET", "/v2/s/status-sync/" + id).field("status"), "COMPLETED");
    return id;
  }
  Answer stream(const std::string& id, const std::string& query = "", const std::string& mount = "/v2") const {
    return call("GET", mount + "/s/stream/" + id + query);
  }
  /// Waits until a thread waits for `time`, and moves the clock by `time`.
  void pass(Millis time) {
    clock_.awaitWaiter(time, time);
    clock_.advance(time);
  }
  static std::string state(const Answer& answer) { return answer.headers.at("X-Job-Status"); }
};

TEST_F(ServerStreamTest, ChunksComeOnceInOrderAndTheEndWithTheLast) {
  const std::string id = ended(R"({"pieces":{"0":{"chunk":{"a":1.0}},"1":{"chunk":"b"},"2":{"chunk":[3]}},"then":{}})");
  const Answer first = stream(id);
  EXPECT_EQ(first.status, 200);
  EXPECT_EQ(first.body, R"([{"output":{"a":1.0}},{"output":"b"},{"output":[3]}])");
  EXPECT_EQ(state(first), "COMPLETED");
  EXPECT_EQ(first.headers.at("X-Job-Attempt"), "1");
  const Answer second = stream(id);
  EXPECT_EQ(second.body, "[]") << "handed out once";
  EXPECT_EQ(state(second), "COMPLETED");
  EXPECT_EQ(status("s", id).field("output"), "{}") << "the output is the handler's return value";
}

TEST_F(ServerStreamTest, TheSdkMountHasTheObject) {
  const std::string id = ended(R"({"pieces":{"0":{"chunk":{"a":1}}}})");
  const Answer first = stream(id, "", "/sdk/v2");
  EXPECT_EQ(first.body, R"({"status":"COMPLETED","stream":[{"output":{"a":1}}]})");
  EXPECT_EQ(stream(id, "", "/sdk/v2").body, R"({"status":"COMPLETED","stream":[]})");
}

// SDKs show the error to their users.
TEST_F(ServerStreamTest, TheSdkMountSaysWhyAJobFailed) {
  const std::string id = submit(R"({"pieces":{"0":{"chunk":1}},"badChunk":"{"})");
  const std::string error = call("GET", "/v2/s/status-sync/" + id).field("error");
  EXPECT_THAT(error, HasSubstr("not JSON"));
  for (const char* chunks : {"[{\"output\":1}]", "[]"}) {
    EXPECT_EQ(stream(id, "", "/sdk/v2").body,
              "{\"status\":\"FAILED\",\"stream\":" + std::string(chunks) + ",\"error\":" + json::quoted(error) + "}");
  }
}

TEST_F(ServerStreamTest, AWaitingLimitedStreamIsNotCounted) {
  open(std::string(kScripted) + "limits.enabled = true\n");
  const std::string id = submit(R"({"pieces":{"0":{"chunk":1,"times":9,"pauseMs":7000}}})");
  clock_.awaitWaiter(Millis(7'000), Millis(7'000));
  for (int i = 0; i < 5; ++i) {
    Answer answer;
    std::thread caller([&] { answer = stream(id, "?wait=1000"); });
    // No wait but that of the stream ends in 100 ms. A thread with an interval of 1 s may be late and read the time
    // between these two steps; with 900 ms in the second one, that thread's wait would end 100 ms after the next round
    // begins.
    pass(Millis(100));
    clock_.advance(Millis(901));
    testkit::join("the caller of /stream", caller);
    EXPECT_EQ(answer.headers["RateLimit-Remaining"], "2000") << i;
  }
  EXPECT_EQ(call("POST", "/v2/s/cancel/" + id).status, 200);
  for (const char* left : {"1999", "1998"}) {
    EXPECT_EQ(stream(id).headers.at("RateLimit-Remaining"), left) << "the stream of an ended job does not wait";
  }
}

TEST_F(ServerStreamTest, MetricsAreCarriedThrough) {
  const std::string id = ended(R"({"pieces":{"0":{"chunk":{"a":1},"metrics":{"output_tokens":1.50,"z":null}}}})");
  EXPECT_EQ(stream(id).body, R"([{"output":{"a":1},"metrics":{"output_tokens":1.50,"z":null}}])");
}

TEST_F(ServerStreamTest, AHandlerWithoutEmitsStreamsNothing) {
  const std::string id = ended(R"({"then":[1,2]})");
  EXPECT_EQ(stream(id).body, "[]");
  EXPECT_EQ(state(stream(id)), "COMPLETED");
}

TEST_F(ServerStreamTest, AnEmptyStreamIsHeldForFiveSeconds) {
  const std::string id = run("p", R"({"input":{}})").field("id");
  for (const auto& [query, hold] : {std::pair("", 5'000), std::pair("?wait=7000", 7'000),
                                    std::pair("?wait=300000", 300'000), std::pair("?offset=0&wait=9000", 9'000)}) {
    Answer answer;
    std::thread caller([&, query = query] { answer = call("GET", "/v2/p/stream/" + id + query); });
    clock_.awaitWaiter(Millis(hold), Millis(hold));
    clock_.advance(Millis(hold));
    testkit::join("the caller of /stream", caller);
    EXPECT_EQ(answer.body, "[]") << query;
    EXPECT_EQ(answer.headers["X-Job-Status"], "IN_QUEUE");
  }
}

TEST_F(ServerStreamTest, AHeldStreamIsAnsweredByTheNextChunkAndByTheEnd) {
  const std::string id = submit(R"({"pieces":{"0":{"chunk":1,"times":2,"pauseMs":7000}},"then":9})");
  clock_.awaitWaiter(Millis(7'000), Millis(7'000));
  Answer first;
  std::thread caller([&] { first = stream(id, "?wait=300000"); });
  pass(Millis(100));  // the chunks of a running job are gathered for 100 ms
  clock_.awaitWaiter(Millis(299'900), Millis(299'900));
  pass(Millis(6'900));
  clock_.awaitWaiter(Millis(7'000), Millis(7'000));  // the handler's second pause
  pass(Millis(100));
  testkit::join("the caller of /stream", caller);
  EXPECT_EQ(first.body, "[{\"output\":1}]");
  EXPECT_EQ(state(first), "IN_PROGRESS");
  Answer second;
  std::thread again([&] { second = stream(id, "?wait=300000"); });
  pass(Millis(100));
  clock_.awaitWaiter(Millis(299'900), Millis(299'900));  // without chunks the call waits for the next one
  pass(Millis(6'800));
  testkit::join("the caller of /stream", again);
  EXPECT_EQ(second.body, "[{\"output\":1}]") << "the end of the job ends the gathering";
  EXPECT_EQ(state(second), "COMPLETED");
  const Answer last = stream(id, "?wait=300000");
  EXPECT_EQ(last.body, "[]");
  EXPECT_EQ(state(last), "COMPLETED");
}

TEST_F(ServerStreamTest, ACancelEndsAHold) {
  const std::string id = run("p", R"({"input":{}})").field("id");
  Answer answer;
  std::thread caller([&] { answer = call("GET", "/v2/p/stream/" + id + "?wait=300000"); });
  clock_.awaitWaiter(Millis(300'000), Millis(300'000));
  EXPECT_EQ(call("POST", "/v2/p/cancel/" + id).status, 200);
  testkit::join("the caller of /stream", caller);
  EXPECT_EQ(answer.headers["X-Job-Status"], "CANCELLED");
}

TEST_F(ServerStreamTest, OffsetReadsAgainWithoutUsingUp) {
  const std::string id = ended(R"({"pieces":{"0":{"chunk":0},"1":{"chunk":1},"2":{"chunk":2}}})");
  EXPECT_EQ(stream(id, "?offset=1").body, R"([{"output":1},{"output":2}])");
  EXPECT_EQ(call("HEAD", "/v2/s/stream/" + id).status, 200) << "a HEAD request uses up no chunks";
  EXPECT_EQ(stream(id).body, R"([{"output":0},{"output":1},{"output":2}])");
  EXPECT_EQ(stream(id, "?offset=0").body, R"([{"output":0},{"output":1},{"output":2}])");
  EXPECT_EQ(stream(id, "?offset=3").body, "[]");
  clock_.advance(Millis(1'800'000));
  EXPECT_EQ(stream(id, "?offset=0").status, 404) << "the chunks expire with the retention";
}

// One answer carries at most 8 MB; a final state comes only with the last chunks.
TEST_F(ServerStreamTest, ALongStreamComesInAnswersOfEightMegabytes) {
  const std::string piece(700'000, 'x');
  const std::string id = ended(R"({"pieces":{"0":{"times":20,"chunk":")" + piece + R"("}}})");
  std::size_t chunks = 0;
  for (bool over = false; !over;) {
    const Answer answer = stream(id);
    ASSERT_EQ(answer.status, 200);
    EXPECT_LE(answer.body.size(), 8UL << 20);
    for (std::size_t at = 0; (at = answer.body.find("{\"output\"", at)) != std::string::npos; ++at) ++chunks;
    over = state(answer) == "COMPLETED";
    if (!over) {
      EXPECT_EQ(state(answer), "IN_PROGRESS");
      EXPECT_GT(answer.body.size(), 4UL << 20);
    }
  }
  EXPECT_EQ(chunks, 20U);
}

TEST_F(ServerStreamTest, APieceOverAMegabyteIsSplit) {
  const std::string id = ended(R"({"text":2500000})");
  const Answer answer = stream(id);
  const auto list = json::read("{\"list\":" + answer.body + "}");
  ASSERT_TRUE(std::holds_alternative<json::Document>(list)) << "cut between characters";
  EXPECT_EQ(answer.body.find("partial"), std::string::npos);
  std::size_t at = 0;
  int pieces = 0;
  while ((at = answer.body.find("{\"output\":", at)) != std::string::npos) {
    EXPECT_LE(answer.body.find('}', at) - at, 1UL << 20);
    ++pieces;
    ++at;
  }
  EXPECT_EQ(pieces, 3);
}

TEST_F(ServerStreamTest, AWrongChunkFailsTheJob) {
  for (const auto& [script, word] :
       {std::pair(R"({"badChunk":"{"})", "not JSON"), std::pair(R"({"badMetrics":"[1]"})", "not a JSON object"),
        std::pair(R"({"badMetrics":"{"})", "not a JSON object")}) {
    const Answer failed = call("POST", "/v2/s/runsync", "{\"input\":" + std::string(script) + "}");
    EXPECT_EQ(failed.field("status"), "FAILED");
    EXPECT_THAT(failed.field("error"), HasSubstr(word));
  }
}

// A job that goes back to the queue starts its stream again, and answers name the attempt of their chunks.
TEST_F(ServerStreamTest, ARetriedJobStartsTheStreamAgain) {
  const std::string id = run("t", R"({"input":{"chunks":2,"chunkBytes":1,"fail":"no"}})").field("id");
  EXPECT_EQ(call("GET", "/v2/t/status-sync/" + id).field("status"), "FAILED");
  const Answer before = call("GET", "/v2/t/stream/" + id);
  EXPECT_THAT(before.body, HasSubstr("\"chunk\":1"));
  EXPECT_EQ(before.headers.at("X-Job-Attempt"), "1");
  EXPECT_EQ(call("POST", "/v2/t/retry/" + id).status, 200);
  EXPECT_EQ(call("GET", "/v2/t/status-sync/" + id).field("status"), "FAILED");
  const Answer after = call("GET", "/v2/t/stream/" + id);
  EXPECT_EQ(after.body, before.body);
  EXPECT_EQ(after.headers.at("X-Job-Attempt"), "3") << "the retry is a new attempt";
}

TEST_F(ServerStreamTest, WrongQueriesAreNamed) {
  const std::string id = ended("{}");
  for (const char* query : {"?wait=999", "?wait=300001", "?wait=x", "?wait=", "?offset=-1", "?offset=1.5"}) {
    const Answer refused = stream(id, query);
    EXPECT_EQ(refused.status, 400) << query;
    EXPECT_THAT(refused.body, testing::AnyOf(HasSubstr("wait"), HasSubstr("offset")));
  }
  EXPECT_EQ(stream("nobody").status, 404);
  EXPECT_EQ(stream(id, "?wait=1", "/sdk/v2").status, 200) << "clamped";
  EXPECT_EQ(stream(id, "?wait=1000.5", "/sdk/v2").status, 200) << "clamped";
  EXPECT_EQ(stream(id, "?wait=soon", "/sdk/v2").status, 400);
}

}  // namespace
