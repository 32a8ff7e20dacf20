// Tests of error answers (core/http/api/error_response.h, core/http/api/management/form_response.h) and of flags in the
// query (core/http/api/query_parameters.h).
#include "core/http/api/error_response.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "core/http/api/management/form_response.h"
#include "core/http/api/query_parameters.h"

namespace jobq {
namespace {

using testing::ElementsAre;
using testing::IsEmpty;
using testing::Pair;

TEST(ErrorResponse, HasTheShapeOfTheCalledApi) {
  for (const char* path : {"/v1", "/v1/", "/v1/keys"}) {
    EXPECT_EQ(errorResponse(path, 404, "no").body, R"({"message":"no"})") << path;
  }
  for (const char* path : {"", "/", "/v2/e/run", "/v10", "/v1x/keys", "/x/v1/keys"}) {
    EXPECT_EQ(errorResponse(path, 404, "no").body, R"({"error":"no"})") << path;
  }
}

TEST(ErrorResponse, QuotesTheSentence) {
  EXPECT_EQ(errorResponse("/v2", 400, "a \"b\"\n").body, R"({"error":"a \"b\"\u000a"})");
  EXPECT_EQ(errorResponse("/v2", 400, "x").status, 400);
}

TEST(ErrorResponse, UnavailableSaysWhenToComeBack) {
  const ApiResponse response = unavailable("/v2/e/run", "not now");
  EXPECT_EQ(response.status, 503);
  EXPECT_THAT(response.headers, ElementsAre(Pair("Retry-After", "1")));
}

TEST(ErrorResponse, RetryAfterIsInWholeSecondsAndNeverTooEarly) {
  const auto after = [](std::int64_t ms) { return tooMany("/v2", "slower", Millis(ms)).headers.at(0).second; };
  EXPECT_EQ(tooMany("/v2", "slower", Millis(1)).status, 429);
  EXPECT_EQ(after(0), "1");
  EXPECT_EQ(after(1), "1");
  EXPECT_EQ(after(1'000), "1");
  EXPECT_EQ(after(1'001), "2");
  EXPECT_EQ(after(9'999), "10");
}

void addRateLimitHeaders(ApiResponse& response, const RateLimitStatus& status) {
  ApiRequest request;
  request.rateLimitStatus = status;
  addRequestHeaders(response, request);
}

TEST(ErrorResponse, RateLimitHeadersShowTheRemainingCallsAndTheReset) {
  ApiResponse response;
  addRateLimitHeaders(response, {RateLimit{1000, Millis(10'000), 200}, 7, Millis(0)});
  EXPECT_THAT(response.headers, ElementsAre(Pair("RateLimit-Limit", "1000"), Pair("RateLimit-Remaining", "7"),
                                            Pair("RateLimit-Reset", "10"), Pair("RateLimit-Policy", "1000;w=10")));
  ApiResponse refused;
  addRateLimitHeaders(refused, {RateLimit{1000, Millis(10'500), 200}, 0, Millis(2'100)});
  EXPECT_THAT(refused.headers, ElementsAre(Pair("RateLimit-Limit", "1000"), Pair("RateLimit-Remaining", "0"),
                                           Pair("RateLimit-Reset", "3"), Pair("RateLimit-Policy", "1000;w=11")));
}

TEST(ErrorResponse, WithoutALimitThereAreNoRateLimitHeaders) {
  ApiResponse response;
  addRateLimitHeaders(response, {RateLimit{0, Millis(10'000), 200}, 0, Millis(0)});
  EXPECT_THAT(response.headers, IsEmpty());
}

TEST(FailureResponse, NamesEveryWrongFieldInASentenceAndInAList) {
  const Failure failure{Failure::Kind::invalid, {{"name", "name is \"odd\""}, {"", "and more"}}};
  const ApiResponse response = failureResponse(ApiRequest(), failure);
  EXPECT_EQ(response.status, 400);
  EXPECT_EQ(response.body,
            R"({"message":"name is \"odd\"; and more","errors":[{"field":"name","message":"name is \"odd\""},)"
            R"({"field":"","message":"and more"}]})");
}

TEST(QueryFlags, AreTrueOrFalse) {
  ApiRequest call;
  EXPECT_THAT(*readFlags(call, {"deep"}), IsEmpty());
  call.query = {{"deep", "true"}, {"flat", "false"}, {"odd", "1"}};
  EXPECT_THAT(*readFlags(call, {"deep", "flat", "absent"}), ElementsAre("deep"));
  call.query.emplace("deep", "true");
  const auto faulty = readFlags(call, {"deep", "flat", "odd"});
  ASSERT_FALSE(faulty);
  ASSERT_EQ(faulty.failure().faults.size(), 2U);
  EXPECT_EQ(faulty.failure().faults[0].message, "deep appears more than once in the query: send it once");
  EXPECT_EQ(faulty.failure().faults[1].message, "odd must be true or false");
}

}  // namespace
}  // namespace jobq
