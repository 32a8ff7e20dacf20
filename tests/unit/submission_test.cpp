// Tests of the parsing of a job's body: a job, or a sentence naming the fault (core/http/API.md, "Job request body";
// core/decisions/jobs.md).
#include "core/jobs/submission.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <set>

#include "core/base/secret_box.h"
#include "testkit/temporary_folder.h"

namespace {

using namespace jobq;
using testing::ElementsAre;
using testing::EndsWith;
using testing::HasSubstr;
using testing::IsEmpty;

class SubmissionTest : public testing::Test {
 protected:
  SubmissionTest() : secrets_(folder_.path() / "secret.key") {
    endpoint_.spec.id = "ep";
    endpoint_.spec.executionTimeout = Millis(42'000);
    endpoint_.spec.maxAttempts = 7;
  }

  Result<ReadSubmission> read(std::string_view body, std::optional<Millis> wait = std::nullopt) {
    return readSubmission(std::string(body), endpoint_, "key", wait,
                          SubmissionRules{secrets_, allowPrivate_, schemes_, numbers_, ignoresNearKeys_});
  }
  JobSpec accepted(std::string_view body, std::optional<Millis> wait = std::nullopt) {
    auto result = read(body, wait);
    EXPECT_TRUE(result) << body;
    return result ? result->job : JobSpec{};
  }
  std::string refused(std::string_view body) {
    auto result = read(body);
    return result ? "" : result.failure().message();
  }
  testkit::TemporaryFolder folder_;
  Endpoint endpoint_;
  bool allowPrivate_ = false;
  std::set<std::string> schemes_{"http", "https"};
  OutOfRange numbers_ = OutOfRange::refuse;
  bool ignoresNearKeys_ = false;
  SecretBox secrets_;
};

TEST_F(SubmissionTest, DefaultsComeFromTheEndpoint) {
  const JobSpec job = accepted(R"({ "input" : { "b":1.0, "a":-0 } , "unknown":1})");
  EXPECT_EQ(job.input, R"({ "b":1.0, "a":-0 })");
  EXPECT_EQ(job.endpoint, "ep");
  EXPECT_EQ(job.apiKeyId, "key");
  EXPECT_EQ(job.policy.executionTimeout, Millis(42'000));
  EXPECT_EQ(job.policy.ttl, Millis(86'400'000));
  EXPECT_FALSE(job.policy.lowPriority);
  EXPECT_EQ(job.maxAttempts, 7U);
  EXPECT_EQ(job.retention, Millis(1'800'000));
  EXPECT_FALSE(job.id.starts_with("sync-"));
}

TEST_F(SubmissionTest, RetentionFollowsTheCallAndTheWait) {
  Endpoint endpoint;
  EXPECT_EQ(retentionFor(std::nullopt, endpoint), Millis(1'800'000));
  EXPECT_EQ(retentionFor(Millis(1'000), endpoint), Millis(60'000));
  EXPECT_EQ(retentionFor(Millis(90'000), endpoint), Millis(60'000));
  EXPECT_EQ(retentionFor(Millis(90'001), endpoint), Millis(90'001));
  EXPECT_EQ(retentionFor(Millis(300'000), endpoint), Millis(300'000));
  EXPECT_TRUE(accepted(R"({"input":{}})", Millis(90'000)).id.starts_with("sync-"));
  endpoint.defaults.runRetention = Millis(9'000);
  endpoint.defaults.runsyncRetention = Millis(8'000);
  EXPECT_EQ(retentionFor(std::nullopt, endpoint), Millis(9'000)) << "the server's";
  EXPECT_EQ(retentionFor(Millis(90'000), endpoint), Millis(8'000));
  EXPECT_EQ(retentionFor(Millis(90'001), endpoint), Millis(90'001));
  endpoint.spec.runRetention = Millis(5'000);
  endpoint.spec.runsyncRetention = Millis(2'000);
  EXPECT_EQ(retentionFor(std::nullopt, endpoint), Millis(5'000));
  EXPECT_EQ(retentionFor(Millis(90'000), endpoint), Millis(2'000));
  EXPECT_EQ(retentionFor(Millis(90'001), endpoint), Millis(90'001)) << "a longer wait keeps the result longer";
  endpoint.spec.runsyncRetention = Millis(3'600'000);
  EXPECT_EQ(retentionFor(Millis(300'000), endpoint), Millis(3'600'000));
}

TEST_F(SubmissionTest, FailuresStayAsLongAsTheServerOrTheEndpointSays) {
  EXPECT_FALSE(accepted(R"({"input":{}})").retentionFailed) << "as long as other results";
  endpoint_.defaults.failedRetention = Millis(9'000);
  EXPECT_EQ(accepted(R"({"input":{}})").retentionFailed, Millis(9'000));
  endpoint_.spec.failedRetention = Millis(5'000);
  EXPECT_EQ(accepted(R"({"input":{}})").retentionFailed, Millis(5'000));
  endpoint_.spec.failedRetention = Millis(0);
  EXPECT_FALSE(accepted(R"({"input":{}})").retentionFailed) << "0 of the endpoint wins over the server's time";
}

TEST_F(SubmissionTest, APolicyWithinTheBoundsIsTaken) {
  const JobSpec job = accepted(
      R"({"input":{},"policy":{"executionTimeout":5000,"ttl":604800000,"lowPriority":true,"priority":-1000}})");
  EXPECT_EQ(job.policy.executionTimeout, Millis(5'000));
  EXPECT_EQ(job.policy.ttl, Millis(604'800'000));
  EXPECT_TRUE(job.policy.lowPriority);
  EXPECT_EQ(job.policy.priority, -1'000);
}

TEST_F(SubmissionTest, EachWrongFieldIsNamedWithTheRemedy) {
  EXPECT_THAT(refused("{}"), HasSubstr("input is missing"));
  EXPECT_THAT(refused(R"({"input":null})"), HasSubstr("input is missing"));
  EXPECT_THAT(refused(R"({"input":[]})"), HasSubstr("input must be a JSON object"));
  EXPECT_THAT(refused("[]"), HasSubstr("must be a JSON object"));
  EXPECT_THAT(refused("{"), HasSubstr("not valid JSON"));
  EXPECT_THAT(refused(R"({"input":{},"in\u0070ut":{}})"), HasSubstr("\"input\" twice"));
  EXPECT_THAT(refused(R"({"input":{},"policy":1})"), HasSubstr("policy must be an object"));
  EXPECT_THAT(refused(R"({"input":{},"policy":{"ttl":9999}})"), HasSubstr("policy.ttl must be an integer from 10000"));
  EXPECT_THAT(refused(R"({"input":{},"policy":{"ttl":604800001}})"), HasSubstr("604800000 milliseconds"));
  EXPECT_THAT(refused(R"({"input":{},"policy":{"executionTimeout":4999}})"), HasSubstr("from 5000 to 604800000"));
  EXPECT_EQ(
      refused(R"({"input":{},"policy":{"executionTimeout":60}})"),
      "policy.executionTimeout must be an integer from 5000 to 604800000 milliseconds; you sent 60: milliseconds?");
  EXPECT_THAT(refused(R"({"input":{},"policy":{"ttl":10}})"), HasSubstr("; you sent 10: milliseconds?"));
  EXPECT_THAT(refused(R"({"input":{},"policy":{"ttl":9}})"), EndsWith("604800000 milliseconds")) << "9 s is too short";
  EXPECT_THAT(refused(R"({"input":{},"policy":{"executionTimeout":5000.0}})"), HasSubstr("integer"));
  EXPECT_THAT(refused(R"({"input":{},"policy":{"lowPriority":1}})"), HasSubstr("true or false"));
  EXPECT_THAT(refused(R"({"input":{},"policy":{"priority":1001}})"), HasSubstr("from -1000 to 1000"));
  EXPECT_THAT(refused(R"({"input":{},"policy":{"ttl":20000,"t\u0074l":30000}})"),
              HasSubstr("policy has the key \"ttl\" twice"));
  EXPECT_THAT(
      refused(R"({"input":{},"policy":{"executionTimout":9000}})"),
      HasSubstr("policy has no field \"executionTimout\"; its fields are executionTimeout, ttl, lowPriority and "
                "priority; the nearest one is policy.executionTimeout"));
  EXPECT_THAT(refused(R"({"input":{},"policy":{"timeout":9000}})"),
              HasSubstr("; the nearest one is policy.executionT"));
  EXPECT_THAT(refused(R"({"input":{},"policy":{"colour":1}})"), HasSubstr("lowPriority and priority"))
      << "none is near";
  EXPECT_THAT(refused(R"({"input":{},"s3Config":{"accessId":"a","accessId":"b"}})"), HasSubstr("\"accessId\" twice"));
  EXPECT_THAT(refused(R"({"input":{},"s3Config":"x"})"), HasSubstr("s3Config must be an object"));
  EXPECT_THAT(refused(R"({"input":{},"s3Config":{"accessId":1}})"), HasSubstr("s3Config.accessId"));
}

TEST_F(SubmissionTest, ASlipInAKnownKeyIsRefused) {
  for (const auto& [key, meant] : {std::pair("inputs", "input"),
                                   {"nput", "input"},
                                   {"webhok", "webhook"},
                                   {"polixy", "policy"},
                                   {"s3config", "s3Config"}}) {
    const std::string sentence = std::string("the body has no key \"") + key + "\": did you mean " + meant + "?";
    EXPECT_EQ(refused(std::string("{\"input\":{},\"") + key + "\":1}"), sentence);
  }
  EXPECT_EQ(refused(R"({"Input":{}})"), "the body has no key \"Input\": did you mean input?");
  ignoresNearKeys_ = true;
  EXPECT_THAT(read(R"({"input":{},"polixy":1})")->ignoredKeys, ElementsAre("polixy"));
}

TEST_F(SubmissionTest, OtherUnknownKeysAreIgnoredAndListed) {
  EXPECT_THAT(read(R"({"a":1,"input":{},"inptus":2,"\u0062":3,"webhookV2":null})")->ignoredKeys,
              ElementsAre("a", "inptus", "b"));
  EXPECT_THAT(read(R"({"input":{},"inputs":null})")->ignoredKeys, IsEmpty()) << "null counts as absent";
}

// The scanner needs memory beside the body, and only the body's size is counted: 10 MB of short keys took 124 MB.
TEST_F(SubmissionTest, OnlyKeysBesideTheInputAreLimited) {
  const auto keys = [](int count) {
    std::string text;
    for (int i = 0; i < count; ++i) text += ",\"k" + std::to_string(i) + "\":1";
    return text;
  };
  const std::string input = "{\"n\":1" + keys(20'000) + "}";
  EXPECT_EQ(accepted("{\"input\":" + input + "}").input, input);
  EXPECT_EQ(accepted("{\"input\":{}" + keys(999) + "}").input, "{}");
  EXPECT_EQ(refused("{\"input\":{}" + keys(1'000) + "}"),
            "the body has more than 1000 keys: put the handler's data into input");
  EXPECT_THAT(refused("{\"input\":{},\"policy\":{\"n\":1" + keys(1'000) + "}}"),
              HasSubstr("policy has more than 1000"));
  EXPECT_THAT(refused("{\"input\":{},\"s3Config\":{\"n\":1" + keys(1'000) + "}}"),
              HasSubstr("s3Config has more than 1000"));
  EXPECT_THAT(refused("{\"input\":{}" + keys(5'000) + ",}"), HasSubstr("not valid JSON")) << "the whole body is read";
}

// The accepted URLs are tested in webhook_url_test.cpp.
TEST_F(SubmissionTest, AWebhookIsJudgedByTheServersRules) {
  const std::string hook = R"({"input":{},"webhook":"http://127.1/x"})";
  EXPECT_THAT(refused(hook), HasSubstr("webhook names a private address"));
  allowPrivate_ = true;
  EXPECT_EQ(accepted(hook).webhook, "http://127.1/x");
  const std::string file = R"({"input":{},"webhook":"file:///hooks"})";
  EXPECT_THAT(refused(file), HasSubstr("webhook must be an absolute http or https URL"));
  schemes_ = {"file"};
  EXPECT_EQ(accepted(file).webhook, "file:///hooks");
  for (const char* value : {"1", "true", "[]", "{}", "\"\"", "\"/x\"", "\"http://\\u0000h/\""}) {
    EXPECT_THAT(refused(std::string("{\"input\":{},\"webhook\":") + value + "}"), HasSubstr("webhook ")) << value;
  }
}

TEST_F(SubmissionTest, AWebhookIsReadWithResolvedEscapes) {
  EXPECT_EQ(accepted(R"({"input":{},"webhook":"https:\/\/h\/\u0078"})").webhook, "https://h/x");
  EXPECT_THAT(refused(R"({"input":{},"webhook":"http://\u0031\u0030.0.0.1/"})"), HasSubstr("private"));
}

TEST_F(SubmissionTest, WebhookV2CountsWhenWebhookIsAbsent) {
  EXPECT_EQ(accepted(R"({"input":{},"webhookV2":"https://two/"})").webhook, "https://two/");
  EXPECT_EQ(accepted(R"({"input":{},"webhookV2":"https://two/","webhook":null})").webhook, "https://two/");
  EXPECT_EQ(accepted(R"({"input":{},"webhookV2":"https://two/","webhook":"https://one/"})").webhook, "https://one/");
  EXPECT_EQ(accepted(R"({"input":{},"webhookV2":1,"webhook":"https://one/"})").webhook, "https://one/");
  EXPECT_EQ(accepted(R"({"input":{},"webhookV2":null})").webhook, "");
  EXPECT_THAT(refused(R"({"input":{},"webhookV2":1})"), HasSubstr("webhookV2 must be a string"));
  EXPECT_THAT(refused(R"({"input":{},"webhookV2":"http://10.0.0.1/"})"), HasSubstr("webhookV2 names a private"));
  EXPECT_THAT(refused(R"({"input":{},"webhookV2":"https://two/","webhook":""})"), HasSubstr("webhook must be"));
}

// An integer has no point and no exponent, and fits 64 bits; -0 is 0.
TEST_F(SubmissionTest, APolicyNumberIsAPlainInteger) {
  const auto with = [](const std::string& field, const std::string& value) {
    return R"({"input":{},"policy":{")" + field + "\":" + value + "}}";
  };
  for (const char* value : {"5e3", "5000.0", "5E3", "50000e-1", "1e400", "-5000", "-0", "0", "\"5000\"", "true",
                            "[5000]", "99999999999999999999", "9223372036854775808", "18446744073709556616"}) {
    EXPECT_THAT(refused(with("executionTimeout", value)), HasSubstr("policy.executionTimeout must be an integer"));
    EXPECT_THAT(refused(with("ttl", value)), HasSubstr("policy.ttl must be an integer")) << value;
  }
  for (const char* value : {"-0", "0"}) EXPECT_EQ(accepted(with("priority", value)).policy.priority, 0);
  for (const char* value : {"-0.0", "0e0", "-1001", "1001", "4294967296"}) {
    EXPECT_THAT(refused(with("priority", value)), HasSubstr("policy.priority must be an integer")) << value;
  }
  EXPECT_EQ(accepted(with("ttl", "null")).policy.ttl, Millis(86'400'000)) << "null is absent";
  EXPECT_THAT(refused(R"({"input":{},"policy":{"ttl":1,"tt\u006c":10000}})"), HasSubstr("\"ttl\" twice"));
}

// core/http/API.md, "The two mounts": public SDKs send policy values out of range. On the mount for SDKs the server
// clamps the values.
TEST_F(SubmissionTest, OnTheSdkMountNumbersAreClamped) {
  numbers_ = OutOfRange::clamp;
  const auto policy = [this](const char* key, const char* value) {
    return accepted("{\"input\":{},\"policy\":{\"" + std::string(key) + "\":" + value + "}}").policy;
  };
  EXPECT_EQ(policy("executionTimeout", "3000").executionTimeout, Millis(5'000));
  EXPECT_EQ(policy("executionTimeout", "-1").executionTimeout, Millis(5'000));
  EXPECT_EQ(policy("executionTimeout", "1e400").executionTimeout, Millis(604'800'000));
  EXPECT_EQ(policy("executionTimeout", "1e-400").executionTimeout, Millis(5'000));
  EXPECT_EQ(policy("ttl", "99999999999999999999").ttl, Millis(604'800'000));
  EXPECT_EQ(policy("ttl", "60000.9").ttl, Millis(60'000));
  EXPECT_EQ(policy("ttl", "60000").ttl, Millis(60'000));
  EXPECT_EQ(policy("priority", "-5000").priority, -1'000);
  EXPECT_THAT(refused(R"({"input":{},"policy":{"ttl":"60000"}})"), HasSubstr("policy.ttl"))
      << "a string is not a number";
  EXPECT_THAT(refused(R"({"input":{},"policy":{"lowPriority":1}})"), HasSubstr("lowPriority"));
}

TEST_F(SubmissionTest, ALongWordIsClippedInTheAnswer) {
  const std::string key(1'000'000, 'k');
  EXPECT_LT(refused("{\"" + key + "\":1,\"" + key + "\":1,\"input\":{}}").size(), 200U);
}

TEST_F(SubmissionTest, S3ConfigIsSealedAndOpensToTheCallersBytes) {
  const JobSpec job = accepted(R"({"input":{},"webhook":"https://h/x","s3Config":{"accessSecret":"s3cr3t", "k":1.0}})");
  EXPECT_EQ(job.s3Config.find("s3cr3t"), std::string::npos);
  EXPECT_EQ(secrets_.open(job.s3Config), R"({"accessSecret":"s3cr3t", "k":1.0})");
  EXPECT_EQ(job.webhook, "https://h/x");
}

}  // namespace
