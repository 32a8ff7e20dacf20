// Tests of the calls of /openai without a socket, on a clock moved by hand (core/http/api/openai/openai_calls.cpp).
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <utility>
#include <variant>

#include "core/http/api/openai/openai_answer.h"
#include "queue_routes_fixture.h"
#include "tests/support/held_caller.h"

namespace jobq {
namespace {

using test::HeldCaller;
using testing::HasSubstr;
using testing::IsEmpty;
using testing::SizeIs;

constexpr const char* kRoute = "/v2/ep/openai/v1/x";
constexpr const char* kWhole = "{}";
constexpr const char* kStream = R"({"stream":true})";

class OpenAiCallsTest : public testing::Test, protected test::QueueRoutesFixture {
 protected:
  /// A call that waits.
  struct Call {
    HeldCaller client;
    ApiRequest request;
    std::unique_ptr<PendingCall> pending;

    std::optional<ApiResponse> poll() { return pending->poll(request); }
    /// Returns the parts that exist now; `END` stands for the end of the answer.
    std::string parts() {
      std::string all;
      while (auto part = pending->nextPart(request)) {
        all += part->bytes;
        if (part->isLast) return all + "END";
      }
      return all;
    }
    void leave() {
      client.leave();
      (void)poll();
      pending.reset();
    }
  };

