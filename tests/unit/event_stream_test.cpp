// Tests of the streams of events about a job without a socket, on a clock moved by hand
// (core/http/api/queue/event_stream.h).
#include "core/http/api/queue/event_stream.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <utility>
#include <variant>
#include <vector>

#include "queue_routes_fixture.h"
#include "tests/support/held_caller.h"

namespace jobq {
namespace {

using test::expectAnswer;
using testing::ElementsAre;
using testing::HasSubstr;
using testing::SizeIs;

constexpr Millis kSilence{15'000};
constexpr const char* kGoesOn = ": the job goes on\n\n";
constexpr const char* kStreamPath = "/v2/ep/stream/a";
constexpr const char* kStatus = "/v2/ep/status/a";
constexpr const char* kLogs = "/v2/ep/logs/a";

class EventStreamTest : public testing::Test, protected test::QueueRoutesFixture {
 protected:
  /// Begins the stream, and returns the refusal if there is one.
  std::optional<ApiResponse> open(const std::string& path, const std::string& lastEventId = "") {
    const auto found = router_.find("GET", path);
    const auto& match = std::get<Router::Match>(found);
    request_.method = "GET";
    request_.path = path;
    request_.acceptsEvents = true;
    request_.lastEventId = lastEventId;
    request_.params = match.params;
    request_.endpoint = endpoint_;
    request_.key = key_;
    request_.client = &client_;
    request_.room.use(answerMemory_, "ep");
    RouteResult result = match.route->run(request_);
    if (auto* refusal = std::get_if<ApiResponse>(&result)) return std::move(*refusal);
    auto& opened = std::get<OpenAnswer>(result);
    expectAnswer(opened.begin, 200, "");
    EXPECT_EQ(headersOf(opened.begin), "Content-Type: text/event-stream\n");
    call_ = std::move(opened.rest);
    return std::nullopt;
  }
  /// Returns the parts that exist now. `END` stands for the end of the answer.
  std::vector<std::string> parts() {
    std::vector<std::string> parts;
    while (auto part = call_->nextPart(request_)) {
      if (!part->bytes.empty()) parts.push_back(part->bytes);
      if (!part->isLast) continue;
      parts.emplace_back("END");
      break;
    }
    return parts;
  }
  std::vector<std::string> partsAfter(Millis time) {
    storage_.clock.advance(time);
    return parts();
  }
  LeaseRef start() {
    storage_.insert("a");
    return begin();
  }
  /// Claims the job, and announces the claim as the executor does.
  LeaseRef begin() {
    const LeaseRef lease = claim();
    completions_.announceChange(lease.job);
    return lease;
  }

  test::HeldCaller client_;
  ApiRequest request_;
  std::unique_ptr<PendingCall> call_;
};

TEST_F(EventStreamTest, AQuietStreamHasAComment) {
  const LeaseRef lease = start();
  for (const char* path : {kStreamPath, kLogs}) {
    ASSERT_FALSE(open(path)) << path;
    EXPECT_THAT(parts(), ElementsAre());
    EXPECT_THAT(partsAfter(Millis(14'999)), ElementsAre());
    EXPECT_THAT(partsAfter(Millis(1)), ElementsAre(kGoesOn));
    EXPECT_THAT(partsAfter(Millis(15'000)), ElementsAre(kGoesOn));
  }
  ASSERT_FALSE(open(kStreamPath));
  EXPECT_THAT(partsAfter(Millis(10'000)), ElementsAre());
  (void)reports_.append(lease, 0, {{"1", ""}});
  EXPECT_THAT(parts(), ElementsAre("id: 1-0\ndata: {\"output\":1}\n\n"));
  EXPECT_THAT(partsAfter(Millis(14'999)), ElementsAre()) << "the time counts from the last event";
  EXPECT_THAT(partsAfter(Millis(1)), ElementsAre(kGoesOn));
}

TEST_F(EventStreamTest, AnEndIsSentAtOnceAndAChangeWithinASecond) {
  storage_.insert("a");
  ASSERT_FALSE(open(kStatus));
  EXPECT_THAT(parts(), ElementsAre(HasSubstr("id: 0-IN_QUEUE\n")));
  const LeaseRef lease = begin();
  EXPECT_THAT(parts(), ElementsAre());
  EXPECT_THAT(partsAfter(Millis(1'000)), ElementsAre(HasSubstr("IN_PROGRESS\n")));
  EXPECT_THAT(partsAfter(Millis(1'000)), ElementsAre()) << "the job has not changed";
  (void)reports_.finish(lease, Completed{"7"}, false);
  EXPECT_THAT(parts(), ElementsAre(HasSubstr("\"output\":7}\n\n"), "END"));
}

// A thread then goes on with all of them, and is woken eight times a second at most.
TEST_F(EventStreamTest, StreamsReadAtTheSameMoments) {
  storage_.insert("a");
  storage_.clock.advance(Millis(60));
  ASSERT_FALSE(open(kStatus));
  EXPECT_THAT(parts(), SizeIs(1));
  (void)begin();
  EXPECT_THAT(partsAfter(Millis(939)), ElementsAre());
  EXPECT_THAT(partsAfter(Millis(1)), ElementsAre(HasSubstr("IN_PROGRESS\n")));
}

TEST_F(EventStreamTest, EachChangeOfAProgressIsSentOnce) {
  const LeaseRef lease = start();
  ASSERT_FALSE(open(kStatus));
  EXPECT_THAT(parts(), SizeIs(1));
  for (const char* progress : {"1", "2"}) {
    (void)reports_.progress(lease, progress);
    EXPECT_THAT(partsAfter(Millis(1'000)), ElementsAre(HasSubstr(progress)));
    EXPECT_THAT(partsAfter(Millis(1'000)), ElementsAre());
  }
}

// Hundreds of quiet streams must cost no work.
TEST_F(EventStreamTest, AnIdleStreamReadsTheJobOnlyWithAComment) {
  (void)start();
  for (const char* path : {kStatus, kLogs}) {
    call_.reset();
    ASSERT_FALSE(open(path)) << path;
    (void)parts();
    for (int comment = 0; comment < 2; ++comment) {
      const std::uint64_t before = storage_.faults.calls();
      storage_.clock.awaitWaiter(Millis(15'000), Millis(15'000));  // and the call is not continued before
      EXPECT_THAT(partsAfter(Millis(14'999)), ElementsAre()) << path;
      EXPECT_EQ(storage_.faults.calls(), before) << path;
      EXPECT_THAT(partsAfter(Millis(1)), ElementsAre(kGoesOn)) << path;
      EXPECT_GT(storage_.faults.calls(), before) << path << ": some changes are not announced";
    }
  }
}

TEST_F(EventStreamTest, ALogLineIsSentWithinASecond) {
  const LeaseRef lease = start();
  ASSERT_FALSE(open(kLogs));
  EXPECT_THAT(parts(), ElementsAre());
  for (const std::uint64_t line : {0U, 1U}) {
    (void)reports_.appendLog(lease, line, {{}, LogLevel::error, "line"});
    EXPECT_THAT(partsAfter(Millis(1'000)), ElementsAre(HasSubstr("line")));
  }
}

// A run on another node announces its progress on the other node only.
TEST_F(EventStreamTest, AmongNodesARunningJobIsReadOnceASecond) {
  router_ = Router();
  addQueueRoutes(router_, {jobs_, later_, {box_}, workers_, runs_, draining_, waiting_, kSilence, true});
  const LeaseRef lease = start();
  ASSERT_FALSE(open(kStatus));
  EXPECT_THAT(parts(), SizeIs(1));
  for (const char* progress : {"1", "2"}) {
    (void)storage_->leases().progress(lease, progress);
    EXPECT_THAT(partsAfter(Millis(1'000)), ElementsAre(HasSubstr(progress)));
  }
}

// However often the job changes, its streams read the job once a second.
TEST_F(EventStreamTest, ManyChangesCauseASingleRead) {
  const LeaseRef lease = start();
  ASSERT_FALSE(open(kStatus));
  EXPECT_THAT(parts(), SizeIs(1));
  for (int i = 0; i < 100; ++i) {
    (void)reports_.progress(lease, std::to_string(i));
    EXPECT_THAT(partsAfter(Millis(9)), ElementsAre());
  }
  EXPECT_THAT(partsAfter(Millis(100)), ElementsAre(HasSubstr("\"output\":99")));
}

TEST_F(EventStreamTest, AFailingStorageIsAskedAgain) {
  const LeaseRef lease = start();
  (void)reports_.append(lease, 0, {{"1", ""}});
  (void)storage_->chunks().appendLog(lease, 0, {{{}, LogLevel::error, "line"}});
  const std::pair<const char*, const char*> cases[] = {
      {kStreamPath, "chunks.read"}, {kStatus, "jobs.find"}, {kLogs, "chunks.readLog"}};
  for (const auto& [path, operation] : cases) {
    ASSERT_FALSE(open(path));
    storage_.faults.failOperation(operation);
    EXPECT_THAT(parts(), ElementsAre()) << path;
    EXPECT_THAT(partsAfter(Millis(1'000)), ElementsAre()) << path;
    storage_.faults.heal();
    EXPECT_THAT(partsAfter(Millis(999)), ElementsAre()) << path;
    EXPECT_THAT(partsAfter(Millis(1)), SizeIs(1)) << path;
  }
}

TEST_F(EventStreamTest, AStreamEndsWithTheClient) {
  start();
  ASSERT_FALSE(open(kStreamPath));
  EXPECT_THAT(parts(), ElementsAre());
  client_.leave();
  EXPECT_THAT(parts(), ElementsAre("END"));
}

TEST_F(EventStreamTest, AStreamEndsWithTheServer) {
  start();
  ASSERT_FALSE(open(kLogs));
  EXPECT_THAT(parts(), ElementsAre());
  completions_.close();
  EXPECT_THAT(parts(), ElementsAre("END"));
}

TEST_F(EventStreamTest, AnExpiryOfTheJobEndsTheStream) {
  storage_.insert("a");
  for (const char* path : {kStreamPath, kStatus, kLogs}) {
    ASSERT_FALSE(open(path));
    (void)parts();
    completions_.announce("a");
    EXPECT_THAT(parts(), ElementsAre()) << path << ": the job goes on";
  }
  (void)jobs_.purge("ep");
  EXPECT_THAT(parts(), ElementsAre("END"));
  expectAnswer(*open(kStreamPath), 404, noSuchJob("a"));
}

TEST_F(EventStreamTest, EachStreamHasAPlace) {
  start();
  ASSERT_FALSE(open(kStreamPath));
  EXPECT_EQ(waiting_.left(), 3U);
  const auto others = waiting_.reserve(3);
  const std::unique_ptr<PendingCall> first = std::move(call_);
  for (const char* path : {kStreamPath, kStatus, kLogs}) {
    const auto refused = open(path);
    ASSERT_TRUE(refused) << path;
    expectAnswer(*refused, 503,
                 R"({"error":"too many calls wait: the limit is 4 (server.waiting); try again in a moment"})");
  }
}

TEST_F(EventStreamTest, LargeEventsWaitForMemory) {
  const LeaseRef lease = start();
  (void)storage_->chunks().appendLog(lease, 0, {{{}, LogLevel::error, "line"}});
  (void)reports_.finish(lease, Completed{'"' + std::string(3UL << 20, 'x') + '"'}, false);
  for (const char* path : {kStatus, kLogs}) {
    call_.reset();
    request_.room.noteText(0);  // the answer before was sent
    auto others = reserveAnswers((2UL << 20) - 1);
    ASSERT_FALSE(open(path));
    EXPECT_THAT(parts(), ElementsAre()) << path;
    others.release();
    EXPECT_THAT(partsAfter(Millis(1'000)), testing::Contains("END")) << path;
  }
  call_.reset();
  EXPECT_EQ(answerMemory_.left(), kAnswers);
}

}  // namespace
}  // namespace jobq
