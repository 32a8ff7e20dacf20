// Tests of calls by pages of other origins, on their way through the request pipeline (core/http/api/cors.h).
#include "core/http/api/cors.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <string>

#include "request_pipeline_fixture.h"

namespace jobq {
namespace {

using testing::Contains;
using testing::HasSubstr;
using testing::Not;
using testing::StartsWith;

class CorsTest : public RequestPipelineTest {
 protected:
  CorsTest() : RequestPipelineTest({"https://app.example"}) {}
  static std::string preflight(const std::string& origin) {
    return head("OPTIONS /v2/ep/run", "",
                "Origin: " + origin +
                    "\r\nAccess-Control-Request-Method: POST\r\n"
                    "Access-Control-Request-Headers: authorization,content-type\r\n");
  }
};

TEST_F(CorsTest, APreflightNeedsNoKeyAndListsThePermissionsOfAPage) {
  const std::string answer = ask(preflight("https://app.example"));
  EXPECT_THAT(answer, StartsWith("HTTP/1.1 204 "));
  EXPECT_THAT(answer, HasSubstr("\r\nAccess-Control-Allow-Origin: https://app.example\r\n"));
  EXPECT_THAT(answer, HasSubstr("\r\nAccess-Control-Allow-Methods: POST\r\n"));
  EXPECT_THAT(answer, HasSubstr("\r\nAccess-Control-Allow-Headers: authorization,content-type\r\n"));
  EXPECT_THAT(answer, HasSubstr("\r\nVary: Origin\r\n"));
  EXPECT_EQ(next_, Connection::Next::park);
  EXPECT_THAT(ask(preflight("https://evil.example")), Not(HasSubstr("Access-Control"))) << "a browser stops there";
  EXPECT_THAT(
      ask(head("OPTIONS /nothing", "", "Origin: https://app.example\r\nAccess-Control-Request-Method: GET\r\n")),
      StartsWith("HTTP/1.1 404 "));
  EXPECT_THAT(ask(head("OPTIONS /v2/ep/run", "", "Origin: https://app.example\r\n")), StartsWith("HTTP/1.1 405 "))
      << "the request is not a preflight";
}

TEST_F(CorsTest, EachAnswerNamesThePermittedPage) {
  const std::string origin = "Origin: https://app.example\r\n";
  for (const std::string& text :
       {head("GET /ping", "", origin), head("GET /v1/things", "", origin), head("GET /no", "", origin)}) {
    const std::string answer = ask(text);
    EXPECT_THAT(answer, HasSubstr("\r\nAccess-Control-Allow-Origin: https://app.example\r\n")) << "refusals too";
    EXPECT_THAT(answer, HasSubstr("\r\nAccess-Control-Expose-Headers: *\r\n"));
  }
  for (const std::string& text : {head("GET /ping", ""), head("GET /ping", "", "Origin: https://evil.example\r\n")}) {
    const std::string answer = ask(text);
    EXPECT_THAT(answer, Not(HasSubstr("Access-Control")));
    EXPECT_THAT(answer, HasSubstr("\r\nVary: Origin\r\n")) << "a cache must not give the answer to other pages";
  }
}

class NoOriginsTest : public RequestPipelineTest {};

TEST_F(NoOriginsTest, NoPageIsAllowed) {
  const std::string fields = "Origin: https://app.example\r\nAccess-Control-Request-Method: POST\r\n";
  EXPECT_THAT(ask(head("OPTIONS /v2/ep/run", "", fields)), StartsWith("HTTP/1.1 405 "));
  const std::string answer = ask(head("GET /ping", "", fields));
  EXPECT_THAT(answer, Not(HasSubstr("Access-Control")));
  EXPECT_THAT(answer, Not(HasSubstr("Vary")));
}

TEST(CorsPolicyTest, AStarAllowsEveryPage) {
  const CorsPolicy any({"*"});
  ApiResponse response;
  any.addTo(response, "https://x.example");
  EXPECT_THAT(response.headers, Contains(testing::Pair("Access-Control-Allow-Origin", "*")));
  ApiResponse own;
  any.addTo(own, "");
  EXPECT_THAT(own.headers, testing::IsEmpty());
}

}  // namespace
}  // namespace jobq
