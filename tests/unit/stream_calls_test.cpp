// Tests of /stream and /logs without a socket (core/http/api/queue/stream_calls.cpp,
// core/http/api/queue/log_calls.cpp).
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cstdint>
#include <future>
#include <map>
#include <string>
#include <utility>
#include <vector>

#include "jobq/error.h"
#include "queue_routes_fixture.h"

namespace jobq {
namespace {

using test::expectAnswer;
using testing::HasSubstr;

class StreamCallsTest : public testing::Test, protected test::QueueRoutesFixture {
 protected:
  /// Starts a job and gives the job chunks with the outputs.
  LeaseRef start(const JobId& id, const std::vector<std::string>& outputs) {
    storage_.insert(id);
    const LeaseRef lease = claim();
    std::uint64_t number = 0;
    for (const std::string& output : outputs) {
      EXPECT_EQ(reports_.append(lease, number++, {{output, ""}}), ReportResult::accepted);
    }
    return lease;
  }
  ApiResponse stream(const std::string& id, Query query = {}) {
    return call("GET", "/v2/ep/stream/" + id, "", std::move(query));
  }
  static std::string jobHeaders(const std::string& state, int attempt = 1) {
    return "X-Job-Status: " + state + "\nX-Job-Attempt: " + std::to_string(attempt) + "\n";
  }
};

TEST_F(StreamCallsTest, EachChunkIsHandedOutOnce) {
  const LeaseRef lease = start("a", {"1", "{\"b\" : 1.50}"});
  (void)reports_.append(lease, 2, {{"3", R"({"tokens":7})", true}});
  (void)reports_.finish(lease, Completed{"7"}, false);
  const ApiResponse first = stream("a");
  expectAnswer(first, 200,
               R"([{"output":1},{"output":{"b" : 1.50}},{"output":3,"metrics":{"tokens":7},"partial":true}])");
  EXPECT_EQ(headersOf(first), jobHeaders("COMPLETED"));
  EXPECT_EQ(scope_, Scope::client | Scope::submit | Scope::read);
  const ApiResponse second = stream("a");
  expectAnswer(second, 200, "[]");
  EXPECT_EQ(headersOf(second), jobHeaders("COMPLETED"));
}

TEST_F(StreamCallsTest, AnOffsetAndAHeadConsumeNoChunk) {
  (void)reports_.finish(start("a", {"1", "2", "3"}), Completed{"7"}, false);
  expectAnswer(stream("a", {{"offset", "1"}}), 200, R"([{"output":2},{"output":3}])");
  expectAnswer(stream("a", {{"offset", "0"}}), 200, R"([{"output":1},{"output":2},{"output":3}])");
  expectAnswer(stream("a", {{"offset", "3"}}), 200, "[]");
  expectAnswer(call("HEAD", "/v2/ep/stream/a"), 200, R"([{"output":1},{"output":2},{"output":3}])");
  expectAnswer(stream("a"), 200, R"([{"output":1},{"output":2},{"output":3}])");
}

TEST_F(StreamCallsTest, AWrongNumberConsumesNoChunk) {
  (void)reports_.finish(start("a", {"1"}), Completed{"7"}, false);
  for (const char* mount : {"/v2", "/sdk/v2"}) {
    expectAnswer(call("GET", std::string(mount) + "/ep/stream/a", "", {{"offset", "-1"}}), 400,
                 R"({"error":"offset must be an integer from 0 to 9007199254740992"})");
  }
  expectAnswer(stream("a", {{"wait", "10"}}), 400,
               R"({"error":"wait must be an integer from 1000 to 300000; you sent 10: milliseconds?"})");
  expectAnswer(stream("a"), 200, R"([{"output":1}])");
}

TEST_F(StreamCallsTest, TheOtherMountAnswersAnObjectWithTheError) {
  (void)reports_.finish(start("a", {"1"}), Failed{"no \"luck\"", ""}, false);
  const ApiResponse response = call("GET", "/sdk/v2/ep/stream/a");
  expectAnswer(response, 200, R"({"status":"FAILED","stream":[{"output":1}],"error":"no \"luck\""})");
  EXPECT_EQ(headersOf(response), jobHeaders("FAILED"));
  (void)reports_.finish(start("b", {}), Completed{"1"}, false);
  expectAnswer(call("GET", "/sdk/v2/ep/stream/b"), 200, R"({"status":"COMPLETED","stream":[]})");
  storage_.faults.failOperation("jobs.find");
  expectAnswer(call("GET", "/sdk/v2/ep/stream/a"), 200, R"({"status":"FAILED","stream":[]})");
}

TEST_F(StreamCallsTest, AnUnknownJobIs404) {
  expectAnswer(stream("none"), 404, noSuchJob("none"));
  expectAnswer(call("POST", "/sdk/v2/ep/stream/none"), 404, noSuchJob("none"));
  expectAnswer(call("GET", "/v2/ep/logs/none"), 404, noSuchJob("none"));
}

TEST_F(StreamCallsTest, AStreamWithoutAChunkWaitsForTheEndOfTheJob) {
  const LeaseRef lease = start("a", {});
  auto answer = callAndWait("GET", "/v2/ep/stream/a", Millis(5'000));
  EXPECT_EQ(waiting_.left(), 3U);
  (void)reports_.finish(lease, Completed{"7"}, false);
  const ApiResponse response = testkit::resultOf("the answer of /stream", answer);
  expectAnswer(response, 200, "[]");
  EXPECT_EQ(headersOf(response), jobHeaders("COMPLETED"));
  EXPECT_EQ(waiting_.left(), 4U);
}

TEST_F(StreamCallsTest, AStreamWithoutAPlaceDoesNotWait) {
  start("a", {});
  const auto all = waiting_.reserve(4);
  const ApiResponse response = stream("a");
  expectAnswer(response, 200, "[]");
  EXPECT_EQ(headersOf(response), jobHeaders("IN_PROGRESS"));
}

TEST_F(StreamCallsTest, TheEndIsToldWithTheLastChunks) {
  const std::string large = '"' + std::string(900UL << 10, 'x') + '"';
  (void)reports_.finish(start("a", std::vector<std::string>(10, large)), Completed{"7"}, false);
  const ApiResponse first = stream("a");
  EXPECT_EQ(headersOf(first), jobHeaders("IN_PROGRESS")) << "further chunks follow";
  const std::size_t each = std::string(R"({"output":},)").size() + large.size();
  EXPECT_EQ(first.body.size(), 8 * each + 1);
  const ApiResponse second = stream("a");
  EXPECT_EQ(headersOf(second), jobHeaders("COMPLETED"));
  EXPECT_EQ(second.body.size(), 2 * each + 1);
}

TEST_F(StreamCallsTest, WithMemoryForASinglePieceASinglePieceIsSent) {
  const std::string large = '"' + std::string(900UL << 10, 'x') + '"';
  (void)reports_.finish(start("a", {large, large}), Completed{"7"}, false);
  const auto all = reserveAnswers(2UL << 20);
  EXPECT_EQ(headersOf(stream("a")), jobHeaders("IN_PROGRESS"));
  EXPECT_EQ(headersOf(stream("a")), jobHeaders("COMPLETED"));
}

// Chunks that were handed out cannot be put back.
TEST_F(StreamCallsTest, WithoutMemoryForAnswersNoChunkIsHandedOut) {
  (void)reports_.finish(start("a", {"1"}), Completed{"7"}, false);
  auto all = reserveAnswers(0);
  auto waiting = std::async(std::launch::async, [this] { return stream("a"); });
  storage_.clock.awaitWaiter(Millis(1), Millis(100));
  all.release();
  storage_.clock.advance(Millis(100));
  expectAnswer(testkit::resultOf("the answer of /stream", waiting), 200, R"([{"output":1}])");
}

TEST_F(StreamCallsTest, WithoutMemoryAtTheEndOfTheWaitTheJobDoesNotSeemToHaveEnded) {
  (void)reports_.finish(start("a", {"1"}), Completed{"7"}, false);
  auto all = reserveAnswers(0);
  auto waiting = std::async(std::launch::async, [this] { return stream("a"); });
  storage_.clock.awaitWaiter(Millis(1), Millis(100));
  storage_.clock.advance(Millis(60'000));
  const ApiResponse empty = testkit::resultOf("the answer of /stream", waiting);
  expectAnswer(empty, 200, "[]");
  EXPECT_EQ(headersOf(empty), jobHeaders("IN_PROGRESS")) << "the client asks again";
  all.release();
  expectAnswer(stream("a"), 200, R"([{"output":1}])");
}

TEST_F(StreamCallsTest, AWaitingStreamHoldsNoMemory) {
  start("a", {});
  auto waiting = std::async(std::launch::async, [this] { return stream("a"); });
  storage_.clock.awaitWaiter(Millis(1), Millis(100));
  storage_.clock.advance(Millis(100));
  storage_.clock.awaitWaiter(Millis(1'000), Millis(60'000));
  EXPECT_EQ(reserveAnswers(0).amount(), kAnswersOfEndpoint);
  storage_.clock.advance(Millis(60'000));
  expectAnswer(testkit::resultOf("the answer of /stream", waiting), 200, "[]");
}

TEST_F(StreamCallsTest, AStreamBeyondTheRateIsAnsweredBecauseTheChunksAreTaken) {
  (void)reports_.finish(start("a", {"1"}), Completed{"7"}, false);
  expectAnswer(callTooOften(Operation::stream, "GET", "/v2/ep/stream/a"), 200, R"([{"output":1}])");
}

TEST_F(StreamCallsTest, AFailingStorageIsNoAnswerAndConsumesNoChunk) {
  (void)reports_.finish(start("a", {"1"}), Completed{"7"}, false);
  storage_.faults.failOperation("chunks.consume");
  EXPECT_THROW((void)stream("a"), StorageError);
  storage_.faults.heal();
  expectAnswer(stream("a"), 200, R"([{"output":1}])");
}

class LogCallsTest : public StreamCallsTest {
 protected:
  ApiResponse logs(const std::string& id, Query query = {}) {
    return call("GET", "/v2/ep/logs/" + id, "", std::move(query));
  }
  /// Adds lines to the log at one moment.
  void log(const LeaseRef& lease, const std::vector<std::pair<LogLevel, std::string>>& lines) {
    std::vector<LogLine> added;
    for (const auto& [level, text] : lines) added.push_back({{}, level, text});
    std::uint64_t& next = nextLines_[lease.job];
    EXPECT_EQ(storage_->chunks().appendLog(lease, next, std::move(added)), ReportResult::accepted);
    next += lines.size();
  }

 private:
  std::map<JobId, std::uint64_t> nextLines_;
};

TEST_F(LogCallsTest, EachLineHasTimeAndLevel) {
  const LeaseRef lease = start("a", {});
  expectAnswer(logs("a"), 200, R"({"lines":[],"next":"0-0","more":false,"status":"IN_PROGRESS"})");
  log(lease, {{LogLevel::debug, "one"}, {LogLevel::information, "two"}});
  storage_.clock.advance(Millis(5));
  log(lease, {{LogLevel::warning, "\"three\""}, {LogLevel::error, ""}});
  (void)reports_.finish(lease, Completed{"7"}, false);
  expectAnswer(logs("a"), 200,
               R"({"lines":[{"at":"2026-01-01T00:00:00.000Z","level":"debug","text":"one"},)"
               R"({"at":"2026-01-01T00:00:00.000Z","level":"information","text":"two"},)"
               R"({"at":"2026-01-01T00:00:00.005Z","level":"warning","text":"\"three\""},)"
               R"({"at":"2026-01-01T00:00:00.005Z","level":"error","text":""}],)"
               R"("next":"1767225600005-2","more":false,"status":"COMPLETED"})");
  EXPECT_EQ(scope_, Scope::client | Scope::submit | Scope::read);
}

TEST_F(LogCallsTest, AReaderContinuesBehindTheLastLine) {
  const LeaseRef lease = start("a", {});
  log(lease, {{LogLevel::information, "one"}, {LogLevel::information, "two"}});
  expectAnswer(logs("a", {{"after", "1767225600000-1"}}), 200,
               R"({"lines":[{"at":"2026-01-01T00:00:00.000Z","level":"information","text":"two"}],)"
               R"("next":"1767225600000-2","more":false,"status":"IN_PROGRESS"})");
  expectAnswer(logs("a", {{"after", "1767225600000-2"}}), 200,
               R"({"lines":[],"next":"1767225600000-2","more":false,"status":"IN_PROGRESS"})");
  storage_.clock.advance(Millis(1));
  log(lease, {{LogLevel::information, "three"}});
  expectAnswer(logs("a", {{"after", "1767225600000-2"}}), 200,
               R"({"lines":[{"at":"2026-01-01T00:00:00.001Z","level":"information","text":"three"}],)"
               R"("next":"1767225600001-1","more":false,"status":"IN_PROGRESS"})");
}

TEST_F(LogCallsTest, AWrongPositionIsRefused) {
  start("a", {});
  for (const std::string wrong :
       {"", "1", "-", "1-", "-1", "1-1-1", "a-1", "1-a", "1234567890123456-1", "1-1234567890", "1 -1"}) {
    expectAnswer(logs("a", {{"after", wrong}}), 400,
                 R"({"error":"after must be the next of an earlier answer, not )" + wrong + "\"}");
  }
  expectAnswer(logs("a", {{"after", "1-1"}, {"after", "1-1"}}), 400,
               R"({"error":"after appears more than once in the query: send it once"})");
}

TEST_F(LogCallsTest, ALongLogComesInParts) {
  const LeaseRef lease = start("a", {});
  const std::string text(8'000, 'x');
  for (int i = 0; i < 200; ++i) log(lease, {{LogLevel::information, text}});
  const ApiResponse first = logs("a");
  EXPECT_THAT(first.body, HasSubstr(R"("next":"1767225600000-131","more":true,)")) << "131 lines are within 1 MB";
  const ApiResponse second = logs("a", {{"after", "1767225600000-131"}});
  EXPECT_THAT(second.body, HasSubstr(R"("next":"1767225600000-200","more":false,)"));
  EXPECT_GT(first.body.size(), 131 * text.size());
  EXPECT_LT(second.body.size(), 70 * (text.size() + 100));
}

TEST_F(LogCallsTest, WithoutMemoryForAnswersTheLogIsNotRead) {
  start("a", {});
  const auto all = reserveAnswers((2UL << 20) - 1);
  const ApiResponse refused = logs("a");
  expectAnswer(refused, 503,
               R"({"error":"too many bytes of large answers are being sent: the limit is 536870912 (fixed); )"
               R"(ask for the log again in a moment"})");
  EXPECT_EQ(headersOf(refused), "Retry-After: 1\n");
}

}  // namespace
}  // namespace jobq
