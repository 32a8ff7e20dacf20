// Tests of the bounds on the policy of a job and on the verdict of a filter (core/model/job_policy.h,
// core/model/filter_verdict.h).
#include <gtest/gtest.h>

#include <cstddef>
#include <string>

#include "core/model/filter_verdict.h"
#include "core/model/job_policy.h"
#include "jobq/admission_filter.h"
#include "jobq/error.h"
#include "jobq/job.h"
#include "jobq/time.h"
#include "testkit/thrown_text.h"

namespace jobq {
namespace {

constexpr const char* kTimeoutSentence =
    "policy.executionTimeout must be an integer from 5000 to 604800000 milliseconds";
constexpr const char* kTtlSentence = "policy.ttl must be an integer from 10000 to 604800000 milliseconds";
constexpr const char* kPrioritySentence = "policy.priority must be an integer from -1000 to 1000";

/// Returns the sentence about the policy, or an empty string for a good one.
std::string policyFault(const JobPolicy& policy) {
  const auto good = checkPolicy(policy);
  return good ? "" : good.failure().message();
}

JobPolicy withTimeout(std::int64_t timeout) {
  JobPolicy policy;
  policy.executionTimeout = Millis(timeout);
  return policy;
}
JobPolicy withTtl(std::int64_t ttl) {
  JobPolicy policy;
  policy.ttl = Millis(ttl);
  return policy;
}
JobPolicy withPriority(std::int32_t priority) {
  JobPolicy policy;
  policy.priority = priority;
  return policy;
}

TEST(JobPolicyTest, TheDefaultsAndBothEndsOfEachRangeAreGood) {
  EXPECT_EQ(policyFault({}), "");
  for (const std::int64_t timeout : {5'000, 604'800'000}) EXPECT_EQ(policyFault(withTimeout(timeout)), "") << timeout;
  for (const std::int64_t ttl : {10'000, 604'800'000}) EXPECT_EQ(policyFault(withTtl(ttl)), "") << ttl;
  for (const std::int32_t priority : {-1'000, 0, 1'000}) EXPECT_EQ(policyFault(withPriority(priority)), "") << priority;
}

TEST(JobPolicyTest, ANumberOutOfRangeIsNamedWithTheRange) {
  for (const std::int64_t timeout : {4'999, 604'800'001, 0, -1}) {
    EXPECT_EQ(policyFault(withTimeout(timeout)), kTimeoutSentence) << timeout;
  }
  for (const std::int64_t ttl : {9'999, 604'800'001, 0, -10'000})
    EXPECT_EQ(policyFault(withTtl(ttl)), kTtlSentence) << ttl;
  for (const std::int32_t priority : {-1'001, 1'001}) {
    EXPECT_EQ(policyFault(withPriority(priority)), kPrioritySentence) << priority;
  }
  JobPolicy policy = withPriority(5'000);
  policy.ttl = Millis(1);
  EXPECT_EQ(policyFault(policy), kTtlSentence) << "the sentence is about the first wrong number";
  EXPECT_EQ(rangeOf({"field", {-1, 2}, " units"}), "field must be an integer from -1 to 2 units");
}

/// Returns the sentence of the error, or an empty string without one.
template <class Act>
std::string verdictError(Act&& act) {
  return testkit::thrownText<Error>(act);
}

std::string inputFault(const std::string& input) {
  return verdictError([&] { checkReplacement({input, {}}); });
}

/// Returns a JSON object of `size` bytes.
std::string objectOf(std::size_t size) {
  const std::string head = "{\"a\":\"";
  return head + std::string(size - head.size() - 2, 'x') + "\"}";
}

TEST(FilterVerdictTest, AReplacementMayChangeNeitherOrBoth) {
  EXPECT_EQ(verdictError([] { checkReplacement({}); }), "");
  EXPECT_EQ(verdictError([] { checkReplacement({"{\"a\":1}", withPriority(7)}); }), "");
  EXPECT_EQ(inputFault(" {} "), "");
}

TEST(FilterVerdictTest, AnInputIsAJsonObjectOf20MegabytesAtMost) {
  constexpr std::size_t kLargest = 20UL << 20;
  EXPECT_EQ(inputFault(objectOf(kLargest)), "");
  EXPECT_EQ(inputFault(objectOf(kLargest + 1)), "the filter returned an input of more than 20 MB");
  for (const char* wrong : {"", "[]", "7", "\"{}\"", "null", "{", "{}{}", "{a:1}"}) {
    EXPECT_EQ(inputFault(wrong), "the filter returned an input that is not a JSON object") << wrong;
  }
}

TEST(FilterVerdictTest, APolicyOfAFilterObeysTheBoundsOfACaller) {
  EXPECT_EQ(verdictError([] {
              checkReplacement({{}, withTimeout(4'999)});
            }),
            std::string("the filter returned a wrong policy: ") + kTimeoutSentence);
  EXPECT_EQ(verdictError([] {
              checkReplacement({"{}", withPriority(1'001)});
            }),
            std::string("the filter returned a wrong policy: ") + kPrioritySentence);
  EXPECT_EQ(verdictError([] {
              checkReplacement({"[]", withPriority(1'001)});
            }),
            "the filter returned an input that is not a JSON object")
      << "the input comes first";
}

TEST(FilterVerdictTest, ARefusalMayUseOnlySixStatuses) {
  for (const int status : {400, 403, 409, 413, 422, 429}) {
    EXPECT_EQ(verdictError([&] { checkRefusal({status, "no", Millis(0)}); }), "") << status;
  }
  for (const int status : {-1, 0, 200, 399, 401, 404, 423, 430, 500}) {
    EXPECT_EQ(verdictError([&] {
                checkRefusal({status, "no", Millis(0)});
              }),
              "the filter refused with status " + std::to_string(status) +
                  ": a filter may use 400, 403, 409, 413, 422 and 429");
  }
}

}  // namespace
}  // namespace jobq
