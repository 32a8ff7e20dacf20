// Tests of the transport `http`: the requests, the handling of each answer, and the refused addresses.

#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <system_error>

#include "name_server.h"
#include "testkit/no_descriptors.h"
#include "testkit/temporary_folder.h"
#include "tiny_http.h"
#include "webhook_fixture.h"
#include "webhook_receiver.h"

namespace jobq::test {
namespace {

using testing::AllOf;
using testing::EndsWith;
using testing::HasSubstr;
using testing::Not;
using testing::StartsWith;

TinyHttp::Answer always(int status, const std::string& body = "", const std::string& headers = "") {
  return [=](const TinyRequest&, const TinyConnection& client) { client.reply(status, body, headers); };
}

/// Makes a receiver that reads the request and then sends `bytes` without any addition.
Receiver::Script saying(const std::string& bytes) {
  return [bytes](Peer& peer) {
    peer.readRequest();
    peer.send(bytes);
  };
}

/// Sets an environment variable for a scope.
class Variable {
 public:
  Variable(const char* name, const std::string& value) : name_(name) { setenv(name, value.c_str(), 1); }
  ~Variable() { unsetenv(name_); }
  Variable(const Variable&) = delete;
  Variable& operator=(const Variable&) = delete;

 private:
  const char* const name_;
};

TEST_F(WebhookHttp, ALackOfDescriptorsIsNoFailureOfTheReceiver) {
  TinyHttp server(always(200));
  const WebhookCall call = callTo(server.url("/a"));
  ASSERT_TRUE(std::holds_alternative<Delivered>(deliver(call)));  // makes the first calls of libcurl
  std::error_code error;
  const testkit::NoDescriptors none;
  try {
    (void)deliver(call);
  } catch (const std::system_error& fault) {
    error = fault.code();
  }
  none.restore();
  EXPECT_EQ(error, std::errc::too_many_files_open);
}

TEST_F(WebhookHttp, PostsTheBodyAsJsonWithTheCallsHeaders) {
  TinyHttp server(always(200));
  WebhookCall call = callTo(server.url("/a/../b//c%20d?x=1&y=%zz#gone"));
  call.headers = {{"webhook-id", "j.1"}, {"webhook-signature", "v1,a= v1,b="}, {"x-empty", ""}};
  ASSERT_TRUE(std::holds_alternative<Delivered>(deliver(call)));
  ASSERT_EQ(server.requests().size(), 1U);
  const TinyRequest request = server.requests()[0];
  EXPECT_THAT(request.head, StartsWith("POST /a/../b//c%20d?x=1&y=%zz HTTP/1.1\r\n"));
  for (const char* line : {"Content-Type: application/json", "Content-Length: 10", "webhook-id: j.1",
                           "webhook-signature: v1,a= v1,b=", "x-empty:"}) {
    EXPECT_THAT(request.head, HasSubstr(std::string("\r\n") + line + "\r\n"));
  }
  for (const char* name : {"Connection", "Expect", "Cookie", "Authorization", "Transfer-Encoding", "Proxy"}) {
    EXPECT_THAT(request.head, Not(HasSubstr(name)));
  }
  EXPECT_EQ(request.body, R"({"id":"a"})");
}

TEST_F(WebhookHttp, SendsALargeBodyWithoutAskingFirst) {
  TinyHttp server(always(200));
  WebhookCall call = callTo(server.url());
  call.body = "\"" + std::string(3'000'000, 'x') + "\"";
  ASSERT_TRUE(std::holds_alternative<Delivered>(deliver(call)));
  EXPECT_THAT(server.requests()[0].head, Not(HasSubstr("Expect")));
  EXPECT_EQ(server.requests()[0].body.size(), call.body.size());
}

TEST_F(WebhookHttp, RefusesHeadersWithForbiddenCharacters) {
  TinyHttp server(always(200));
  const std::string nul("a\0b", 3);
  const std::pair<std::string, std::string> bad[] = {
      {"x", "hunter2\r\nhost: b"}, {"x", "a\nb"}, {"x", nul}, {"x\r\ny", "a"}, {"x: y", "a"}, {"", "a"}};
  for (const auto& header : bad) {
    WebhookCall call = callTo(server.url());
    call.headers = {header};
    const DeliveryResult result = deliver(call);
    ASSERT_TRUE(std::holds_alternative<DeliveryFailed>(result)) << header.first;
    EXPECT_EQ(std::get<DeliveryFailed>(result).reason, "a header of the call has characters that HTTP forbids");
  }
  EXPECT_TRUE(server.requests().empty());
}

TEST_F(WebhookHttp, LogsInWithTheUrlsUserAndNeverShowsTheUser) {
  TinyHttp server(always(403, "no"));
  const auto failed = failureOf("http://me:hunter%32@127.0.0.1:" + std::to_string(server.port()) + "/?token=hunter3");
  EXPECT_EQ(failed.reason, "the receiver answered 403");
  EXPECT_EQ(failed.status, 403);
  EXPECT_THAT(server.requests()[0].head, HasSubstr("\r\nAuthorization: Basic bWU6aHVudGVyMg==\r\n"));
  EXPECT_THAT(server.requests()[0].target, "/?token=hunter3");
}

TEST_F(WebhookHttp, Any2xxIsASuccess) {
  for (const int status : {200, 201, 202, 206, 226, 299}) {
    TinyHttp server(always(status, "thanks"));
    const Delivered delivered = deliveredTo(server.url());
    EXPECT_EQ(delivered.status, status);
    EXPECT_EQ(delivered.reply, "thanks");
  }
  Receiver empty(saying("HTTP/1.1 204 No Content\r\n\r\n"));
  EXPECT_EQ(deliveredTo(empty.url()).status, 204);
}

TEST_F(WebhookHttp, AnyOtherStatusIsAFailureWithItsReply) {
  for (const int status : {101, 300, 304, 400, 401, 404, 410, 417, 429, 500, 503, 599}) {
    TinyHttp server(always(status, "sorry"));
    const DeliveryFailed failed = failureOf(server.url());
    EXPECT_EQ(failed.reason, "the receiver answered " + std::to_string(status));
    EXPECT_EQ(failed.status, status);
    EXPECT_EQ(failed.reply, status == 304 ? "" : "sorry");
    EXPECT_EQ(server.requests().size(), 1U);
  }
}

TEST_F(WebhookHttp, RedirectsAreFailuresAndNotFollowed) {
  TinyHttp other(always(200));
  for (const int status : {301, 302, 303, 307, 308}) {
    TinyHttp server(always(
        status, "over there",
        "Location: http://me:hunter2@localhost:" + std::to_string(other.port()) + "/hunter3?hunter4#hunter5\r\n"));
    const DeliveryFailed failed = failureOf(server.url());
    EXPECT_EQ(failed.reason,
              "the receiver answered with a redirect to localhost, which is not followed: give the final address");
    EXPECT_EQ(failed.status, status);
    EXPECT_EQ(failed.reply, "over there");
  }
  EXPECT_TRUE(other.requests().empty());
}

TEST_F(WebhookHttp, ARedirectToNowhereIsOneToo) {
  for (const std::string location :
       {"", "Location: \r\n", "Location: file:///etc/passwd\r\n", "Location: http://\r\n"}) {
    TinyHttp server(always(302, "", location));
    EXPECT_THAT(failureOf(server.url()).reason,
                AllOf(StartsWith("the receiver answered with a redirect"), Not(HasSubstr("etc")),
                      EndsWith("not followed: give the final address")));
  }
}

TEST_F(WebhookHttp, InterimAnswersAreNotTheAnswer) {
  Receiver good(
      saying("HTTP/1.1 100 Continue\r\n\r\nHTTP/1.1 103 Early Hints\r\nLink: a\r\n\r\n"
             "HTTP/1.1 201 Created\r\nContent-Length: 2\r\n\r\nok"));
  EXPECT_EQ(deliveredTo(good.url()).reply, "ok");
  Receiver alone(saying("HTTP/1.1 102 Processing\r\n\r\n"));
  EXPECT_EQ(failureOf(alone.url()).status, 0);
}

TEST_F(WebhookHttp, ReadsEveryFramingOfAnAnswer) {
  Receiver chunked(
      saying("HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n3\r\nabc\r\n1;x=y\r\nd\r\n0\r\nt: u\r\n\r\n"));
  EXPECT_EQ(deliveredTo(chunked.url()).reply, "abcd");
  Receiver untilEnd(saying("HTTP/1.1 200 OK\r\n\r\nabcd"));
  EXPECT_EQ(deliveredTo(untilEnd.url()).reply, "abcd");
  Receiver old(saying("HTTP/1.0 200 OK\r\nContent-Length: 4\r\n\r\nabcd"));
  EXPECT_EQ(deliveredTo(old.url()).reply, "abcd");
  Receiver bare(saying("HTTP/1.1 200\r\nContent-Length: 0\r\n\r\n"));
  EXPECT_EQ(deliveredTo(bare.url()).status, 200);
}

TEST_F(WebhookHttp, ReportsTheErrorOfTheNetwork) {
  int unused = 0;
  {
    const Listener listener;
    unused = listener.port();
  }
  EXPECT_EQ(failureOf("http://127.0.0.1:" + std::to_string(unused) + "/hook").reason, "connection refused");
  EXPECT_EQ(failureOf("http://nobody.test/").reason, "the name does not resolve");
  EXPECT_EQ(failureOf("ftp://127.0.0.1/").reason, "the URL is not an absolute http or https URL with a host");
}

TEST_F(WebhookHttp, AmbiguousUrlsAreRefused) {
  TinyHttp server(always(200));
  const std::string host = "127.0.0.1:" + std::to_string(server.port()) + "/";
  for (const char* start : {"http:", "http:/", "http:///", "http:////", "http://\\", "http:\\\\", "", "//", " http://",
                            "http:// ", "http://\t", "http://a\\@", "http://a b@"}) {
    EXPECT_EQ(failureOf(start + host).reason, "the URL is not an absolute http or https URL with a host") << start;
  }
  EXPECT_TRUE(server.requests().empty());
}

TEST_F(WebhookHttp, NeverConnectsToAForbiddenAddress) {
  for (const char* host :
       {"169.254.169.254", "169.254.0.1", "0.0.0.0", "0", "224.0.0.1", "255.255.255.255", "[fe80::1]", "[::]",
        "[ff02::1]", "[::ffff:169.254.169.254]", "[64:ff9b::a9fe:a9fe]", "[2002:a9fe:a9fe::]", "2852039166",
        "0xa9fea9fe", "0xa9.0xfe.1.1", "0251.0376.0.1", "169.254.257"}) {
    const DeliveryFailed failed = failureOf(std::string("http://") + host + ":9/");
    EXPECT_THAT(failed.reason, AllOf(StartsWith("the address "),
                                     EndsWith(" is link-local, multicast or reserved, which is never allowed")))
        << host;
    EXPECT_EQ(failed.status, 0);
  }
  EXPECT_THAT(failureOf("https://2852039166/").reason, StartsWith("the address 169.254.169.254 is link-local"));
}

TEST_F(WebhookHttpInPublic, NeverConnectsToAPrivateAddressUnlessAllowed) {
  const Listener listener;
  for (const char* host :
       {"127.0.0.1", "localhost", "10.0.0.1", "192.168.1.1", "172.16.0.1", "100.64.0.1", "[::1]", "[fc00::1]", "127.1",
        "2130706433", "0x7f000001", "017700000001", "0x7f.1", "[::ffff:127.0.0.1]", "[::ffff:7f00:1]", "LOCALHOST"}) {
    const std::string url = std::string("http://") + host + ":" + std::to_string(listener.port()) + "/";
    EXPECT_THAT(failureOf(url).reason, EndsWith(" is private, which is allowed only with net.allowPrivate = true"))
        << host;
  }
  pollfd came{listener.socket(), POLLIN, 0};
  EXPECT_EQ(::poll(&came, 1, 0), 0);
}

TEST_F(WebhookHttpInPublic, JudgesTheResolvedAddress) {
  const NameServer names("inside.test", {"10.1.2.3", "::1"});
  EXPECT_THAT(failureOf("http://inside.test/").reason, HasSubstr(" is private"));
  EXPECT_THAT(failureOf("https://inside.test/").reason, HasSubstr(" is private"));
}

TEST_F(WebhookHttp, JudgesTheResolvedAddress) {
  TinyHttp server(always(200));
  const std::string port = std::to_string(server.port());
  {
    const NameServer names("cloud.test", {"169.254.169.254"});
    EXPECT_THAT(failureOf("http://cloud.test:" + port + "/").reason, HasSubstr("169.254.169.254 is link-local"));
  }
  {
    const NameServer names("mixed.test", {"169.254.169.254", "127.0.0.1"});
    EXPECT_EQ(deliveredTo("http://mixed.test:" + port + "/").status, 200);
  }
  ASSERT_EQ(server.requests().size(), 1U);
  EXPECT_THAT(server.requests()[0].head, HasSubstr("\r\nHost: mixed.test:" + port + "\r\n"));
}

TEST_F(WebhookHttp, AsksTheNameAgainForEachCall) {
  TinyHttp server(always(200));
  const std::string url = "http://moved.test:" + std::to_string(server.port()) + "/";
  {
    const NameServer names("moved.test", {"127.0.0.1"});
    EXPECT_EQ(deliveredTo(url).status, 200);
  }
  const NameServer names("moved.test", {"169.254.169.254"});
  EXPECT_THAT(failureOf(url).reason, HasSubstr("169.254.169.254 is link-local"));
}

TEST_F(WebhookHttp, TakesNoOrdersFromTheEnvironment) {
  TinyHttp proxy(always(200));
  TinyHttp server(always(200));
  const testkit::TemporaryFolder folder;
  std::ofstream(folder / ".netrc") << "machine 127.0.0.1 login me password hunter2\n";
  std::ofstream(folder / ".curlrc") << "proxy = " << proxy.url() << "\n";
  {
    const char* home = std::getenv("HOME");
    const std::string before = home == nullptr ? "" : home;
    const Variable http("http_proxy", proxy.url());
    const Variable secure("https_proxy", proxy.url());
    const Variable secureToo("HTTPS_PROXY", proxy.url());
    const Variable all("ALL_PROXY", proxy.url());
    const Variable allToo("all_proxy", proxy.url());
    setenv("HOME", folder.path().c_str(), 1);
    EXPECT_EQ(deliveredTo(server.url()).status, 200);
    Receiver gone([](Peer& peer) { peer.receive(); });
    EXPECT_THAT(failureOf("https://127.0.0.1:" + std::to_string(gone.port()) + "/").reason,
                StartsWith("the TLS handshake failed"));
    EXPECT_EQ(gone.accepted(), 1);
    setenv("HOME", before.c_str(), 1);
  }
  EXPECT_TRUE(proxy.requests().empty());
  ASSERT_EQ(server.requests().size(), 1U);
  EXPECT_THAT(server.requests()[0].head, Not(HasSubstr("Authorization")));
}

}  // namespace
}  // namespace jobq::test
