// Transfers of http_client against web servers of the test: the kinds of faults, and the members of a request that only
// some plugins use. The tests of the three plugins have the rest.
#include "http_client/transfer.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <atomic>
#include <future>
#include <stdexcept>
#include <stop_token>
#include <string>
#include <utility>

#include "testkit/wait_for.h"
#include "tiny_http.h"
#include "transfer_requests.h"
#include "webhook_receiver.h"

namespace jobq::test {
namespace {

using http_client::FaultKind;
using http_client::Method;
using http_client::Outcome;
using http_client::Request;
using http_client::transfer;
using testing::HasSubstr;
using testing::Not;
using testing::StartsWith;

FaultKind faultOf(const Request& request) {
  const Outcome outcome = transfer(request, {});
  EXPECT_TRUE(outcome.fault) << "answered " << outcome.answer.status;
  return outcome.fault ? outcome.fault->kind : FaultKind::other;
}

TEST(HttpClient, SendsEachMethod) {
  TinyHttp server(saying("ok"));
  for (const Method method : {Method::get, Method::post, Method::put}) {
    Request request = requestTo(server.url("/a"));
    request.method = method;
    request.body = "body";
    request.headers = {{"X-One", "1"}};
    const Outcome outcome = transfer(request, {});
    EXPECT_FALSE(outcome.fault);
    EXPECT_EQ(outcome.answer.body, "ok");
  }
  ASSERT_EQ(server.requests().size(), 3U);
  EXPECT_EQ(server.requests()[0].method + server.requests()[0].body, "GET");
  EXPECT_EQ(server.requests()[1].method + server.requests()[1].body, "POSTbody");
  EXPECT_EQ(server.requests()[2].method + server.requests()[2].body, "PUTbody");
  for (const TinyRequest& request : server.requests()) {
    EXPECT_THAT(request.head, HasSubstr("\r\nX-One: 1\r\n"));
    EXPECT_THAT(request.head, HasSubstr("\r\nUser-Agent: test/1\r\n"));
    EXPECT_THAT(request.head, Not(HasSubstr("Content-Type")));
  }
}

TEST(HttpClient, TellsEachKindOfFault) {
  TinyHttp server([](const TinyRequest& request, const TinyConnection& client) {
    if (request.target == "/loop") return client.redirect("/loop");
    if (request.target == "/file") return client.redirect("file:///etc/passwd");
    if (request.target == "/large") return client.reply(200, std::string(101, 'x'));
    client.hold();
  });
  EXPECT_EQ(faultOf(requestTo("http:/h")), FaultKind::badUrl);
  EXPECT_EQ(faultOf(requestTo("http://169.254.169.254/")), FaultKind::addressRefused);
  EXPECT_EQ(faultOf(requestTo(server.url("/large"))), FaultKind::bodyTooLarge);
  Request request = requestTo(server.url("/loop"));
  request.maxRedirects = 2;
  EXPECT_EQ(faultOf(request), FaultKind::tooManyRedirects);
  EXPECT_EQ(server.requests().size(), 4U);
  request.url = server.url("/file");
  EXPECT_EQ(faultOf(request), FaultKind::badRedirect);
  request.url = server.url("/slow");
  request.timeout = Millis(50);
  EXPECT_EQ(faultOf(request), FaultKind::late);
  request.headers = {{"X", "a\r\nb"}};
  EXPECT_EQ(faultOf(request), FaultKind::badHeader);
}

TEST(HttpClient, AnUnfollowedRedirectIsAnAnswer) {
  TinyHttp server([](const TinyRequest&, const TinyConnection& client) {
    client.reply(302, "over there", "Location: http://me:hunter2@other.test:81/x?hunter3\r\n");
  });
  const Outcome outcome = transfer(requestTo(server.url()), {});
  EXPECT_FALSE(outcome.fault);
  EXPECT_EQ(outcome.answer.status, 302);
  EXPECT_EQ(outcome.answer.body, "over there");
  EXPECT_EQ(outcome.redirectHost, "other.test");
}

TEST(HttpClient, AnswersWithEnoughAreNoFault) {
  TinyHttp server([](const TinyRequest&, const TinyConnection& client) {
    client.send("HTTP/1.1 200 X\r\n\r\n");
    while (client.send(std::string(1'000, 'x'))) continue;
  });
  Request request = requestTo(server.url());
  request.bodyBounds = {10, 5'000};
  const Outcome outcome = transfer(request, {});
  EXPECT_FALSE(outcome.fault);
  EXPECT_EQ(outcome.answer.body, "xxxxxxxxxx");
}

TEST(HttpClient, NamesTheOtherSideInTheCallersWord) {
  TinyHttp server([](const TinyRequest&, const TinyConnection&) {});
  Request request = requestTo(server.url());
  request.peer = "storage";
  EXPECT_EQ(transfer(request, {}).fault.value().reason, "the storage closed the connection without an answer");
}

TEST(HttpClient, TrustsTheAuthoritiesOfTheRequest) {
  const Identity authority = certify({"", true});
  Receiver server(
      [](Peer& peer) {
        peer.readRequest();
        peer.send("HTTP/1.1 200 OK\r\nContent-Length: 0\r\n\r\n");
      },
      certify({}, &authority));
  const std::string pem = authority.pem();
  Request request = requestTo(server.url());
  EXPECT_THAT(transfer(request, {}).fault.value().reason, StartsWith("the certificate is not trusted: "));
  request.authorities = pem;
  EXPECT_EQ(transfer(request, {}).answer.status, 200);
}

TEST(HttpClient, SignsARequest) {
  TinyHttp server(saying(""));
  Request request = requestTo(server.url("/bucket/a%20b/../c"));
  request.method = Method::put;
  request.body = "abc";
  request.headers = {{"Content-Type", "image/png"}};
  request.signature = http_client::AwsSignature{"id", "hunter2", "eu-north-1"};
  EXPECT_EQ(transfer(request, {}).answer.status, 200);
  const TinyRequest sent = server.requests().at(0);
  EXPECT_EQ(sent.target, "/bucket/a%20b/../c");
  EXPECT_THAT(sent.head, HasSubstr("\r\nx-amz-content-sha256: "
                                   "ba7816bf8f01cfea414140de5dae2223b00361a396177a9cb410ff61f20015ad\r\n"));
  EXPECT_THAT(sent.head, HasSubstr("/eu-north-1/s3/aws4_request"));
  EXPECT_THAT(sent.head, Not(HasSubstr("hunter2")));
}

TEST(HttpClient, AStopEndsATransferAndNoneBegins) {
  TinyHttp server([](const TinyRequest&, const TinyConnection& client) { client.hold(); });
  std::stop_source stop;
  auto running =
      std::async(std::launch::async, [&] { return transfer(requestTo(server.url()), stop.get_token()).fault; });
  server.awaitRequest();
  stop.request_stop();
  EXPECT_EQ(testkit::resultOf("the stopped transfer", running).value().kind, FaultKind::stopped);
  EXPECT_EQ(transfer(requestTo(server.url()), stop.get_token()).fault.value().kind, FaultKind::stopped);
  EXPECT_EQ(server.requests().size(), 1U);
}

/// Asks for the end at a call after the given number of calls, by a result or by an exception.
class CountedCheck final : public http_client::CancelCheck {
 public:
  CountedCheck(int calls, bool throws) : left_(calls), throws_(throws) {}
  bool isOver() override {
    if (left_-- > 0) return false;
    if (throws_) throw std::runtime_error("over");
    return true;
  }

 private:
  int left_;
  const bool throws_;
};

TEST(HttpClient, ACheckEndsATransfer) {
  TinyHttp server([](const TinyRequest&, const TinyConnection& client) { client.hold(); });
  CountedCheck check(3, false);
  EXPECT_EQ(transfer(requestTo(server.url()), {}, &check).fault.value().kind, FaultKind::stopped);
  CountedCheck throwing(3, true);
  EXPECT_THROW(transfer(requestTo(server.url()), {}, &throwing), std::runtime_error);
}

}  // namespace
}  // namespace jobq::test
