// Tests of the transport `http` against receivers that hang, drip, flood, lie and break off. Each call ends in time,
// with a reason, and takes very little memory.
#include <algorithm>
#include <future>
#include <string>
#include <vector>

#include "name_server.h"
#include "webhook_fixture.h"
#include "webhook_receiver.h"

namespace jobq::test {
namespace {

using testing::AnyOf;
using testing::StartsWith;

constexpr Millis kShort{300};
constexpr Millis kDripTime{2'000};  // time in which the first bytes of a dripping answer come on any machine
constexpr Millis kSoon{1000};       // the contract says 100 ms
constexpr std::size_t kInFlight = 24 * 1024 * 1024;  // bytes of an unread answer in the buffers of two sockets, at most

/// Sends `drop` every 20 ms until the client leaves: often enough to keep a connection alive.
void drip(Peer& peer, std::string_view drop) {
  while (!peer.leaves(Millis(20)) && peer.send(drop)) continue;
}

/// Sends `piece` at full speed, up to `limit` bytes.
void flood(Peer& peer, std::string_view piece, std::size_t limit, std::atomic<std::size_t>& sent) {
  while (peer.sent() < limit && peer.send(piece)) continue;
  sent = peer.sent();
}

/// Blocks until the receiver of the call has reached the point marked by `reached`.
void awaitPromise(std::promise<void>& reached) {
  auto future = reached.get_future();
  testkit::resultOf("the receiver to have the call", future);
}

/// Listens with a full queue: the SYN of a new connection gets no answer.
class FullListener {
 public:
  FullListener() : FullListener(Listener::loopback(0)) {}
  explicit FullListener(sockaddr_in address) : listener_(0, address) {
    address.sin_port = htons(static_cast<std::uint16_t>(listener_.port()));
    for (int& socket : waiting_) {
      socket = ::socket(AF_INET, SOCK_STREAM | SOCK_NONBLOCK | SOCK_CLOEXEC, 0);
      ::connect(socket, reinterpret_cast<const sockaddr*>(&address), sizeof address);
      sockaddr_in own{};
      socklen_t length = sizeof own;
      ::getsockname(socket, reinterpret_cast<sockaddr*>(&own), &length);
      own_.push_back(inTable(ntohs(own.sin_port)) + inTable(port()));
    }
  }
  ~FullListener() {
    for (const int socket : waiting_) ::close(socket);
  }
  FullListener(const FullListener&) = delete;
  FullListener& operator=(const FullListener&) = delete;
  int port() const { return listener_.port(); }
  std::string url() const { return "http://127.0.0.1:" + std::to_string(port()) + "/"; }
  /// Blocks until a client tries to connect. The number of waiting connections would not tell: the system may connect
  /// the first of the own ones a moment later.
  void awaitNewcomer() const {
    const auto isOwn = [this](const std::string& line) {
      return std::any_of(own_.begin(), own_.end(), [&](const auto& ends) { return line.find(ends) != line.npos; });
    };
    const std::string waiting = inTable(port()) + " 02 ";  // SYN_SENT
    testkit::waitFor("somebody to connect", [&] {
      const auto lines = connectionsWith(waiting);
      return !std::all_of(lines.begin(), lines.end(), isOwn);
    });
  }

 private:
  const Listener listener_;
  int waiting_[4] = {};
  std::vector<std::string> own_;  // the ends of each connection in waiting_, as the system's table has them
};

class WebhookHttpHostile : public WebhookHttp {
 protected:
  void expectLate(const std::string& url, const std::string& reason, Millis timeout = kShort) {
    const testkit::PaceWatch watch;
    EXPECT_EQ(failureOf(url, timeout).reason, reason);
    EXPECT_GE(watch.elapsed(), timeout - Millis(10));
    watch.end("a late delivery", timeout + kSoon);
  }
  /// Requests the stop after `begun` has returned, and expects the call to end soon.
  DeliveryResult stopped(const std::string& url, const std::function<void()>& begun) {
    std::stop_source stop;
    auto result = std::async(std::launch::async, [&] { return deliver(callTo(url), stop.get_token()); });
    begun();
    const testkit::PaceWatch watch;
    stop.request_stop();
    DeliveryResult outcome = testkit::resultOf("the stopped delivery", result);
    watch.end("a stopped delivery", kSoon);
    return outcome;
  }
  void expectStopped(const std::string& url, const std::function<void()>& begun) {
    const DeliveryResult result = stopped(url, begun);
    ASSERT_TRUE(std::holds_alternative<DeliveryFailed>(result));
    EXPECT_EQ(std::get<DeliveryFailed>(result).reason, "the delivery was stopped before an answer came");
  }
};

TEST_F(WebhookHttpHostile, ASilentReceiverIsLate) {
  Receiver silent([](Peer& peer) { peer.hold(); });
  expectLate(silent.url(), "no answer within 300 ms");
}

TEST_F(WebhookHttpHostile, AReceiverLeavingTheBodyUnreadIsLate) {
  std::promise<void> over;
  Receiver deaf([&, ended = over.get_future().share()](Peer&) { ended.wait_for(testkit::kHangDeadline); });
  WebhookCall call = callTo(deaf.url(), kShort);
  call.body = "\"" + std::string(30'000'000, 'x') + "\"";
  const testkit::PaceWatch watch;
  const DeliveryResult result = deliver(call);
  watch.end("a delivery whose body is not read", kShort + kSoon);
  over.set_value();
  ASSERT_TRUE(std::holds_alternative<DeliveryFailed>(result));
  EXPECT_EQ(std::get<DeliveryFailed>(result).reason, "no answer within 300 ms");
}

TEST_F(WebhookHttpHostile, AReceiverNotAcceptingConnectionsIsLate) {
  const FullListener full;
  expectLate(full.url(), "no connection within 300 ms");
}

TEST_F(WebhookHttpHostile, ANameLookupWithoutAnAnswerIsLate) {
  const SilentNameServer names("silent.test");
  expectLate("http://silent.test/", "the name did not resolve within 300 ms");
}

TEST_F(WebhookHttpHostile, ASecondAddressIsTriedWhileThereIsTime) {
  Receiver good([](Peer& peer) {
    peer.readRequest();
    peer.send("HTTP/1.1 200 OK\r\n\r\n");
  });
  sockaddr_in other = Listener::loopback(good.port());
  other.sin_addr.s_addr = htonl(INADDR_LOOPBACK + 1);
  const FullListener full(other);
  const NameServer names("two.test", {"127.0.0.2", "127.0.0.1"});
  EXPECT_EQ(deliveredTo(good.url("/", "two.test"), Millis(10'000)).status, 200);
}

TEST_F(WebhookHttpHostile, ADrippingHeadIsLate) {
  Receiver dripping([](Peer& peer) {
    peer.readRequest();
    peer.send("HTTP/1.1 200 OK\r\nX: ");
    drip(peer, "x");
  });
  expectLate(dripping.url(), "no answer within 300 ms");
}

TEST_F(WebhookHttpHostile, ADrippingBodyIsLate) {
  for (const int status : {200, 500}) {
    Receiver dripping([status](Peer& peer) {
      peer.readRequest();
      peer.send("HTTP/1.1 " + std::to_string(status) + " X\r\nContent-Length: 100000\r\n\r\n");
      drip(peer, "x");
    });
    const testkit::PaceWatch watch;
    const DeliveryFailed failed = failureOf(dripping.url(), kDripTime);
    watch.end("a delivery whose answer drips", kDripTime + kSoon);
    EXPECT_EQ(failed.status, status);
    EXPECT_EQ(failed.reason,
              status == 200 ? "the receiver answered 200, but not completely within 2 s" : "the receiver answered 500");
    EXPECT_THAT(failed.reply, StartsWith("x"));
  }
}

TEST_F(WebhookHttpHostile, AFilmInReplyIsNotWatched) {
  for (const char* framing : {"Content-Length: 104857600\r\n", "Connection: close\r\n"}) {
    for (const int status : {200, 404}) {
      std::atomic<std::size_t> sent{0};
      {
        Receiver talkative([&](Peer& peer) {
          peer.readRequest();
          peer.send("HTTP/1.1 " + std::to_string(status) + " X\r\n" + framing + "\r\n");
          flood(peer, std::string(100'000, 'x'), 100 * 1024 * 1024, sent);
        });
        const DeliveryResult result = deliver(callTo(talkative.url()));
        EXPECT_EQ(std::holds_alternative<Delivered>(result), status == 200);
        const std::string reply(1024, 'x');
        std::visit([&](const auto& outcome) { EXPECT_EQ(outcome.reply, reply); }, result);
        std::visit([&](const auto& outcome) { EXPECT_EQ(outcome.status, status); }, result);
      }
      EXPECT_GT(sent, 0U);
      EXPECT_LT(sent, kInFlight);
    }
  }
}

TEST_F(WebhookHttpHostile, AnEndlessHeadIsLeft) {
  const std::string starts[] = {"HTTP/1.1 200 OK\r\n", "HTTP/1.1 200 OK\r\nX: ", "HTTP/1.1 ",
                                "HTTP/1.1 100 Continue\r\n\r\n"};
  const std::string goesOn[] = {"X-Header: value\r\n", std::string(1000, 'x'), std::string(1000, '2'),
                                "HTTP/1.1 100 Continue\r\n\r\n"};
  for (int kind = 0; kind < 4; ++kind) {
    std::atomic<std::size_t> sent{0};
    {
      Receiver endless([&](Peer& peer) {
        peer.readRequest();
        peer.send(starts[kind]);
        flood(peer, goesOn[kind], 100 * 1024 * 1024, sent);
      });
      const DeliveryFailed failed = failureOf(endless.url());
      EXPECT_THAT(failed.reason, AnyOf("the answer's head is larger than 65536 bytes",
                                       "a line of the answer's head is too long", "the answer is not HTTP"))
          << kind;
      EXPECT_EQ(failed.status, 0);
    }
    EXPECT_LT(sent, kInFlight);
  }
}

TEST_F(WebhookHttpHostile, ATruncatedHeadIsNotAnAnswer) {
  for (const bool reset : {false, true}) {
    for (const std::string head : {"", "HTTP/1.1 20", "HTTP/1.1 200 OK\r\n", "HTTP/1.1 200 OK\r\nContent-Le",
                                   "HTTP/1.1 100 Continue\r\n\r\n", "HTTP/1.1 200 OK\r\nA: b\r\n"}) {
      Receiver broken([&](Peer& peer) {
        peer.readRequest();
        peer.send(head);
        if (reset) peer.reset();
      });
      const DeliveryFailed failed = failureOf(broken.url());
      EXPECT_EQ(failed.status, 0) << head;
      EXPECT_THAT(failed.reason, AnyOf("the receiver closed the connection without an answer", "the answer is not HTTP",
                                       "the receiver closed the connection within the answer's head",
                                       "the connection broke before the answer came: connection reset by peer"))
          << head;
    }
  }
}

TEST_F(WebhookHttpHostile, ATruncatedBodyIsAnAnswer) {
  for (const bool reset : {false, true}) {
    for (const std::string framing :
         {"Content-Length: 1000\r\n\r\nabc", "Transfer-Encoding: chunked\r\n\r\n3\r\nabc\r\n",
          "Transfer-Encoding: chunked\r\n\r\n3\r\nabcnonsense"}) {
      for (const int status : {200, 500}) {
        Receiver broken([&](Peer& peer) {
          peer.readRequest();
          peer.send("HTTP/1.1 " + std::to_string(status) + " X\r\n" + framing);
          if (!reset) return;
          peer.awaitRead();
          peer.reset();
        });
        const DeliveryResult result = deliver(callTo(broken.url()));
        EXPECT_EQ(std::holds_alternative<Delivered>(result), status == 200) << framing;
        std::visit([&](const auto& outcome) { EXPECT_EQ(outcome.status, status); }, result);
      }
    }
  }
}

TEST_F(WebhookHttpHostile, AnEndWithoutAnAnswerIsAFailure) {
  for (const bool reset : {false, true}) {
    Receiver gone([&](Peer& peer) {
      if (reset) peer.reset();
    });
    const DeliveryFailed failed = failureOf(gone.url());
    // A reset may arrive before the transport has noticed the connection.
    EXPECT_THAT(failed.reason, AnyOf("the receiver closed the connection without an answer",
                                     StartsWith("the connection broke "), "connection reset by peer"));
    EXPECT_EQ(failed.status, 0);
  }
}

TEST_F(WebhookHttpHostile, AnEndWhileALargeBodyIsSentRaisesNoSignal) {
  signal(SIGPIPE, SIG_DFL);
  Receiver gone([](Peer& peer) {
    peer.receive();
    peer.reset();
  });
  WebhookCall call = callTo(gone.url());
  call.body = "\"" + std::string(30'000'000, 'x') + "\"";
  for (int i = 0; i < 10; ++i) {
    const DeliveryResult result = deliver(call);
    ASSERT_TRUE(std::holds_alternative<DeliveryFailed>(result));
    EXPECT_THAT(std::get<DeliveryFailed>(result).reason, StartsWith("the connection broke "));
  }
}

TEST_F(WebhookHttpHostile, ARefusalBeforeTheBodyIsHeard) {
  Receiver hasty([](Peer& peer) {
    peer.receive();
    peer.send("HTTP/1.1 413 Too Large\r\nContent-Length: 0\r\n\r\n");
    peer.hold();
  });
  WebhookCall call = callTo(hasty.url());
  call.body = "\"" + std::string(30'000'000, 'x') + "\"";
  const DeliveryResult result = deliver(call);
  ASSERT_TRUE(std::holds_alternative<DeliveryFailed>(result));
  EXPECT_EQ(std::get<DeliveryFailed>(result).reason, "the receiver answered 413");
}

TEST_F(WebhookHttpHostile, AnAnswerOtherThanHttpIsAFailure) {
  for (const std::string bytes :
       {"SSH-2.0-OpenSSH_9.2\r\n", "\x15\x03\x01\x01\x02\x02\x28", "{\"ok\":true}", "HTTP/", "\r\n\r\n",
        "HTTP/1.1 abc\r\n\r\n", "HTTP/7.3 200 OK\r\n\r\n", "ICY 200 OK\r\n\r\n", "RTSP/1.0 200 OK\r\n\r\n"}) {
    Receiver strange([&](Peer& peer) {
      peer.readRequest();
      peer.send(bytes);
    });
    const DeliveryFailed failed = failureOf(strange.url());
    EXPECT_FALSE(failed.reason.empty());
    EXPECT_EQ(failed.status, 0) << bytes;
  }
}

TEST_F(WebhookHttpHostile, OddHeadersDoNoHarm) {
  for (const std::string field :
       {"Content-Length: -5", "Content-Length: 99999999999999999999", "Content-Length: 3\r\nContent-Length: 4",
        "Transfer-Encoding: gzip", "Content-Encoding: gzip", "Set-Cookie: a=b", "Alt-Svc: h2=\":1\"", ": x",
        "Location: http://169.254.169.254/", "Transfer-Encoding: chunked, chunked"}) {
    Receiver odd([&](Peer& peer) {
      peer.readRequest();
      peer.send("HTTP/1.1 200 OK\r\n" + field + "\r\n\r\nabc");
    });
    const DeliveryResult result = deliver(callTo(odd.url()));
    std::visit([&](const auto& outcome) { EXPECT_THAT(outcome.status, AnyOf(0, 200)) << field; }, result);
    EXPECT_EQ(odd.accepted(), 1) << field;
  }
}

TEST_F(WebhookHttpHostile, AStopEndsResolving) {
  const SilentNameServer names("silent.test");
  expectStopped("http://silent.test/", [&] { names.awaitQuestion(); });
}

TEST_F(WebhookHttpHostile, AStopEndsConnecting) {
  const FullListener full;
  expectStopped(full.url(), [&] { full.awaitNewcomer(); });
}

TEST_F(WebhookHttpHostile, AStopEndsTheHandshake) {
  std::promise<void> hello;
  Receiver silent([&](Peer& peer) {
    peer.receive();
    hello.set_value();
    peer.hold();
  });
  const std::string url = "https://127.0.0.1:" + std::to_string(silent.port()) + "/";
  expectStopped(url, [&] { awaitPromise(hello); });
}

TEST_F(WebhookHttpHostile, AStopEndsTheWaitForAHead) {
  std::promise<void> begun;
  Receiver dripping([&](Peer& peer) {
    peer.readRequest();
    peer.send("HTTP/1.1 200 OK\r\nX: ");
    begun.set_value();
    drip(peer, "x");
  });
  expectStopped(dripping.url(), [&] { awaitPromise(begun); });
}

TEST_F(WebhookHttpHostile, AStopDoesNotTakeA2xxBack) {
  std::promise<void> begun;
  Receiver dripping([&](Peer& peer) {
    peer.readRequest();
    peer.send("HTTP/1.1 200 OK\r\nContent-Length: 100000\r\n\r\n");
    for (int i = 0; i < 5; ++i) {
      peer.leaves(Millis(20));
      peer.send("x");
    }
    begun.set_value();
    drip(peer, "x");
  });
  const DeliveryResult result = stopped(dripping.url(), [&] { awaitPromise(begun); });
  ASSERT_TRUE(std::holds_alternative<Delivered>(result)) << std::get<DeliveryFailed>(result).reason;
  EXPECT_EQ(std::get<Delivered>(result).status, 200);
}

TEST_F(WebhookHttpHostile, ATimeoutOfZeroIsOverAtOnce) {
  Receiver silent([](Peer& peer) { peer.hold(); });
  for (const Millis timeout : {Millis(0), Millis(-5)}) {
    const testkit::PaceWatch watch;
    EXPECT_EQ(failureOf(silent.url(), timeout).status, 0);
    watch.end("a delivery without time", kSoon);
  }
}

}  // namespace
}  // namespace jobq::test
