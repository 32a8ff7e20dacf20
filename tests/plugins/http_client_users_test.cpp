// The boundary that all users of http_client share: webhooks, fetched pictures, uploads and scripts. Each test runs the
// real plugin.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <fstream>
#include <functional>
#include <map>
#include <memory>
#include <ostream>
#include <string>
#include <variant>

#include "curl_options.h"
#include "jobq/error.h"
#include "jobq/job_handler.h"
#include "jobq/json.h"
#include "jobq/plugin.h"
#include "jobq/webhook_transport.h"
#include "name_server.h"
#include "testkit/fake_job_context.h"
#include "testkit/loaded_plugin.h"
#include "testkit/manual_clock.h"
#include "testkit/temporary_folder.h"
#include "tiny_http.h"
#include "webhook_receiver.h"

namespace jobq::test {
namespace {

using testing::HasSubstr;

constexpr const char* kPixel =
    "iVBORw0KGgoAAAANSUhEUgAAAAEAAAABCAYAAAAfFcSJAAAADUlEQVR42mNk+M9QDwADhgGAWjR9awAAAABJRU5ErkJggg==";

/// Loads a plugin with a folder of its own.
class Loader {
 public:
  explicit Loader(bool allowPrivate) : allowPrivate_(allowPrivate) {}

  template <class Kind>
  std::unique_ptr<Kind> load(const std::string& file, const std::string& name, const char* setting = nullptr) {
    std::map<std::string, std::string, std::less<>> settings;
    if (setting != nullptr) settings.emplace(setting, "true");
    const testkit::MapConfig config(settings);
    return testkit::loadPlugin<Kind>(JOBQ_PLUGIN_DIR "/libjobq_" + file + ".so", name,
                                     PluginEnv{config, clock_, log_, folder_.path(), allowPrivate_, folder_.path()});
  }
  const testkit::TemporaryFolder& folder() const { return folder_; }

