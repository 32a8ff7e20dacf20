// Tests of the answers of /openai calls (core/http/api/openai_answer.h).
#include "core/http/api/openai_answer.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <string>
#include <vector>

#include "jobq/json.h"

namespace jobq {
namespace {

using testing::ElementsAre;
using testing::HasSubstr;
using testing::Pair;

std::vector<Chunk> chunksOf(const std::vector<std::string>& outputs) {
  std::vector<Chunk> chunks;
  for (const std::string& output : outputs) chunks.push_back({output, "", false});
  return chunks;
}

TEST(OpenAiAnswer, TheInputHasRouteAndBody) {
  EXPECT_EQ(openAiInput("/v1/models", ""), R"({"openai_route":"/v1/models"})");
  EXPECT_EQ(openAiInput("/v1/a\"b", R"({ "n" : 1.0 })"), R"({"openai_route":"/v1/a\"b","openai_input":{ "n" : 1.0 }})");
}

TEST(OpenAiAnswer, AStreamIsAskedForWithTrue) {
  EXPECT_EQ(asksForStream(R"({"a":1,"stream":true})"), true);
  for (const char* body : {R"({"stream":false})", R"({"stream":null})", "{}"}) EXPECT_EQ(asksForStream(body), false);
  for (const char* body : {R"({"stream":"true"})", R"({"stream":1})", R"({"stream":{}})"}) {
    EXPECT_EQ(asksForStream(body), std::nullopt) << body;
  }
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
    const ApiResponse answer = wholeOpenAiAnswer(chunksOf(each.chunks), each.output);
    EXPECT_EQ(answer.status, 200) << each.output;
    EXPECT_EQ(answer.body, each.body);
  }
}

TEST(OpenAiAnswer, AnErrorOfTheHandlerHasItsStatus) {
  struct Case {
    std::string output;
    int status;
    std::string body;
  };
  const Case cases[] = {
      {R"({"error":{"message":"m","code":404}})", 404, R"({"error":{"message":"m","code":404}})"},
      {R"({"error":{"message":"m","code":"no"}})", 400, R"({"error":{"message":"m","code":"no"}})"},
      {R"({"error":{"message":"m","code":200}})", 400, R"({"error":{"message":"m","code":200}})"},
      {R"({"object":"error","message":"m","code":422})", 422,
       R"({"error":{"object":"error","message":"m","code":422}})"},
      {R"([{"object":"error","message":"m"}])", 400, R"({"error":{"object":"error","message":"m"}})"},
  };
  for (const Case& each : cases) {
    const ApiResponse answer = wholeOpenAiAnswer({}, each.output);
    EXPECT_EQ(answer.status, each.status) << each.output;
    EXPECT_EQ(answer.body, each.body);
    EXPECT_TRUE(isOpenAiError(each.output));
  }
  const ApiResponse sentence = wholeOpenAiAnswer({}, R"({"error":"a \"bad\" thing"})");
  EXPECT_EQ(sentence.status, 400);
  EXPECT_THAT(sentence.body, HasSubstr(R"("message":"a \"bad\" thing")"));
  for (const char* fine : {R"({"error":null})", R"({"error":""})", R"({"error":0})", R"({"error":[]})",
                           R"({"error":{}})", R"({"error":false})", R"("error")"}) {
    EXPECT_EQ(wholeOpenAiAnswer({}, fine).status, 200) << fine;
    EXPECT_FALSE(isOpenAiError(fine)) << fine;
  }
}

TEST(OpenAiAnswer, AJobThatDidNotCompleteIsAnError) {
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
  EXPECT_EQ(lateOpenAiAnswer().status, 504);
}

TEST(OpenAiEvents, StringsStayAndObjectsBecomeEvents) {
  OpenAiEvents events;
  EXPECT_EQ(events.add(R"("data: {\"a\":1}\n\n")"), "data: {\"a\":1}\n\n");
  EXPECT_EQ(events.add("{\"b\":\r\n 2}"), "data: {\"b\":   2}\n\n");
  EXPECT_EQ(events.add(R"([{"c":3},"data: x\n\n"])"), "data: {\"c\":3}\n\ndata: x\n\n");
  EXPECT_EQ(events.end(), "data: [DONE]\n\n");
}

TEST(OpenAiEvents, ThereIsOneEnd) {
  struct Case {
    std::vector<std::string> outputs;
    std::string end;
  };
  const Case cases[] = {
      {{}, "data: [DONE]\n\n"},
      {{R"("data: [DONE]\n\n")"}, ""},
      {{R"("data: [DO")", R"("NE]")"}, "\n\n"},
      {{R"("data: {}")"}, "\n\ndata: [DONE]\n\n"},
      {{R"("data: {}\r\n\r\n")", R"("")"}, "data: [DONE]\n\n"},
  };
  for (const Case& each : cases) {
    OpenAiEvents events;
    for (const std::string& output : each.outputs) events.add(output);
    EXPECT_EQ(events.end(), each.end);
  }
}

TEST(OpenAiEvents, ALongListIsOneEvent) {
  std::string list = "[0";
  for (int i = 0; i < 10'000; ++i) list += ",0";
  list += "]";
  EXPECT_EQ(OpenAiEvents().add(list), "data: " + list + "\n\n");
  EXPECT_TRUE(json::valid(OpenAiEvents::error("a \"b\"").substr(6)));
}

}  // namespace
}  // namespace jobq
