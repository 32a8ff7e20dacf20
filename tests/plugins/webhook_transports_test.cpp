// Both transports under the conformance suite of transports.
#include "testkit/temporary_folder.h"
#include "testkit/transport_suite.h"

#include <filesystem>
#include <fstream>
#include <future>

#include "tiny_http.h"
#include "webhook_fixture.h"

namespace jobq::test {
namespace {

class HttpRig final : public testkit::TransportRig {
 public:
  WebhookTransport& transport() override { return *transport_; }
  std::string goodUrl() override { return good_.url("/hook"); }
  std::vector<std::string> taken() override {
    std::vector<std::string> bodies;
    for (const TinyRequest& request : good_.requests()) bodies.push_back(request.body);
    return bodies;
  }
  std::string silentUrl() override { return silent_.url(); }
  void awaitSilence() override { silent_.awaitRequest(); }
  std::string talkativeUrl() override { return talkative_.url(); }

 private:
  TinyHttp good_{[](const TinyRequest&, const TinyConnection& client) { client.reply(200, "ok"); }};
  TinyHttp silent_{[](const TinyRequest&, const TinyConnection& client) { client.hold(); }};
  TinyHttp talkative_{
      [](const TinyRequest&, const TinyConnection& client) { client.reply(202, std::string(5000, 'x')); }};
  const std::unique_ptr<WebhookTransport> transport_ = loadTransport("http", {}, ".", true);
};

class FileRig final : public testkit::TransportRig {
 public:
  FileRig() { transport_ = loadTransport("file", {}, dir_, false); }

  WebhookTransport& transport() override { return *transport_; }
  std::string goodUrl() override { return "file:///good"; }
  std::vector<std::string> taken() override {
    constexpr std::string_view kBefore = "},\"body\":";
    std::vector<std::string> bodies;
    std::ifstream file(dir_ / "webhooks" / "good");
    for (std::string line; std::getline(file, line);) {
      const std::size_t from = line.find(kBefore) + kBefore.size();
      bodies.push_back(line.substr(from, line.size() - 1 - from));
    }
    return bodies;
  }

 private:
  const testkit::TemporaryFolder dir_;
  std::unique_ptr<WebhookTransport> transport_;
};

}  // namespace
}  // namespace jobq::test

JOBQ_TRANSPORT_CONFORMANCE(
    Webhook,
    testing::Values(jobq::testkit::TransportUnderTest{"http", [] { return std::make_unique<jobq::test::HttpRig>(); }},
                    jobq::testkit::TransportUnderTest{"file", [] { return std::make_unique<jobq::test::FileRig>(); }}));
