// Tests of results uploaded to a bucket. An independent verifier in tests/s3 checks the signatures.
#include <future>

#include "image_fixture.h"
#include "testkit/wait_for.h"
#include "tiny_http.h"

namespace jobq::test {
namespace {

using testing::AllOf;
using testing::EndsWith;
using testing::HasSubstr;
using testing::Not;
using testing::StartsWith;

constexpr const char* kSecret = "hunter2/very+secret";

std::string s3Config(const std::string& endpoint, const std::string& rest = "") {
  return R"({"accessId":"AKIDEXAMPLE","accessSecret":")" + std::string(kSecret) +
         R"(","bucketName":"pictures","endpointUrl":)" + json::quoted(endpoint) + rest + "}";
}

class HandlerImageS3 : public HandlerImage {
 protected:
  const std::string input_ = inputOf(pngOf(quarters(6, 4)), R"("format":"jpeg")");

  std::string failureWith(const std::string& config) {
    testkit::FakeJobContext context({.s3Config = config});
    const std::string message = failureOf(input_, context);
    EXPECT_THAT(message, Not(HasSubstr(kSecret)));
    for (const std::string& line : context.lines()) EXPECT_THAT(line, Not(HasSubstr(kSecret)));
    return message;
  }
};

TEST_F(HandlerImageS3, UploadsTheResult) {
  TinyHttp server([](const TinyRequest&, const TinyConnection& client) { client.reply(200, ""); });
  testkit::FakeJobContext context({.s3Config = s3Config(server.url("/"))});
  const Picture result = process(input_, context);
  const std::string path = "/pictures/" + context.id() + ".jpg";
  EXPECT_EQ(result.url, server.url(path));
  EXPECT_EQ(result.width, 6);
  EXPECT_EQ(result.format, "jpeg");
  const TinyRequest request = server.requests().at(0);
  EXPECT_EQ(request.method, "PUT");
  EXPECT_EQ(request.target, path);
  EXPECT_THAT(request.head, HasSubstr("Content-Type: image/jpeg\r\n"));
  EXPECT_THAT(request.head, HasSubstr("/us-east-1/s3/aws4_request"));
  EXPECT_THAT(request.head, Not(HasSubstr(kSecret)));
  EXPECT_NE(decodeAs("jpeg", request.body), nullptr);
}

TEST_F(HandlerImageS3, UsesTheGivenRegionAndPath) {
  TinyHttp server([](const TinyRequest&, const TinyConnection& client) { client.reply(200, ""); });
  testkit::FakeJobContext context(
      {.s3Config = s3Config(server.url("/store"), R"(,"region":"eu-north-1","objectPath":"a b/=(+)é.jpg","more":1)")});
  const Picture result = process(input_, context);
  EXPECT_EQ(result.url, server.url("/store/pictures/a%20b/%3D%28%2B%29%C3%A9.jpg"));
  EXPECT_EQ(server.requests().at(0).target, "/store/pictures/a%20b/%3D%28%2B%29%C3%A9.jpg");
  EXPECT_THAT(server.requests().at(0).head, HasSubstr("/eu-north-1/s3/aws4_request"));
}

TEST_F(HandlerImageS3, ReportsTheAnswerOfTheStorage) {
  TinyHttp server([](const TinyRequest&, const TinyConnection& client) {
    client.reply(403, std::string("<Error><Code>SignatureDoesNotMatch</Code><Message>Wrong\nsignature</Message>"
                                  "<StringToSign>x</StringToSign></Error>"));
  });
  EXPECT_THAT(failureWith(s3Config(server.url())),
              AllOf(StartsWith("the result could not be uploaded to " + server.url("/pictures/")),
                    EndsWith(": the storage answered 403 SignatureDoesNotMatch (Wrong signature); check accessId, "
                             "accessSecret, region and bucketName")));
  TinyHttp missing([](const TinyRequest&, const TinyConnection& client) { client.reply(404, "</Code><Code>"); });
  EXPECT_THAT(failureWith(s3Config(missing.url())), EndsWith("404; check that the bucket of bucketName exists"));
  TinyHttp full([](const TinyRequest&, const TinyConnection& client) { client.reply(507, ""); });
  EXPECT_THAT(failureWith(s3Config(full.url())), EndsWith("507; check s3Config or try again"));
}

TEST_F(HandlerImageS3, NeverRepeatsASecretEchoedByTheStorage) {
  TinyHttp server([](const TinyRequest&, const TinyConnection& client) {
    client.reply(403, std::string("<Error><Code>No</Code><Message>not ") + kSecret + "</Message></Error>");
  });
  EXPECT_THAT(failureWith(s3Config(server.url())), HasSubstr("answered 403 No; check accessId"));
}

