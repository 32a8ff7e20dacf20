// Tests of the answers of /openai calls (core/http/api/openai/openai_answer.h).
#include "core/http/api/openai/openai_answer.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <optional>
#include <string>
#include <vector>

#include "jobq/json.h"

namespace jobq {
namespace {

using testing::ElementsAre;
using testing::HasSubstr;
using testing::Pair;

TEST(OpenAiAnswer, TheInputHasRouteAndBody) {
  EXPECT_EQ(readOpenAiRequest("/v1/models", std::nullopt)->submission, R"({"input":{"openai_route":"/v1/models"}})");
  EXPECT_EQ(readOpenAiRequest("/v1/a", R"({ "n" : 1.0 })")->submission,
            R"({"input":{"openai_route":"/v1/a","openai_input":{ "n" : 1.0 }}})");
}

TEST(OpenAiAnswer, AStreamIsAskedForWithTrue) {
  const auto isStream = [](std::string_view body) { return readOpenAiRequest("/v1/a", body)->isStream; };
  EXPECT_TRUE(isStream(R"({"a":1,"stream":true})"));
  for (const char* body : {R"({"stream":false})", R"({"stream":null})", "{}"}) EXPECT_FALSE(isStream(body));
}

TEST(OpenAiAnswer, ARefusedBodyIsNamedWithTheRemedy) {
  const auto faultOf = [](std::string_view body) { return readOpenAiRequest("/v1/a", body).failure().message(); };
  for (const char* body : {R"({"stream":"true"})", R"({"stream":1})", R"({"stream":{}})"}) {
    EXPECT_THAT(faultOf(body), HasSubstr("stream must be true, false or null")) << body;
  }
  std::string many = "{";
  for (int i = 0; i < 1'000; ++i) many += "\"" + std::to_string(i) + "\":0,";
  EXPECT_THAT(faultOf(many + "\"stream\":true}"), HasSubstr("at most 1,000 keys")) << "the member would be overlooked";
  EXPECT_THAT(faultOf("{"), HasSubstr("(at byte 1)"));
  EXPECT_EQ(faultOf("[]"), "the body must be a JSON object");
}

TEST(OpenAiAnswer, TheWholeAnswerIsTheOutputOrTheChunks) {
  struct Case {
    std::vector<std::string> chunks;
    std::string output;
    std::string body;
  };
  const Case cases[] = {
      {{}, R"({"id":"a"})", R"({"id":"a"})"},
      {{}, R"([{"id":"a"}])", R"({"id":"a"})"},
      {{}, R"([1,2])", "[1,2]"},
      {{}, R"("{\"id\":1}")", R"({"id":1})"},
      {{}, R"("no JSON")", R"("no JSON")"},
      {{}, "", "null"},
      {{R"({"id":"a"})"}, R"([{"id":"b"}])", R"({"id":"a"})"},
      {{R"({"a":1})", R"({"b":2})"}, "[]", R"([{"a":1},{"b":2}])"},
      {{R"("{\"id\"")", R"(":\"ä\"}")"}, "[]", R"({"id":"ä"})"},
  };
  for (const Case& each : cases) {
    const ApiResponse answer = wholeOpenAiAnswer(each.chunks, each.output);
    EXPECT_EQ(answer.status, 200) << each.output;
    EXPECT_EQ(answer.body, each.body);
  }
}

TEST(OpenAiAnswer, AnErrorOfTheHandlerHasTheGivenStatus) {
  struct Case {
    std::string output;
    int status;
    std::string body;
  };
  const Case cases[] = {
      {R"({"error":{"message":"m","code":404}})", 404, R"({"error":{"message":"m","code":404}})"},
      {R"({"error":{"message":"m","code":"no"}})", 400, R"({"error":{"message":"m","code":"no"}})"},
      {R"({"error":{"message":"m","code":200}})", 400, R"({"error":{"message":"m","code":200}})"},
      {R"({"code":404,"error":{"message":"m"}})", 404, R"({"error":{"message":"m"}})"},
      {R"({"code":404,"error":{"message":"m","code":409}})", 409, R"({"error":{"message":"m","code":409}})"},
      {R"({"code":200,"error":{"message":"m"}})", 400, R"({"error":{"message":"m"}})"},
      {R"({"object":"error","message":"m","code":422})", 422,
       R"({"error":{"object":"error","message":"m","code":422}})"},
      {R"([{"object":"error","message":"m"}])", 400, R"({"error":{"object":"error","message":"m"}})"},
  };
  for (const Case& each : cases) {
    const ApiResponse answer = wholeOpenAiAnswer({}, each.output);
    EXPECT_EQ(answer.status, each.status) << each.output;
    EXPECT_EQ(answer.body, each.body);
    EXPECT_TRUE(openAiErrorIn(each.output));
  }
  const ApiResponse sentence = wholeOpenAiAnswer({}, R"({"error":"a \"bad\" thing"})");
  EXPECT_EQ(sentence.status, 400);
  EXPECT_THAT(sentence.body, HasSubstr(R"("message":"a \"bad\" thing")"));
  for (const char* fine : {R"({"error":null})", R"({"error":""})", R"({"error":0})", R"({"error":[]})",
                           R"({"error":{}})", R"({"error":false})", R"("error")"}) {
    EXPECT_EQ(wholeOpenAiAnswer({}, fine).status, 200) << fine;
    EXPECT_FALSE(openAiErrorIn(fine)) << fine;
  }
}

TEST(OpenAiAnswer, AnIncompleteJobIsAnError) {
  Job job;
  job.id = "j";
  job.state = JobState::failed;
  job.error = "it broke";
  EXPECT_EQ(failedOpenAiAnswer(job).status, 500);
  EXPECT_THAT(failedOpenAiAnswer(job).body, HasSubstr(R"("message":"it broke")"));
  EXPECT_TRUE(failedOpenAiAnswer(job).headers.empty()) << "a repeat may help";
  job.error = "handler: HTTP x, the model returned HTTP 422: no";
  EXPECT_EQ(failedOpenAiAnswer(job).status, 422);
  job.error = "HTTP 200";
  EXPECT_EQ(failedOpenAiAnswer(job).status, 500);
  job.state = JobState::timedOut;
  EXPECT_EQ(failedOpenAiAnswer(job).status, 504);
  EXPECT_THAT(failedOpenAiAnswer(job).headers, ElementsAre(Pair("x-should-retry", "false")));
  job.state = JobState::cancelled;
  EXPECT_EQ(failedOpenAiAnswer(job).status, 500);
  EXPECT_THAT(failedOpenAiAnswer(job).headers, ElementsAre(Pair("x-should-retry", "false")));
  EXPECT_EQ(lateOpenAiAnswer(JobAfterCall::isCancelled).status, 504);
  EXPECT_THAT(lateOpenAiAnswer(JobAfterCall::goesOn).body, HasSubstr("goes on"));
  EXPECT_TRUE(lateOpenAiAnswer(JobAfterCall::goesOn).headers.empty()) << "a repeat waits for the same job";
}

TEST(OpenAiEvents, StringsStayAndObjectsBecomeEvents) {
  OpenAiEvents events;
  EXPECT_EQ(events.add(R"("data: {\"a\":1}\n\n")"), "data: {\"a\":1}\n\n");
  EXPECT_EQ(events.add("{\"b\":\r\n 2}"), "data: {\"b\":   2}\n\n");
  EXPECT_EQ(events.add(R"([{"c":3},"data: x\n\n"])"), "data: {\"c\":3}\n\ndata: x\n\n");
  EXPECT_EQ(events.end(), "data: [DONE]\n\n");
}

TEST(OpenAiEvents, ThereIsASingleEnd) {
  struct Case {
    std::vector<std::string> outputs;
    std::string end;
  };
  const Case cases[] = {
      {{}, "data: [DONE]\n\n"},
      {{R"("data: [DONE]\n\n")"}, ""},
      {{R"("data: [DO")", R"("NE]")"}, "data: [DONE]\n\n"},
      {{R"("data: {}")"}, "data: {}\n\ndata: [DONE]\n\n"},
      {{R"("data: {}\r\n\r\n")", R"("")"}, "data: [DONE]\n\n"},
  };
  for (const Case& each : cases) {
    OpenAiEvents events;
    for (const std::string& output : each.outputs) events.add(output);
    EXPECT_EQ(events.end(), each.end);
  }
}

TEST(OpenAiEvents, OnlyAWholeEventIsSent) {
  OpenAiEvents events;
  EXPECT_EQ(events.add(R"("data: {\"b\"")"), "");
  EXPECT_EQ(events.comment("still there"), ": still there\n\n") << "the event has not begun for the client";
  EXPECT_EQ(events.add(R"(":1}\n")"), "");
  EXPECT_EQ(events.add(R"("\ndata: x\r\n")"), "data: {\"b\":1}\n\n");
  EXPECT_EQ(events.add(R"("\r\n: a comment\n\ndata")"), "data: x\r\n\r\n: a comment\n\n");
  EXPECT_EQ(events.add("{\"c\":1}"), "data\n\ndata: {\"c\":1}\n\n");
  EXPECT_EQ(events.add(R"("data: x\r\n")"), "");
  EXPECT_EQ(events.end(), "data: x\r\n\n\ndata: [DONE]\n\n") << "a single line end does not end an event";
}

TEST(OpenAiEvents, AnErrorDropsAnUnfinishedEvent) {
  OpenAiEvents events;
  EXPECT_EQ(events.add(R"("data: 1\n\ndata: {\"b\"")"), "data: 1\n\n");
  EXPECT_TRUE(events.error("no").starts_with("data: {\"error\""));
}

TEST(OpenAiEvents, AnEventOfOverAMegabyteLeavesInPieces) {
  OpenAiEvents events;
  const std::string half(600'000, 'x');
  EXPECT_EQ(events.add("\"data: " + half + "\""), "");
  EXPECT_EQ(events.add("\"" + half + "\""), "data: " + half + half);
  EXPECT_EQ(events.comment("still there"), "") << "no comment is sent within an event";
  EXPECT_EQ(events.add(R"("y\n\ndata: z")"), "y\n\n");
  EXPECT_EQ(events.comment("still there"), ": still there\n\n");
  EXPECT_EQ(events.add("\"" + half + half + "\"").size(), 2 * half.size() + 7);
  EXPECT_TRUE(events.error("no").starts_with("\n\ndata: {\"error\""));
}

TEST(OutputJoiner, PiecesBecomeASingleOutput) {
  OutputJoiner joiner;
  EXPECT_EQ(joiner.add({R"({"a":1})", "", false}), R"({"a":1})");
  EXPECT_EQ(joiner.add({R"("{\"b64\":\"x")", "", true}), std::nullopt);
  EXPECT_EQ(joiner.add({R"("yz\"}")", "", true}), R"({"b64":"xyz"})");
  EXPECT_EQ(joiner.add({R"("[1,")", "", true}), std::nullopt);
  EXPECT_EQ(joiner.add({R"("text")", "", false}), R"("text")") << "an incomplete value is dropped";
}

TEST(OpenAiEvents, ALongListIsASingleEvent) {
  std::string list = "[0";
  for (int i = 0; i < 10'000; ++i) list += ",0";
  list += "]";
  EXPECT_EQ(OpenAiEvents().add(list), "data: " + list + "\n\n");
  EXPECT_TRUE(json::valid(OpenAiEvents().error("a \"b\"").substr(6)));
}

}  // namespace
}  // namespace jobq
