// Tests of the connections that the transport `http` keeps: which calls share one, and a connection that breaks while
// it is kept.

#include <netinet/in.h>
#include <sys/resource.h>
#include <sys/socket.h>

#include <atomic>
#include <cstddef>
#include <filesystem>
#include <fstream>
#include <future>
#include <list>
#include <set>
#include <string>
#include <vector>

#include "name_server.h"
#include "testkit/temporary_folder.h"
#include "webhook_fixture.h"
#include "webhook_receiver.h"

namespace jobq::test {
namespace {

using testing::AnyOf;
using testing::HasSubstr;

constexpr const char* kThanks = "HTTP/1.1 200 OK\r\nContent-Length: 2\r\n\r\nok";

/// Answers every request of the connection.
void thankAlways(Peer& peer) {
  while (!peer.readRequest().empty() && peer.send(kThanks)) continue;
}

/// A receiver that answers the first request of its first connection. `second` continues with the next request of this
/// connection, and all further connections are in the hands of `later`.
class BreakingReceiver {
 public:
  explicit BreakingReceiver(Receiver::Script second, Receiver::Script later = thankAlways)
      : second_(std::move(second)), later_(std::move(later)) {}

  std::string url() const { return receiver_.url(); }
  int connections() const { return receiver_.accepted(); }
  int brokenRequests() const { return broken_; }

 private:
  void serve(Peer& peer) {
    if (connectionsSoFar_++ > 0) return later_(peer);
    peer.readRequest();
    peer.send(kThanks);
    if (peer.readRequest().empty()) return;
    ++broken_;
    second_(peer);
  }

