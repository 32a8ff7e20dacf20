// http.get and http.post against servers that hang, drip, flood and break off, against forbidden addresses, and under
// an ending job.
#include <cstdlib>
#include <iterator>
#include <mutex>

#include "http_fixture.h"
#include "name_server.h"
#include "webhook_receiver.h"

namespace jobq::test {
namespace {

using testing::AllOf;
using testing::AnyOf;
using testing::EndsWith;
using testing::HasSubstr;
using testing::StartsWith;

constexpr Millis kSoon{1000};  // 50 ms, and 250 ms of grace after a stop
constexpr const char* kBriefly = "{timeout = 0.2}";

class LuaHttpHostile : public LuaHttp {
 protected:
  void expectLate(const std::string& url, const std::string& reason) {
    const testkit::PaceWatch limiter;
    EXPECT_EQ(get(url, kBriefly), reason + " within 200 ms");
    EXPECT_GE(limiter.elapsed(), Millis(190));
    limiter.end("a late http.get", Millis(200) + kSoon);
  }
};

/// A server that sends a first piece and then stays silent. Tests can wait for the client's departure.
class Holding {
 public:
  explicit Holding(std::string first = "")
      : server_([this, first](const TinyRequest& request, const TinyConnection& client) {
          if (request.target == "/free") return client.reply(200, "free");
          client.send(first);
          client.hold();
          std::call_once(wentOnce_, [this] { gone_.set_value(); });
        }) {}
  TinyHttp& server() { return server_; }
  /// Blocks until the server sees the client leave.
  void awaitClientGone() {
    const testkit::PaceWatch limiter;
    auto gone = gone_.get_future();
    testkit::resultOf("the client to leave the server that says nothing", gone);
    limiter.end("a client that goes away", kSoon);
  }

