// Tests of each part of webhook delivery alone: body, signature, secrets, transports, delivery threads.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <atomic>
#include <filesystem>
#include <future>
#include <thread>

#include "core/model/job_json.h"
#include "core/webhooks/delivery_pool.h"
#include "core/webhooks/signature.h"
#include "core/webhooks/transports.h"
#include "core/webhooks/webhook_body.h"
#include "core/webhooks/webhook_secrets.h"
#include "jobq/base64.h"
#include "jobq/json.h"
#include "testkit/loaded_plugin.h"
#include "testkit/temporary_folder.h"
#include "testkit/thrown_text.h"
#include "testkit/wait_for.h"
#include "tests/fault/faulty_storage.h"
#include "tests/support/fakes.h"
#include "tests/webhooks/fake_transport.h"

namespace jobq {
namespace {

using testing::AllOf;
using testing::HasSubstr;

// Body

Delivery ended(JobState state) {
  Delivery delivery;
  delivery.id = "a.1";
  delivery.url = "https://h/?q=\"1\"";
  delivery.input = "{ \"b\": 1.0, \"a\" : 1e400,\"b\":\"\\u0041\" }";
  delivery.job.id = "a";
  delivery.job.state = state;
  delivery.job.workerId = "w";
  delivery.job.output = "[ 12345678901234567890123 ,\t1.50]";
  delivery.job.startedAt = fromEpochMillis(30);
  delivery.job.finishedAt = fromEpochMillis(70);
  return delivery;
}

TEST(WebhookBody, IsTheStatusWithInputAndWebhook) {
  const Delivery delivery = ended(JobState::completed);
  const std::string body = webhookBody(delivery);
  std::string status = jobJson(delivery.job);
  status.pop_back();
  EXPECT_TRUE(body.starts_with(status + ",")) << body;
  const auto read = json::read(body);
  ASSERT_TRUE(std::holds_alternative<json::Document>(read)) << body;
  const auto& document = std::get<json::Document>(read);
  std::vector<std::string> keys;
  for (const auto& member : document.members) keys.emplace_back(member.key);
  EXPECT_THAT(keys, testing::UnorderedElementsAre("id", "status", "delayTime", "executionTime", "workerId", "output",
                                                  "input", "webhook"));
  EXPECT_EQ(document.find("status")->raw, "\"COMPLETED\"");
  EXPECT_EQ(document.find("delayTime")->raw, "30");
  EXPECT_EQ(document.find("executionTime")->raw, "40");
  EXPECT_EQ(document.find("input")->raw, delivery.input) << "byte for byte";
  EXPECT_EQ(document.find("output")->raw, delivery.job.output) << "byte for byte";
  EXPECT_EQ(json::toText(*document.find("webhook")), delivery.url);
}

TEST(WebhookBody, SaysHowAJobFailed) {
  Delivery delivery = ended(JobState::failed);
  delivery.job.output.clear();
  delivery.job.error = "no \"luck\"";
  const std::string body = webhookBody(delivery);
  EXPECT_THAT(body, HasSubstr(R"("error":"no \"luck\"")"));
  EXPECT_THAT(body, testing::Not(HasSubstr("output")));
  EXPECT_TRUE(json::valid(body));
}

// Signature

// The example of the libraries used by receivers.
TEST(WebhookSignature, MatchesThePublicExample) {
  const auto key = fromBase64("MfKQ9r8GKYqrTwjUPD8ILPZIo2LaLaSw");
  ASSERT_TRUE(key);
  const auto headers = signatureHeaders(*key, "msg_p5jXN8AQM9LWM0D4loKWxJek", fromEpochMillis(1'614'265'330'999),
                                        "{\"test\": 2432232314}");
  const std::vector<std::pair<std::string, std::string>> expected{
      {"webhook-id", "msg_p5jXN8AQM9LWM0D4loKWxJek"},
      {"webhook-timestamp", "1614265330"},
      {"webhook-signature", "v1,g0hM9SsE+OTPJTGt/tmIKtSyZlE3uFJELVlNIOLJ1OE="}};
  EXPECT_EQ(headers, expected);
}

// Secrets

class SecretsTest : public testing::Test {
 protected:
  SecretsTest() {
    box_ = std::make_unique<SecretBox>(dir_ / "secret.key");
    storage_ = std::make_unique<fault::FaultyStorage>(
        testkit::loadPlugin<Storage>(JOBQ_PLUGIN_DIR "/libjobq_storage_memory.so", "memory",
                                     PluginEnv{config_, clock_, log_, dir_, false}),
        plan_);
  }
  WebhookSecrets secrets(const std::string& serverKey = "") {
    return WebhookSecrets(serverKey, endpointSecrets_, storage_->records(), *box_);
  }

  const testkit::TemporaryFolder dir_;
  testkit::ManualClock clock_;
  testkit::SilentLog log_;
  testkit::MapConfig config_;
  fault::FaultPlan plan_{clock_};
  test::SetSecrets endpointSecrets_;
  std::unique_ptr<SecretBox> box_;
  std::unique_ptr<Storage> storage_;
};

TEST_F(SecretsTest, ASecretIsMadeAndKeptSealed) {
  WebhookSecrets first = secrets();
  const std::string text = first.serverSecret();
  ASSERT_TRUE(text.starts_with("whsec_")) << text;
  const auto key = fromBase64(text.substr(6));
  ASSERT_TRUE(key);
  EXPECT_EQ(key->size(), 32U);
  EXPECT_EQ(first.keyOf("any"), *key);
  EXPECT_EQ(secrets().serverSecret(), text) << "a different node reads the same secret";
  const auto records = storage_->records().list("secret");
  ASSERT_EQ(records.size(), 1U);
  EXPECT_EQ(records[0].body.find(text.substr(6)), std::string::npos) << "sealed";
  EXPECT_EQ(records[0].body.find(*key), std::string::npos);
}

TEST_F(SecretsTest, NodesStartingTogetherEndWithTheSameSecret) {
  constexpr int kNodes = 16;
  std::vector<std::string> found(kNodes);
  std::vector<std::thread> threads;
  for (int i = 0; i < kNodes; ++i) {
    threads.emplace_back([&, i] { found[static_cast<std::size_t>(i)] = secrets().serverSecret(); });
  }
  testkit::joinAll("the nodes that start", threads);
  for (const std::string& each : found) EXPECT_EQ(each, found[0]);
}

TEST_F(SecretsTest, TheConfiguredSecretCounts) {
  endpointSecrets_.keys["own"] = "other";
  WebhookSecrets some = secrets("server");
  EXPECT_EQ(some.keyOf("own"), "other");
  EXPECT_EQ(some.keyOf("ep"), "server");
  EXPECT_EQ(some.serverSecret(), "whsec_" + toBase64("server"));
  EXPECT_TRUE(storage_->records().list("secret").empty()) << "the configured secret is enough";
}

TEST_F(SecretsTest, AFailingStorageIsAskedAgainNextTime) {
  WebhookSecrets some = secrets();
  plan_.failNext("records.find");
  EXPECT_THROW((void)some.keyOf("ep"), StorageError);
  plan_.failNext("records.create");
  EXPECT_THROW((void)some.keyOf("ep"), StorageError);
  EXPECT_EQ(some.keyOf("ep").size(), 32U);
}

TEST_F(SecretsTest, ALostKeyFileIsNamed) {
  (void)secrets().serverSecret();
  std::filesystem::remove(dir_ / "secret.key");
  box_ = std::make_unique<SecretBox>(dir_ / "secret.key");
  EXPECT_THAT(testkit::thrownText<Error>([&] { return secrets().keyOf("ep"); }),
              AllOf(HasSubstr("secret.key"), HasSubstr("webhook.secret")));
}

// Transports

TEST(TransportsTest, AUrlsSchemeSelects) {
  const testkit::ManualClock clock;
  NamedTransports named;
  named["web"] = std::make_unique<FakeTransport>(clock, "http https");
  named["disk"] = std::make_unique<FakeTransport>(clock, "file");
  const Transports transports(named);
  EXPECT_EQ(transports.find("https://h/"), named["web"].get());
  EXPECT_EQ(transports.find("HTTP://h/"), named["web"].get());
  EXPECT_EQ(transports.find("file:///x"), named["disk"].get());
  EXPECT_EQ(transports.find("ftp://h/"), nullptr);
  EXPECT_EQ(transports.find(""), nullptr);
}

TEST(TransportsTest, TwoTransportsForTheSameSchemeAreRefused) {
  const testkit::ManualClock clock;
  NamedTransports named;
  named["one"] = std::make_unique<FakeTransport>(clock, "http https");
  named["two"] = std::make_unique<FakeTransport>(clock, "file https");
  const std::string text = testkit::thrownText<ConfigError>([&] { const Transports transports(named); });
  for (const char* word : {"one", "two", "https"}) EXPECT_THAT(text, HasSubstr(word));
}

// Delivery threads

Delivery withBodies(std::size_t input, std::size_t output) {
  Delivery delivery;
  delivery.host = "h";
  delivery.input = std::string(input, ' ');
  delivery.job.output = std::string(output, ' ');
  return delivery;
}

TEST(DeliveryPoolTest, BeginsNoFurtherCallWhileTheBodiesInHandAreLarge) {
  std::promise<void> answer;
  std::atomic<int> freed = 0;
  test::CallingRunner runner(
      [answered = answer.get_future().share()](const Delivery&) {
        EXPECT_EQ(answered.wait_for(testkit::kHangDeadline), std::future_status::ready) << "the answer";
        return CallEnd::answered;
      },
      [&freed] { ++freed; });
  DeliveryPool workerPool(runner);
  constexpr std::size_t kHalf = kBytesInHand / 2;
  workerPool.start(withBodies(kHalf, kHalf - 1));
  EXPECT_TRUE(workerPool.hasPlaces());
  workerPool.start(withBodies(1, 0));
  EXPECT_FALSE(workerPool.hasPlaces());
  answer.set_value();
  testkit::waitFor("both deliveries to end", [&] { return freed == 2; });
  EXPECT_TRUE(workerPool.hasPlaces());
}

}  // namespace
}  // namespace jobq
