// Tests of the hints in refusals of the request pipeline: the nearest route, the form of a refused key, the remedy for
// a large body; and of the header Warning.
#include <gmock/gmock.h>

#include "core/http/api/exchange.h"
#include "request_pipeline_fixture.h"

namespace jobq {
namespace {

using testing::HasSubstr;
using testing::Not;

TEST_F(RequestPipelineTest, AnUnknownPathIsAnsweredWithTheNearestRoute) {
  EXPECT_THAT(ask(head("POST /v1/thing", "")), HasSubstr("at /v1/thing; the nearest route is POST /v1/things\""));
  EXPECT_THAT(ask(head("GET /colour", "")), HasSubstr("at /colour: GET /openapi.json lists the routes\""));
}

TEST_F(RequestPipelineTest, ALargeBodyIsRefusedWithARemedy) {
  const std::string over = "the body is over the limit of 10 MB: send the address of the large part ";
  EXPECT_THAT(tooLarge("/v2/ep/run", 10UL << 20).body,
              HasSubstr(over + "in input, or call /runsync, which takes 20 MB"));
  EXPECT_THAT(tooLarge("/sdk/v2/ep/runsync", 10UL << 20).body, HasSubstr(over + "instead"));
  EXPECT_THAT(tooLarge("/v2/ep/job-done-batch", 24UL << 20).body, HasSubstr("send fewer results at once"));
}

TEST_F(RequestPipelineTest, ARefusedKeyIsNamedByItsForm) {
  const auto refused = [this](const std::string& value) {
    return ask(head("GET /v1/things", "", value.empty() ? "" : "Authorization: " + value + "\r\n"));
  };
  EXPECT_THAT(refused(""), HasSubstr("the API key is missing: send Authorization: Bearer <key>\""));
  EXPECT_THAT(refused("Bearer"), HasSubstr("the API key is missing"));
  for (const std::string& key : {client_, std::string("jobq_unknown")}) {
    const std::string answers[] = {refused("Bearer \"" + key + "\""), refused("Basic " + key),
                                   refused("Bearer " + key)};
    EXPECT_THAT(answers[0], HasSubstr("the API key is in quotes: send Authorization: Bearer <key> without quotes\""));
    EXPECT_THAT(answers[1], HasSubstr("the scheme of Authorization is not Bearer: send Authorization: Bearer <key>\""));
    EXPECT_THAT(answers[2],
                HasSubstr("the API key is invalid or lacks permission: send Authorization: Bearer <key>\""));
    for (const std::string& answer : answers) EXPECT_THAT(answer, Not(HasSubstr(key))) << "no answer shows a key";
  }
}

TEST_F(RequestPipelineTest, AWarningOfTheRouteIsAHeaderOfASuccess) {
  int status = 200;
  act_ = [&status](ApiRequest& call) {
    call.warning = "299 jobq \"words\"";
    return ApiResponse{status, "{}"};
  };
  EXPECT_THAT(run("{}"), HasSubstr("\r\nWarning: 299 jobq \"words\"\r\n"));
  status = 400;
  EXPECT_THAT(run("{}"), Not(HasSubstr("Warning")));
}

}  // namespace
}  // namespace jobq