 private:
  std::once_flag wentOnce_;
  std::promise<void> gone_;
  TinyHttp server_;
};

TEST_F(LuaHttpHostile, AnAnswerWithATooLargeLengthIsNotReceived) {
  configure({{"httpBody", "100000"}});
  for (const char* length : {"100001", "99999999999999999999999999"}) {
    Receiver server([length](Peer& peer) {
      peer.readRequest();
      peer.send("HTTP/1.1 200 OK\r\nContent-Length: " + std::string(length) + "\r\n\r\n");
      peer.hold();
    });
    EXPECT_EQ(get(server.url()), "the answer is larger than 100000 bytes (lua.httpBody)");
  }
}

TEST_F(LuaHttpHostile, AnswersTooLargeByDripAreCutOff) {
  configure({{"httpBody", "100000"}});
  for (const std::string head : {"", "Transfer-Encoding: chunked\r\n"}) {
    TinyHttp server([head](const TinyRequest&, const TinyConnection& client) {
      client.send("HTTP/1.1 200 X\r\n" + head + "\r\n");
      const std::string piece(4'096, 'x');
      while (client.send(head.empty() ? piece : "1000\r\n" + piece + "\r\n")) continue;
    });
    EXPECT_EQ(get(server.url()), "the answer is larger than 100000 bytes (lua.httpBody)");
  }
  TinyHttp whole(
      [](const TinyRequest&, const TinyConnection& client) { client.reply(200, std::string(100'000, 'x')); });
  EXPECT_EQ(run("return #http.get(input.url).body", inputOf(whole.url())), "100000");
}

TEST_F(LuaHttpHostile, AnAnswerIsMeasuredDuringDecompression) {
  configure({{"httpBody", "10000"}});
  const std::string packed = [] {  // 100,000 zeros
    std::string bytes("\x1f\x8b\x08\0\0\0\0\0\x02\x03\xed\xc1\x31\x01\0\0\0\xc2\xa0\xf5\x4f\x6d\x0d\x0f\xa0", 26);
    bytes += std::string(93, '\0') + std::string("\x80\x57\x03\x7d\x95\x11\xd4\xa0\x86\x01\0", 11);
    return bytes;
  }();
  TinyHttp server([&](const TinyRequest& request, const TinyConnection& client) {
    client.send("HTTP/1.1 200 X\r\n" + request.target.substr(1) + "-Encoding: gzip\r\n\r\n" + packed);
  });
  EXPECT_EQ(get(server.url("/Transfer")), "the answer is larger than 10000 bytes (lua.httpBody)");
  EXPECT_EQ(run("return #http.get(input.url).body", inputOf(server.url("/Content"))), std::to_string(packed.size()));
}

TEST_F(LuaHttpHostile, HeadsAreBounded) {
  const std::string tooLarge = "the answer's head is larger than 65536 bytes";
  TinyHttp lines([](const TinyRequest&, const TinyConnection& client) {
    client.send("HTTP/1.1 200 X\r\n");
    for (int i = 0; client.send("X-" + std::to_string(i) + ": y\r\n"); ++i) continue;
  });
  EXPECT_EQ(get(lines.url()), tooLarge);
  TinyHttp interim([](const TinyRequest&, const TinyConnection& client) {
    while (client.send("HTTP/1.1 103 X\r\nX: y\r\n\r\n")) continue;
  });
  EXPECT_EQ(get(interim.url()), tooLarge);
  TinyHttp trailers([](const TinyRequest&, const TinyConnection& client) {
    client.send("HTTP/1.1 200 X\r\nTransfer-Encoding: chunked\r\n\r\n0\r\n");
    while (client.send("X: y\r\n")) continue;
  });
  EXPECT_EQ(get(trailers.url()), tooLarge);
  TinyHttp redirects([](const TinyRequest&, const TinyConnection& client) {
    client.reply(302, "", "Location: /\r\nX: " + std::string(20'000, 'x') + "\r\n");
  });
  EXPECT_EQ(get(redirects.url()), tooLarge);
  EXPECT_EQ(redirects.requests().size(), 4U);
  TinyHttp line([](const TinyRequest&, const TinyConnection& client) {
    client.send("HTTP/1.1 200 X\r\nX: ");
    while (client.send(std::string(1'000, 'x'))) continue;
  });
  EXPECT_THAT(get(line.url()), AnyOf(tooLarge, StartsWith("a line of the answer's head is too long")));
}

TEST_F(LuaHttpHostile, SlowServersAreLeftInTime) {
  TinyHttp silent([](const TinyRequest&, const TinyConnection& client) { client.hold(); });
  expectLate(silent.url(), "no answer");
  TinyHttp head([](const TinyRequest&, const TinyConnection& client) {
    client.send("HTTP/1.1 200 X\r\nX-Half: ");
    client.hold();
  });
  expectLate(head.url(), "no answer");
  TinyHttp body([](const TinyRequest&, const TinyConnection& client) {
    client.send("HTTP/1.1 200 X\r\nContent-Length: 5000\r\n\r\nhalf");
    client.hold();
  });
  expectLate(body.url(), "the answer did not end");
  Receiver drip([](Peer& peer) {
    peer.readRequest();
    peer.send("HTTP/1.1 200 OK\r\n\r\n");
    while (!peer.leaves(Millis(20)) && peer.send("x")) continue;
  });
  expectLate(drip.url(), "the answer did not end");
}

TEST_F(LuaHttpHostile, AllRedirectsShareTheTimeLimit) {
  Receiver server([](Peer& peer) {
    peer.readRequest();
    if (!peer.leaves(Millis(60))) peer.send("HTTP/1.1 302 X\r\nLocation: /\r\nContent-Length: 0\r\n\r\n");
    peer.hold();
  });
  expectLate(server.url(), "no answer");
}

TEST_F(LuaHttpHostile, AConnectionAttemptWithoutAnAnswerIsGivenUp) {
  const Listener full(0);  // the queue of connections is full: a further SYN is not answered
  const sockaddr_in address = Listener::loopback(full.port());
  int waiting[4];
  for (int& socket : waiting) {
    socket = ::socket(AF_INET, SOCK_STREAM | SOCK_NONBLOCK | SOCK_CLOEXEC, 0);
    ::connect(socket, reinterpret_cast<const sockaddr*>(&address), sizeof address);
  }
  expectLate("http://127.0.0.1:" + std::to_string(full.port()) + "/", "no connection");
  for (const int socket : waiting) ::close(socket);
}

TEST_F(LuaHttpHostile, ANameLookupWithoutAnAnswerIsGivenUp) {
  const SilentNameServer names("silent.test");
  expectLate("http://silent.test/", "the name did not resolve");
}

TEST_F(LuaHttpHostile, ABrokenAnswerIsAFault) {
  TinyHttp none([](const TinyRequest&, const TinyConnection&) {});
  EXPECT_EQ(get(none.url()), "the server closed the connection without an answer");
  TinyHttp head([](const TinyRequest&, const TinyConnection& client) { client.send("HTTP/1.1 200 X\r\nX: y\r\n"); });
  EXPECT_EQ(get(head.url()), "the server closed the connection within the answer's head");
  TinyHttp body([](const TinyRequest&, const TinyConnection& client) {
    client.send("HTTP/1.1 200 X\r\nContent-Length: 5000\r\n\r\nhalf");
  });
  EXPECT_EQ(get(body.url()), "the server closed the connection within the answer");
  TinyHttp other([](const TinyRequest&, const TinyConnection& client) { client.send("220 mail.test ESMTP\r\n\r\n"); });
  EXPECT_EQ(get(other.url()), "the answer is not HTTP");
  int port = 0;
  {
    port = TinyHttp([](const TinyRequest&, const TinyConnection&) {}).port();
  }
  EXPECT_EQ(get("http://127.0.0.1:" + std::to_string(port) + "/"), "connection refused");
  EXPECT_EQ(get("http://no-such-host.invalid/"), "the name does not resolve");
}

TEST_F(LuaHttpHostile, TrustsOnlyServersWithACertificateOfAnAuthority) {
  Receiver server([](Peer& peer) { peer.readRequest(); }, certify({}));
  EXPECT_THAT(get(server.url()), StartsWith("the certificate is not trusted: "));
  Receiver plain([](Peer& peer) { peer.send("HTTP/1.1 400 X\r\n\r\n"); });
  EXPECT_THAT(get("https" + plain.url().substr(4)), StartsWith("the TLS handshake failed: "));
}

TEST_F(LuaHttpHostile, NeverConnectsToAForbiddenAddress) {
  const NameServer names("metadata.test", {"169.254.169.254"});
  for (const char* host : {"169.254.1.1", "0.0.0.0", "224.0.0.1", "255.255.255.255", "[fe80::1]", "[ff02::1]", "[::]",
                           "[::ffff:169.254.169.254]", "[64:ff9b::a9fe:a9fe]", "2852039166", "0xa9.0xfe.1.1",
                           "0251.0376.1.1", "metadata.test"}) {
    EXPECT_THAT(
        get(std::string("http://") + host + "/"),
        AllOf(StartsWith("the address "), EndsWith(" is link-local, multicast or reserved, which is never allowed")))
        << host;
  }
}

TEST_F(LuaHttpInPublic, NeverConnectsToAPrivateAddress) {
  const NameServer names("inside.test", {"10.0.0.1"});
  TinyHttp server([](const TinyRequest&, const TinyConnection& client) { client.reply(200, "x"); });
  EXPECT_EQ(get(server.url()), "the address is private, which is allowed only with net.allowPrivate = true");
  const std::string port = ":" + std::to_string(server.port()) + "/";
  for (const char* host : {"localhost", "10.0.0.1", "192.168.1.1", "172.16.0.1", "100.64.0.1", "[::1]", "127.1",
                           "2130706433", "0x7f000001", "[::ffff:127.0.0.1]", "[fd00::1]", "inside.test"}) {
    EXPECT_THAT(get("http://" + (host + port)), EndsWith("allowed only with net.allowPrivate = true")) << host;
    EXPECT_THAT(post("http://" + (host + port), "'x'"), EndsWith("allowed only with net.allowPrivate = true")) << host;
  }
  EXPECT_TRUE(server.requests().empty());
}

TEST_F(LuaHttpHostile, PermittedAddressesAmongSeveralAreTried) {
  const NameServer names("both.test", {"169.254.169.254", "127.0.0.1"});
  TinyHttp server([](const TinyRequest&, const TinyConnection& client) { client.reply(200, "x"); });
  EXPECT_THAT(get("http://both.test:" + std::to_string(server.port()) + "/"), HasSubstr("\"status\":200"));
}

TEST_F(LuaHttpHostile, IgnoresProxyVariables) {
  TinyHttp server([](const TinyRequest&, const TinyConnection& client) { client.reply(404, ""); });
  setenv("http_proxy", "http://169.254.1.1:9", 1);
  setenv("ALL_PROXY", "http://169.254.1.1:9", 1);
  EXPECT_THAT(get(server.url()), HasSubstr("\"status\":404"));
  unsetenv("http_proxy");
  unsetenv("ALL_PROXY");
}

TEST_F(LuaHttpHostile, AStopEndsACallAndTheNextJobIsServed) {
  for (const char* first : {"", "HTTP/1.1 200 X\r\nContent-Length: 5000\r\n\r\nhalf"}) {
    Holding slow(first);
    const auto handler = worker("return http.get(input.url).body");
    FakeJobContext job;
    auto running =
        std::async(std::launch::async, [&] { return failureOf(*handler, inputOf(slow.server().url()), job); });
    slow.server().awaitRequest();
    const testkit::PaceWatch limiter;
    job.stop();
    EXPECT_EQ(testkit::resultOf("the job", running), "the job was stopped");
    limiter.end("a stopped http.get", kSoon);
    slow.awaitClientGone();
    FakeJobContext next;
    EXPECT_EQ(handler->run(inputOf(slow.server().url("/free")), next), "\"free\"");
  }
}

TEST_F(LuaHttpHostile, AStopEndsACallDuringANameLookupWithoutAnAnswer) {
  const SilentNameServer names("silent.test");
  FakeJobContext job;
  const auto handler = worker("return http.get(input.url)");
  auto running =
      std::async(std::launch::async, [&] { return failureOf(*handler, inputOf("http://silent.test/"), job); });
  names.awaitQuestion();
  const testkit::PaceWatch limiter;
  job.stop();
  EXPECT_EQ(testkit::resultOf("the job", running), "the job was stopped");
  limiter.end("a stopped http.get", kSoon);
}

TEST_F(LuaHttpHostile, TheDeadlineEndsACallAndTheScriptCannotCatchTheError) {
  Holding slow;
  const auto handler = worker("while true do pcall(http.get, input.url, {timeout = 10}) end");
  FakeJobContext job({.deadline = clock_.now() + Millis(5'000)});
  auto running = std::async(std::launch::async, [&] { return failureOf(*handler, inputOf(slow.server().url()), job); });
  slow.server().awaitRequest();
  clock_.advance(Millis(5'000));
  slow.awaitClientGone();
  EXPECT_EQ(testkit::resultOf("the job", running), kOverTime);
  EXPECT_EQ(slow.server().requests().size(), 1U);
  FakeJobContext next({.deadline = clock_.now() + Millis(5'000)});
  EXPECT_EQ(worker("return http.get(input.url).body")->run(inputOf(slow.server().url("/free")), next), "\"free\"");
}

TEST_F(LuaHttpHostile, AnAnswerCountsAsTheScriptsMemory) {
  configure({{"memory", "2097152"}});
  TinyHttp server([](const TinyRequest& request, const TinyConnection& client) {
    client.reply(200, std::string(std::stoul(request.target.substr(1)), 'x'));
  });
  const auto handler = worker("return #http.get(input.url).body");
  FakeJobContext job;
  EXPECT_EQ(failureOf(*handler, inputOf(server.url("/3000000")), job),
            "not enough memory: a script has 2 MB (lua.memory)");
  EXPECT_EQ(handler->run(inputOf(server.url("/1000000")), job), "1000000");
}

auto descriptors() { return std::distance(std::filesystem::directory_iterator("/proc/self/fd"), {}); }

TEST_F(LuaHttpHostile, LeavesNoDescriptorBehind) {
  configure({{"httpBody", "1024"}});
  const auto every = worker(
      "for _, path in ipairs{'fine', 'away', 'large', 'slow'} do http.get(input.url .. path, {timeout = 0.02}) end "
      "http.get('http://169.254.1.1/') return 0");
  const auto endless = worker("return http.get(input.url .. 'slow')");
  const auto callOften = [&](int times) {
    TinyHttp server([](const TinyRequest& request, const TinyConnection& client) {
      if (request.target == "/fine") return client.reply(200, "fine");
      if (request.target == "/away") return client.redirect("/fine");
      if (request.target == "/large") return client.reply(200, std::string(5'000, 'x'));
      client.hold();
    });
    for (int i = 0; i < times; ++i) {
      FakeJobContext job;
      EXPECT_EQ(every->run(inputOf(server.url()), job), "0");
      job.stop();
      EXPECT_EQ(failureOf(*endless, inputOf(server.url()), job), "the job was stopped");
    }
  };
  callOften(1);  // opens the descriptors kept for later calls
  const auto before = descriptors();
  callOften(5);
  EXPECT_EQ(descriptors(), before);
}

}  // namespace
}  // namespace jobq::test