  const Receiver::Script second_;
  const Receiver::Script later_;
  std::atomic<int> connectionsSoFar_ = 0;
  std::atomic<int> broken_ = 0;
  Receiver receiver_{[this](Peer& peer) { serve(peer); }};
};

class WebhookHttpKept : public WebhookHttp {};

TEST_F(WebhookHttpKept, ACallUsesTheConnectionOfTheCallBefore) {
  Receiver server(thankAlways);
  for (int i = 0; i < 5; ++i) EXPECT_EQ(deliveredTo(server.url("/" + std::to_string(i))).reply, "ok");
  EXPECT_EQ(server.accepted(), 1);
}

TEST_F(WebhookHttpKept, AFailureWithACompleteAnswerKeepsTheConnectionToo) {
  Receiver server([](Peer& peer) {
    while (!peer.readRequest().empty() && peer.send("HTTP/1.1 500 X\r\nContent-Length: 0\r\n\r\n")) continue;
  });
  for (int i = 0; i < 3; ++i) EXPECT_EQ(failureOf(server.url()).status, 500);
  EXPECT_EQ(server.accepted(), 1);
}

TEST_F(WebhookHttpKept, AnUnreadAnswerKeepsNoConnection) {
  Receiver server([](Peer& peer) {
    peer.readRequest();
    peer.send("HTTP/1.1 200 OK\r\nContent-Length: 10000000\r\n\r\n" + std::string(10'000'000, 'x'));
    thankAlways(peer);
  });
  for (int i = 0; i < 2; ++i) EXPECT_EQ(deliveredTo(server.url()).reply, std::string(1024, 'x'));
  EXPECT_EQ(server.accepted(), 2);
}

TEST_F(WebhookHttpKept, CallsAtOnceHaveAConnectionEach) {
  constexpr int kThreads = 16;
  Receiver server(thankAlways);
  std::vector<std::future<void>> threads;
  for (int thread = 0; thread < kThreads; ++thread) {
    threads.push_back(std::async(std::launch::async, [&] {
      for (int i = 0; i < 10; ++i) EXPECT_EQ(deliveredTo(server.url()).reply, "ok");
    }));
  }
  for (auto& thread : threads) testkit::resultOf("a thread of deliveries", thread);
  EXPECT_LE(server.accepted(), kThreads);
}

/// Returns the number of connections that this process has opened to the receivers.
std::size_t connectionsTo(const std::set<int>& ports) {
  std::size_t count = 0;
  for (const auto& descriptor : std::filesystem::directory_iterator("/proc/self/fd")) {
    sockaddr_in peer{};
    socklen_t length = sizeof peer;
    const int number = std::stoi(descriptor.path().filename());
    if (::getpeername(number, reinterpret_cast<sockaddr*>(&peer), &length) != 0 || peer.sin_family != AF_INET) continue;
    count += ports.count(ntohs(peer.sin_port));
  }
  return count;
}

TEST_F(WebhookHttpKept, KeptConnectionsHaveASixteenthOfTheDescriptors) {
  constexpr std::size_t kMost = 16;
  rlimit before{};
  ASSERT_EQ(::getrlimit(RLIMIT_NOFILE, &before), 0);
  rlimit low = before;
  low.rlim_cur = kMost * 16;
  ASSERT_EQ(::setrlimit(RLIMIT_NOFILE, &low), 0);
  transport_ = loadTransport("http", {}, ".", true);
  std::list<Receiver> servers;
  std::set<int> ports;
  for (std::size_t i = 0; i < kMost + 8; ++i) ports.insert(servers.emplace_back(thankAlways).port());
  for (const Receiver& server : servers) EXPECT_EQ(deliveredTo(server.url()).status, 200);
  EXPECT_LE(connectionsTo(ports), kMost);
  EXPECT_GE(connectionsTo(ports), kMost / 2) << "connections are kept";
  ::setrlimit(RLIMIT_NOFILE, &before);
}

TEST_F(WebhookHttpKept, ASecondNameOfTheSameAddressHasASeparateConnection) {
  const NameServer one("one.test", {"127.0.0.1"});
  const NameServer two("two.test", {"127.0.0.1"});
  Receiver server(thankAlways);
  for (int i = 0; i < 2; ++i) {
    EXPECT_EQ(deliveredTo(server.url("/", "one.test")).status, 200);
    EXPECT_EQ(deliveredTo(server.url("/", "two.test")).status, 200);
  }
  EXPECT_EQ(server.accepted(), 2);
}

TEST_F(WebhookHttpKept, AConnectionOfTlsServesNoOtherNameAndNoPlainCall) {
  const testkit::TemporaryFolder folder;
  const Identity authority = certify({"", true});
  std::ofstream(folder / "ca.pem") << authority.pem();
  transport_ = loadTransport("http", {{"ca", "ca.pem"}}, folder, true);
  const NameServer one("one.test", {"127.0.0.1"});
  const NameServer two("two.test", {"127.0.0.1"});
  Receiver server(thankAlways, certify({"DNS:one.test"}, &authority));
  EXPECT_EQ(deliveredTo(server.url("/", "one.test")).status, 200);
  EXPECT_EQ(failureOf(server.url("/", "two.test")).reason,
            "the certificate is not trusted: it is for another host name");
  EXPECT_EQ(failureOf("http://one.test:" + std::to_string(server.port()) + "/").status, 0);
  EXPECT_EQ(server.accepted(), 3);
  EXPECT_EQ(deliveredTo(server.url("/", "one.test")).status, 200);
  EXPECT_EQ(server.accepted(), 3);
}

TEST_F(WebhookHttpKept, ATransportWithOtherAuthoritiesSharesNoConnection) {
  const testkit::TemporaryFolder folder;
  const Identity authority = certify({"", true});
  std::ofstream(folder / "ca.pem") << authority.pem();
  const auto trusting = loadTransport("http", {{"ca", "ca.pem"}}, folder, true);
  Receiver server(thankAlways, certify({}, &authority));
  EXPECT_TRUE(std::holds_alternative<Delivered>(trusting->deliver(callTo(server.url()), {})));
  EXPECT_THAT(failureOf(server.url()).reason, HasSubstr("the certificate is not trusted"));
}

// The check of addresses is made when a connection opens. A name that later resolves to a forbidden address has the
// kept connection to the permitted one, and no new connection.
TEST_F(WebhookHttpKept, AKeptConnectionLeadsToTheCheckedAddress) {
  BreakingReceiver server([](Peer& peer) { peer.send(kThanks); });
  const std::string url = "http://moved.test:" + server.url().substr(std::string("http://127.0.0.1:").size());
  {
    const NameServer names("moved.test", {"127.0.0.1"});
    EXPECT_EQ(deliveredTo(url).status, 200);
  }
  const NameServer names("moved.test", {"169.254.169.254"});
  EXPECT_EQ(deliveredTo(url).status, 200);
  EXPECT_EQ(server.connections(), 1);
}

TEST_F(WebhookHttpKept, ANewConnectionAsksForTheNameAgain) {
  BreakingReceiver server([](Peer&) {});
  const std::string url = "http://moved.test:" + server.url().substr(std::string("http://127.0.0.1:").size());
  {
    const NameServer names("moved.test", {"127.0.0.1"});
    EXPECT_EQ(deliveredTo(url).status, 200);
  }
  const NameServer names("moved.test", {"169.254.169.254"});
  EXPECT_THAT(failureOf(url).reason, HasSubstr(" is link-local"));
  EXPECT_EQ(server.connections(), 1);
}

TEST_F(WebhookHttpKept, ABreakOfAKeptConnectionSendsTheCallAgainAtOnce) {
  for (const bool reset : {false, true}) {
    BreakingReceiver server([reset](Peer& peer) {
      if (reset) peer.reset();
    });
    EXPECT_EQ(deliveredTo(server.url()).status, 200);
    EXPECT_EQ(deliveredTo(server.url()).status, 200);
    EXPECT_EQ(server.brokenRequests(), 1);
    EXPECT_EQ(server.connections(), 2);
  }
}

TEST_F(WebhookHttpKept, ABreakOfANewConnectionDoesNotSendTheCallAgain) {
  BreakingReceiver server([](Peer&) {}, [](Peer& peer) { peer.readRequest(); });
  EXPECT_EQ(deliveredTo(server.url()).status, 200);
  EXPECT_THAT(failureOf(server.url()).reason,
              AnyOf("the receiver closed the connection without an answer", HasSubstr("the connection broke ")));
  EXPECT_EQ(server.connections(), 2);
}

TEST_F(WebhookHttpKept, ABreakWithinTheAnswerDoesNotSendTheCallAgain) {
  for (const char* begin :
       {"HTTP/1.1 200 OK\r\n", "HTTP/1.1 200 OK\r\nContent-Length: 2\r\n", "HTTP/1.1 100 Continue\r\n\r\n"}) {
    BreakingReceiver server([begin](Peer& peer) { peer.send(begin); });
    EXPECT_EQ(deliveredTo(server.url()).status, 200);
    EXPECT_EQ(failureOf(server.url()).status, 0);
    EXPECT_EQ(server.connections(), 1) << begin;
  }
}

TEST_F(WebhookHttpKept, ARepeatedCallHasNoMoreTime) {
  BreakingReceiver server([](Peer& peer) { peer.leaves(Millis(200)); }, [](Peer& peer) { peer.hold(); });
  EXPECT_EQ(deliveredTo(server.url()).status, 200);
  const testkit::PaceWatch watch;
  EXPECT_EQ(failureOf(server.url(), Millis(400)).reason, "no answer within 400 ms");
  EXPECT_GE(watch.elapsed(), Millis(390));
  watch.end("a delivery that is sent again without an answer", Millis(550));
}

// Such a receiver waits for the end of the connection, as every caller that keeps none makes it.
TEST_F(WebhookHttpKept, AnAnswerWithoutALengthNeedsNoEnd) {
  const auto answering = [](const std::string& rest) {
    return [rest](Peer& peer) {
      peer.readRequest();
      peer.send("HTTP/1.1 200 OK\r\n" + rest);
      peer.hold();
    };
  };
  // Each call lasts that long: the answers come meanwhile, however late their threads get a processor.
  constexpr Millis kTime(10'000);
  std::vector<std::future<void>> threads;
  for (const char* begin : {"Content-Length: 3\r\n\r\nok", "Transfer-Encoding: chunked\r\n\r\n2\r\nok\r\n"}) {
    threads.push_back(std::async(std::launch::async, [&, begin] {
      Receiver partial(answering(begin));
      EXPECT_EQ(failureOf(partial.url(), kTime).status, 200) << begin;
    }));
  }
  Receiver endless(answering("\r\nok"));
  const Delivered delivered = deliveredTo(endless.url(), kTime);
  EXPECT_EQ(std::to_string(delivered.status) + delivered.reply, "200ok");
  for (auto& thread : threads) testkit::resultOf("a delivery without an end", thread);
}

TEST_F(WebhookHttpKept, ASilentReceiverIsLateOnAKeptConnection) {
  const testkit::TemporaryFolder folder;
  const Identity own = certify({});
  std::ofstream(folder / "ca.pem") << own.pem();
  transport_ = loadTransport("http", {{"ca", "ca.pem"}}, folder, true);
  const Receiver::Script thankOnce = [](Peer& peer) {
    peer.readRequest();
    peer.send(kThanks);
    peer.hold();
  };
  Receiver plain(thankOnce);
  Receiver secure(thankOnce, own);
  for (const Receiver* server : {&plain, &secure}) {
    EXPECT_EQ(deliveredTo(server->url()).status, 200);
    EXPECT_EQ(failureOf(server->url(), Millis(300)).reason, "no answer within 300 ms");
    EXPECT_EQ(server->accepted(), 1);
  }
}

}  // namespace
}  // namespace jobq::test
