// Tests of the memory of the transport `http` with receivers that send without end.
#include <sys/resource.h>

#include <future>
#include <string>
#include <vector>

#include "webhook_fixture.h"
#include "webhook_receiver.h"

namespace jobq::test {
namespace {

// ThreadSanitizer keeps four further bytes for each byte of the program.
#if JOBQ_SANITIZED_THREADS
constexpr long kSanitizersShare = 5;
#else
constexpr long kSanitizersShare = 1;
#endif

class WebhookHttpMemory : public WebhookHttp {};

TEST_F(WebhookHttpMemory, ManyHostileReceiversAtOnceTakeNoMemory) {
  Receiver endless([](Peer& peer) {
    peer.readRequest();
    peer.send("HTTP/1.1 500 X\r\nTransfer-Encoding: chunked\r\n\r\n");
    const std::string chunk = "1000\r\n" + std::string(0x1000, 'x') + "\r\n";
    while (peer.send(chunk)) continue;
  });
  const auto peak = [] {
    rusage usage{};
    getrusage(RUSAGE_SELF, &usage);
    return usage.ru_maxrss;  // KiB
  };
  const auto callTogether = [&](const std::string& url) {
    std::vector<std::future<DeliveryFailed>> calls;
    for (int i = 0; i < 64; ++i) calls.push_back(std::async(std::launch::async, [&] { return failureOf(url); }));
    for (auto& call : calls) {
      const DeliveryFailed failed = testkit::resultOf("a failed delivery", call);
      EXPECT_EQ(failed.status, 500) << failed.reason;
    }
  };
  // The first measurement makes as many calls to a receiver with a short answer: each thread needs memory, megabytes
  // under a sanitizer. The receiver announces the end of its connections: libcurl would keep them, and a late call
  // could take a kept connection in the moment of its end and break with a reset.
  Receiver brief([](Peer& peer) {
    peer.readRequest();
    peer.send("HTTP/1.1 500 X\r\nConnection: close\r\nContent-Length: 0\r\n\r\n");
  });
  callTogether(brief.url());
  const long before = peak();
  callTogether(endless.url());
  EXPECT_LT(peak() - before, 64 * 1024 * kSanitizersShare);
}

}  // namespace
}  // namespace jobq::test