TEST_F(HandlerImageS3, FollowsNoRedirect) {
  TinyHttp server([](const TinyRequest&, const TinyConnection& client) { client.redirect("http://169.254.1.1/"); });
  EXPECT_THAT(failureWith(s3Config(server.url())), EndsWith("302, a redirect; check endpointUrl and region"));
}

TEST_F(HandlerImageS3, NeverConnectsToAForbiddenAddress) {
  EXPECT_THAT(failureWith(s3Config("http://169.254.169.254")), HasSubstr("169.254.169.254 is link-local"));
}

TEST_F(HandlerImageS3, BoundsTheTimeOfAnUploadAndTheSizeOfTheReply) {
  configure({{"uploadTimeout", "150"}});
  TinyHttp silent([](const TinyRequest&, const TinyConnection& client) { client.hold(); });
  EXPECT_THAT(failureWith(s3Config(silent.url())), HasSubstr("the transfer took longer than 150 ms"));
  configure({});
  TinyHttp chatty(
      [](const TinyRequest&, const TinyConnection& client) { client.reply(200, std::string(70'000, 'x')); });
  EXPECT_THAT(failureWith(s3Config(chatty.url())), HasSubstr("the reply is larger than 65536 bytes"));
}

TEST_F(HandlerImageS3, StopsAnUpload) {
  TinyHttp server([](const TinyRequest&, const TinyConnection& client) { client.hold(); });
  testkit::FakeJobContext context({.s3Config = s3Config(server.url())});
  auto running = std::async(std::launch::async, [&] { return failureOf(input_, context); });
  server.awaitRequest();
  context.stop();
  EXPECT_EQ(testkit::resultOf("the stopped job", running),
            "the job was stopped while uploading the result to " + server.url("/pictures/" + context.id() + ".jpg"));
}

TEST_F(HandlerImageS3, UploadsAResultOfSeveralMegabytes) {
  TinyHttp server([](const TinyRequest&, const TinyConnection& client) { client.reply(200, ""); });
  const Gd noise(gdImageCreateTrueColor(1200, 1000));
  for (int i = 0; i < 1'200'000; ++i) gdImageSetPixel(noise.get(), i % 1200, i / 1200, (i * 2654435761U) >> 8);
  testkit::FakeJobContext context({.s3Config = s3Config(server.url())});
  const std::string file = pngOf(noise);
  process(inputOf(file), context);
  EXPECT_GT(server.requests().at(0).body.size(), 1U << 20);
}

TEST_F(HandlerImageS3, NamesTheWrongKeyAndNeverTheValue) {
  const auto with = [](const std::string& members) { return "{" + members + "}"; };
  const std::string id = R"("accessId":"AKID")";
  const std::string secret = std::string(R"("accessSecret":")") + kSecret + "\"";
  const std::string bucket = R"("bucketName":"b")";
  const std::string url = R"("endpointUrl":"http://127.0.0.1:9")";
  const std::string all = id + "," + secret + "," + bucket + "," + url;
  const std::pair<std::string, const char*> kCases[] = {
      {with(secret + "," + bucket + "," + url), "s3Config.accessId must be a string that is not empty"},
      {with(id + "," + bucket + "," + url), "s3Config.accessSecret must be a string that is not empty"},
      {with(id + "," + secret + "," + url), "s3Config.bucketName must be"},
      {with(id + "," + secret + "," + bucket), "s3Config.endpointUrl must be"},
      {with(all + R"(,"accessId":"a\r\nb")"), "s3Config.accessId must be made of"},
      {with(all + R"(,"accessSecret":1)"), "s3Config.accessSecret must be a string"},
      {with(all + R"(,"bucketName":"a/b")"), "s3Config.bucketName must be made of"},
      {with(all + R"(,"bucketName":"..")"), "s3Config.bucketName must be made of"},
      {with(all + R"(,"region":"us east")"), "s3Config.region must be made of"},
      {with(all + R"(,"region":"")"), "s3Config.region must be made of"},
      {with(all + R"(,"objectPath":"/a")"), "s3Config.objectPath must be a key without"},
      {with(all + R"(,"objectPath":"a/../b")"), "s3Config.objectPath must be a key without"},
      {with(all + R"(,"objectPath":"a//b")"), "s3Config.objectPath must be a key without"},
      {with(all + R"(,"endpointUrl":"ftp://a")"), "s3Config.endpointUrl must be an absolute http or https URL"},
      {with(all + R"(,"endpointUrl":"http://u:p@a/")"), "s3Config.endpointUrl must be"},
      {with(all + R"(,"endpointUrl":"http://a/?q")"), "s3Config.endpointUrl must be"},
      {"[]", "s3Config must be a JSON object"},
  };
  for (const auto& [config, message] : kCases) EXPECT_THAT(failureWith(config), StartsWith(message)) << config;
}

}  // namespace
}  // namespace jobq::test