 private:
  const bool allowPrivate_;
  testkit::ManualClock clock_;
  testkit::SilentLog log_;
  const testkit::TemporaryFolder folder_;
};

std::string failureOf(JobHandler& handler, const std::string& input, const std::string& s3Config = "") {
  testkit::FakeJobContext context({.s3Config = s3Config});
  try {
    return handler.run(input, context);
  } catch (const JobFailed& error) {
    return error.what();
  }
}

std::string ofWebhook(Loader& loader, const std::string& url) {
  const auto transport = loader.load<WebhookTransport>("webhook_http", "http");
  const DeliveryResult result = transport->deliver({url, {}, "{}", Millis(5'000)}, {});
  const auto* failed = std::get_if<DeliveryFailed>(&result);
  return failed == nullptr ? "(delivered)" : failed->reason;
}

std::string ofPicture(Loader& loader, const std::string& url) {
  const auto factory = loader.load<HandlerFactory>("handler_image", "image");
  return failureOf(*factory->make({"endpoint", "worker", {}}), "{\"url\":" + json::quoted(url) + "}");
}

std::string ofUpload(Loader& loader, const std::string& url) {
  const auto factory = loader.load<HandlerFactory>("handler_image", "image");
  return failureOf(*factory->make({"endpoint", "worker", {}}), std::string(R"({"image":")") + kPixel + "\"}",
                   R"({"accessId":"a","accessSecret":"s","bucketName":"b","endpointUrl":)" + json::quoted(url) + "}");
}

std::string ofScript(Loader& loader, const std::string& url) {
  std::ofstream(loader.folder() / "call.lua") << "return function(input) return select(2, http.get(input.url)) end";
  const auto factory = loader.load<HandlerFactory>("lua", "lua", "http");
  return failureOf(*factory->make({"lua", "worker", {}, "call"}), "{\"url\":" + json::quoted(url) + "}");
}

struct User {
  const char* name;
  std::string (*callTo)(Loader&, const std::string& url);  ///< returns the reason of the failure
};
void PrintTo(const User& user, std::ostream* out) { *out << user.name; }

class HttpClientUsers : public testing::TestWithParam<User> {
 protected:
  static std::string failureOf(const std::string& url, bool allowPrivate = true) {
    Loader loader(allowPrivate);
    return GetParam().callTo(loader, url);
  }
};

TEST_P(HttpClientUsers, SetTheOptionsOfTheBoundary) {
  const CurlOptions options;
  failureOf("https://169.254.169.254/");
  EXPECT_EQ(options.number(CURLOPT_SSLVERSION), CURL_SSLVERSION_TLSv1_2);
  EXPECT_EQ(options.number(CURLOPT_SSL_VERIFYPEER), 1);
  EXPECT_EQ(options.number(CURLOPT_SSL_VERIFYHOST), 2);
  EXPECT_EQ(options.number(CURLOPT_FOLLOWLOCATION), 0);
  EXPECT_EQ(options.number(CURLOPT_NETRC), CURL_NETRC_IGNORED);
  if (options.number(CURLOPT_FORBID_REUSE) != 1) {
    EXPECT_EQ(GetParam().name, std::string("webhook")) << "only the webhook client keeps connections";
    EXPECT_EQ(options.number(CURLOPT_DNS_CACHE_TIMEOUT), 0);
    EXPECT_EQ(options.number(CURLOPT_MAXAGE_CONN), 10);
    EXPECT_EQ(options.number(CURLOPT_MAXLIFETIME_CONN), 60);
  }
  EXPECT_GT(options.number(CURLOPT_TIMEOUT_MS), 0);
  EXPECT_NE(options.number(CURLOPT_OPENSOCKETFUNCTION), -1);
  EXPECT_EQ(options.text(CURLOPT_PROXY), "");
  EXPECT_EQ(options.text(CURLOPT_PROTOCOLS_STR), "http,https");
}

TEST_P(HttpClientUsers, RefuseAnAmbiguousUrl) {
  TinyHttp server([](const TinyRequest&, const TinyConnection& client) { client.reply(200, ""); });
  const std::string host = "127.0.0.1:" + std::to_string(server.port()) + "/";
  for (const char* start : {"http:", "http:/", "http:///", "http://a\\@", "http:\\\\"}) {
    EXPECT_THAT(failureOf(start + host), HasSubstr("an absolute http or https URL")) << start;
  }
  EXPECT_TRUE(server.requests().empty());
}

TEST_P(HttpClientUsers, NameTheFirstRefusedAddress) {
  const NameServer names("two.test", {"169.254.169.254", "10.0.0.1"});
  EXPECT_THAT(failureOf("http://two.test/", false),
              HasSubstr("the address 169.254.169.254 is link-local, multicast or reserved, which is never allowed"));
}

TEST_P(HttpClientUsers, ConnectToNoPrivateAddressUnlessAllowed) {
  TinyHttp server([](const TinyRequest&, const TinyConnection& client) { client.reply(500, ""); });
  EXPECT_THAT(failureOf(server.url(), false), HasSubstr("the address is private"));
  EXPECT_TRUE(server.requests().empty());
  failureOf(server.url(), true);
  EXPECT_EQ(server.requests().size(), 1U);
}

TEST_P(HttpClientUsers, AnUnreachableAllowedAddressIsNotRefused) {
  int unused = 0;
  {
    const Listener listener;
    unused = listener.port();
  }
  const NameServer names("two.test", {"169.254.169.254", "127.0.0.1"});
  EXPECT_THAT(failureOf("http://two.test:" + std::to_string(unused) + "/"), HasSubstr("connection refused"));
}

TEST_P(HttpClientUsers, TrustNoServerWithoutAnAuthority) {
  Receiver strange([](Peer& peer) { peer.readRequest(); }, certify({}));
  EXPECT_THAT(failureOf(strange.url()), HasSubstr("the certificate is not trusted: self-signed certificate"));
}

TEST_P(HttpClientUsers, SpeakNoTlsBefore12) {
  Receiver old([](Peer& peer) { peer.readRequest(); }, certify({}), TLS1_1_VERSION);
  EXPECT_THAT(failureOf(old.url()), HasSubstr("the TLS handshake failed"));
}

INSTANTIATE_TEST_SUITE_P(Plugins, HttpClientUsers,
                         testing::Values(User{"webhook", ofWebhook}, User{"picture", ofPicture},
                                         User{"upload", ofUpload}, User{"script", ofScript}),
                         [](const auto& info) { return std::string(info.param.name); });

}  // namespace
}  // namespace jobq::test