  std::unique_ptr<Call> begin(const std::string& body, std::optional<std::string> key = std::nullopt) {
    auto call = std::make_unique<Call>();
    const auto found = router_.find("POST", kRoute);
    const auto& match = std::get<Router::Match>(found);
    call->request.method = "POST";
    call->request.path = kRoute;
    call->request.body = body;
    call->request.idempotencyKey = std::move(key);
    call->request.params = match.params;
    call->request.endpoint = endpoint_;
    call->request.key = key_;
    call->request.client = &call->client;
    call->request.room.use(answerMemory_, "ep");
    RouteResult result = match.route->run(call->request);
    call->pending = std::get<std::unique_ptr<PendingCall>>(std::move(result));
    return call;
  }
  JobState stateOf(const LeaseRef& lease) { return storage_->jobs().find({"ep", lease.job})->state; }
  void emit(const LeaseRef& lease, const std::string& output, std::uint64_t number = 0) {
    (void)reports_.append(lease, number, {{output, ""}});
  }
};

TEST_F(OpenAiCallsTest, ALeavingClientCancelsTheJobOfTheCall) {
  for (const char* body : {kWhole, kStream}) {
    auto call = begin(body);
    const LeaseRef lease = claim();
    call->leave();
    EXPECT_EQ(stateOf(lease), JobState::cancelled);
  }
  EXPECT_THAT(runs_.stopped, SizeIs(2));
}

TEST_F(OpenAiCallsTest, AJobWithAKeyOutlivesTheCallers) {
  for (const char* body : {kWhole, kStream}) {
    auto first = begin(body, body);
    auto second = begin(body, body);
    const LeaseRef lease = claim();
    second->leave();
    EXPECT_EQ(stateOf(lease), JobState::inProgress) << "the job belongs to the first caller";
    first->leave();
    EXPECT_EQ(stateOf(lease), JobState::inProgress) << "a repeated call may ask for the job";
    auto third = begin(body, body);
    (void)reports_.finish(lease, Completed{"7"}, false);
    const auto answer = third->poll();
    ASSERT_TRUE(answer);
    EXPECT_EQ(answer->status, 200);
    EXPECT_THAT(answer->body, HasSubstr("7"));
  }
  EXPECT_THAT(runs_.stopped, IsEmpty());
}

// An output and chunks of 20 MB each then have room in the quarter of an endpoint, 128 MB.
TEST_F(OpenAiCallsTest, AWholeAnswerDrawsThreeTimesTheSize) {
  auto call = begin(kWhole);
  const std::size_t size = 2UL << 20;
  (void)reports_.finish(claim(), Completed{'"' + std::string(size - 2, 'x') + '"'}, false);
  const auto others = reserveAnswers(3 * (size + (1UL << 20)));
  const auto answer = call->poll();
  ASSERT_TRUE(answer);
  EXPECT_EQ(answer->status, 200);
}

TEST_F(OpenAiCallsTest, ARepeatedSubmissionIsNotCancelled) {
  ApiRequest submission;
  submission.method = "POST";
  submission.path = "/v2/ep/run";
  submission.body = readOpenAiRequest("/v1/x", kWhole)->submission;
  submission.idempotencyKey = "once";
  ASSERT_EQ(RouteFixture::call(std::move(submission)).status, 200);
  auto call = begin(kWhole, "once");
  const LeaseRef lease = claim();
  call->leave();
  EXPECT_EQ(stateOf(lease), JobState::inProgress) << "the route /run has acknowledged the job";
}

TEST_F(OpenAiCallsTest, AJobWithAKeyGoesOnAfterTheLongestWait) {
  auto call = begin(kWhole, "key");
  const LeaseRef lease = claim();
  storage_.clock.advance(Millis(600'000));
  const auto answer = call->poll();
  ASSERT_TRUE(answer);
  EXPECT_EQ(answer->status, 504);
  EXPECT_THAT(answer->body, HasSubstr("goes on"));
  call->pending.reset();
  EXPECT_EQ(stateOf(lease), JobState::inProgress);
}

TEST_F(OpenAiCallsTest, ASilentStreamOpensAndSendsComments) {
  auto call = begin(kStream);
  const LeaseRef lease = claim();
  storage_.clock.advance(Millis(14'999));
  EXPECT_FALSE(call->poll());
  storage_.clock.advance(Millis(1));
  const auto answer = call->poll();
  ASSERT_TRUE(answer && answer->isOpen);
  EXPECT_EQ(answer->status, 200);
  EXPECT_EQ(answer->body, ": the job goes on\n\n");
  EXPECT_EQ(call->parts(), "");
  storage_.clock.advance(Millis(14'999));
  emit(lease, R"("data:")");
  EXPECT_EQ(call->parts(), "") << "the chunk ends no event";
  storage_.clock.advance(Millis(1));
  EXPECT_EQ(call->parts(), ": the job goes on\n\n");
  emit(lease, R"(" 1\n\n")", 1);
  EXPECT_EQ(call->parts(), "data: 1\n\n");
  (void)reports_.finish(lease, Completed{"{}"}, false);
  EXPECT_EQ(call->parts(), "data: [DONE]\n\nEND");
}

TEST_F(OpenAiCallsTest, AfterASilenceAnErrorIsTheLastEvent) {
  const std::pair<Outcome, const char*> cases[] = {{Failed{"HTTP 429: later", ""}, "HTTP 429: later"},
                                                   {Completed{R"({"error":{"message":"no","code":418}})"}, "no"}};
  for (const auto& [outcome, sentence] : cases) {
    auto call = begin(kStream);
    const LeaseRef lease = claim();
    storage_.clock.advance(Millis(15'000));
    ASSERT_TRUE(call->poll());
    (void)reports_.finish(lease, outcome, false);
    const std::string parts = call->parts();
    EXPECT_THAT(parts, testing::StartsWith("data: {\"error\":"));
    EXPECT_THAT(parts, HasSubstr(sentence));
    EXPECT_THAT(parts, testing::EndsWith("}\n\nEND"));
    EXPECT_THAT(parts, testing::Not(HasSubstr("[DONE]")));
  }
}

TEST_F(OpenAiCallsTest, AfterASilenceTheOutputIsTheAnswerOfAJobWithoutChunks) {
  auto call = begin(kStream);
  const LeaseRef lease = claim();
  storage_.clock.advance(Millis(15'000));
  ASSERT_TRUE(call->poll());
  (void)reports_.finish(lease, Completed{R"({"n":1})"}, false);
  EXPECT_EQ(call->parts(), "data: {\"n\":1}\n\ndata: [DONE]\n\nEND");
}

TEST_F(OpenAiCallsTest, ADyingWorkerLeavesNoBrokenEvent) {
  auto call = begin(kStream);
  const LeaseRef lease = claim();
  emit(lease, R"("data: {\"a\":1}\n\ndata: {\"b\"")");
  const auto answer = call->poll();
  ASSERT_TRUE(answer && answer->isOpen);
  EXPECT_EQ(answer->body, "data: {\"a\":1}\n\n");
  (void)reports_.finish(lease, Failed{"the worker was lost", ""}, false);
  EXPECT_THAT(call->parts(), testing::StartsWith("data: {\"error\":"));
}

}  // namespace
}  // namespace jobq
