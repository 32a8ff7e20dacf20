// Tests of core/http/transport/blocking_request.h: requests of Poco's server, here with streams in memory.
#include "core/http/transport/blocking_request.h"

#include <Poco/Net/HTTPServerParams.h>
#include <Poco/Net/SocketAddress.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <array>
#include <future>
#include <istream>
#include <memory>
#include <sstream>
#include <string>
#include <utility>

#include "testkit/wait_for.h"

namespace jobq {
namespace {

using Poco::Net::HTTPRequest;
using Sending = RequestExtension::Sending;

class MemoryResponse final : public Poco::Net::HTTPServerResponse {
 public:
  MemoryResponse() { setVersion(HTTP_1_1); }
  void sendContinue() override {}
  std::ostream& send() override {
    isSent_ = true;
    return text;
  }
  void sendFile(const std::string&, const std::string&) override {}
  void sendBuffer(const void*, std::size_t) override {}
  void redirect(const std::string&, HTTPStatus) override {}
  void requireAuthentication(const std::string&) override {}
  bool sent() const override { return isSent_; }

  std::ostringstream text;

 private:
  bool isSent_ = false;
};

class MemoryRequest final : public Poco::Net::HTTPServerRequest {
 public:
  MemoryRequest(const std::string& body, Poco::Net::HTTPServerResponse& response) : body_(body), response_(response) {
    setMethod(HTTP_POST);
    setVersion(HTTP_1_1);
  }
  std::istream& stream() override { return body_; }
  const Poco::Net::SocketAddress& clientAddress() const override { return address_; }
  const Poco::Net::SocketAddress& serverAddress() const override { return address_; }
  const Poco::Net::HTTPServerParams& serverParams() const override { return *params_; }
  Poco::Net::HTTPServerResponse& response() const override { return response_; }
  bool secure() const override { return false; }

 private:
  std::istringstream body_;
  Poco::Net::HTTPServerResponse& response_;
  Poco::Net::SocketAddress address_;
  Poco::Net::HTTPServerParams::Ptr params_ = new Poco::Net::HTTPServerParams;
};

class BlockingRequestTest : public testing::Test {
 protected:
  /// Reads the whole body of `bytes` through the extension.
  static std::string readAll(RequestExtension& request, std::uint64_t limit) {
    std::string body;
    std::array<char, 4> piece;
    while (const std::size_t got = request.readBody(piece.data(), piece.size(), limit)) body.append(piece.data(), got);
    return body;
  }

  ThreadWaits waits_;
  MemoryResponse response_;
};

TEST_F(BlockingRequestTest, ABodyWithALengthIsReadWhole) {
  MemoryRequest request("0123456789", response_);
  request.setContentLength64(10);
  BlockingRequest blocking(request, response_, waits_);
  EXPECT_EQ(readAll(blocking, 5), "0123456789") << "the pipeline judges an announced length before";
  EXPECT_TRUE(blocking.bodyResult());
  blocking.discardBody();
  EXPECT_TRUE(response_.getKeepAlive());
}

TEST_F(BlockingRequestTest, ABodyThatEndsEarlyIsRefused) {
  MemoryRequest request("0123", response_);
  request.setContentLength64(10);
  BlockingRequest blocking(request, response_, waits_);
  EXPECT_EQ(readAll(blocking, 100), "0123");
  ASSERT_FALSE(blocking.bodyResult());
  EXPECT_EQ(blocking.bodyResult().failure().status, 400);
}

TEST_F(BlockingRequestTest, AChunkedBodyOverTheLimitIsRefused) {
  MemoryRequest request("0123456789", response_);
  request.setChunkedTransferEncoding(true);
  BlockingRequest blocking(request, response_, waits_);
  EXPECT_EQ(readAll(blocking, 9), "012345678");
  ASSERT_FALSE(blocking.bodyResult());
  EXPECT_EQ(blocking.bodyResult().failure().status, 413);
}

TEST_F(BlockingRequestTest, AChunkedBodyOfTheLimitIsRead) {
  MemoryRequest request("0123456789", response_);
  request.setChunkedTransferEncoding(true);
  BlockingRequest blocking(request, response_, waits_);
  EXPECT_EQ(readAll(blocking, 10), "0123456789");
  EXPECT_TRUE(blocking.bodyResult());
  blocking.discardBody();
  EXPECT_FALSE(response_.getKeepAlive()) << "Poco may take the rest of malformed chunks for a request";
}

TEST_F(BlockingRequestTest, AnUnreadBodyEndsTheConnection) {
  MemoryRequest request("0123", response_);
  request.setContentLength64(4);
  BlockingRequest blocking(request, response_, waits_);
  blocking.discardBody();
  EXPECT_FALSE(response_.getKeepAlive());
}

TEST_F(BlockingRequestTest, TheOwnerOfTheConnectionStaysWithTheRequest) {
  struct Owner final : ConnectionOwner {
    bool needsConnection() const noexcept override { return false; }
    void noteFormer(const ConnectionOwner&) const noexcept override {}
    void noteEnd(ConnectionEnd) const noexcept override {}
  };
  MemoryRequest request("", response_);
  std::weak_ptr<const ConnectionOwner> kept;
  {
    BlockingRequest blocking(request, response_, waits_);
    auto owner = std::make_shared<const Owner>();
    kept = owner;
    blocking.setOwner(std::move(owner));
    EXPECT_FALSE(kept.expired());
  }
  EXPECT_TRUE(kept.expired());
}

TEST_F(BlockingRequestTest, AnAnswerOfAClosingServerEndsTheConnection) {
  MemoryRequest request("", response_);
  waits_.isClosing = true;
  BlockingRequest blocking(request, response_, waits_);
  blocking.discardBody();
  EXPECT_FALSE(response_.getKeepAlive());
}

TEST_F(BlockingRequestTest, ATextLeavesWithItsLength) {
  MemoryRequest request("", response_);
  BlockingRequest blocking(request, response_, waits_);
  EXPECT_EQ(blocking.sendText("ignored", "constant"), Sending::sent);
  EXPECT_EQ(response_.text.str(), "constant");
  EXPECT_EQ(response_.getContentLength64(), 8);
}

TEST_F(BlockingRequestTest, AnAnswerToHeadHasTheLengthWithoutTheBody) {
  MemoryRequest request("", response_);
  request.setMethod(HTTPRequest::HTTP_HEAD);
  BlockingRequest blocking(request, response_, waits_);
  EXPECT_EQ(blocking.sendText("text", {}), Sending::sent);
  EXPECT_EQ(response_.text.str(), "");
  EXPECT_EQ(response_.getContentLength64(), 4);
}

TEST_F(BlockingRequestTest, PartsAreChunksExceptInHttp10) {
  for (const bool isOld : {false, true}) {
    MemoryResponse response;
    MemoryRequest request("", response);
    if (isOld) request.setVersion(HTTPRequest::HTTP_1_0);
    BlockingRequest blocking(request, response, waits_);
    EXPECT_EQ(blocking.sendPart("one", false), Sending::sent);
    EXPECT_EQ(blocking.sendPart("", false), Sending::sent);
    EXPECT_EQ(blocking.sendPart("two", true), Sending::sent);
    EXPECT_EQ(response.text.str(), "onetwo");
    EXPECT_EQ(response.getChunkedTransferEncoding(), !isOld);
  }
}

TEST_F(BlockingRequestTest, ABrokenStreamIsNoted) {
  MemoryRequest request("", response_);
  BlockingRequest blocking(request, response_, waits_);
  response_.text.setstate(std::ios::badbit);
  EXPECT_EQ(blocking.sendText("text", {}), Sending::broken);
  EXPECT_FALSE(response_.getKeepAlive());
}

TEST_F(BlockingRequestTest, AWaitingCallKeepsItsThreadUntilTheResumption) {
  MemoryRequest request("", response_);
  int calls = 0;
  std::promise<SuspendedCall> waiting;
  auto served = std::async(std::launch::async, [&] {
    serveExtended(request, response_, waits_, [&](RequestExtension& extension) {
      if (++calls == 1) waiting.set_value(extension.client().call());
      return calls < 3 ? RequestHandler::Progress::waitsForResume : RequestHandler::Progress::answered;
    });
  });
  auto begun = waiting.get_future();
  const SuspendedCall call = testkit::resultOf("the first call", begun);
  testkit::waitFor("the answer", [&] {
    call.resume();  // a resumption after the end has no effect
    return served.wait_for(std::chrono::seconds(0)) == std::future_status::ready;
  });
  served.get();
  EXPECT_EQ(calls, 3);
}

TEST(ThreadWaits, AnEventBeforeTheWaitIsKept) {
  ThreadWaits waits;
  const std::uint64_t call = waits.begin();
  waits.resume(call);
  EXPECT_TRUE(waits.await(call, std::chrono::hours(1)));
  EXPECT_FALSE(waits.await(call, std::chrono::milliseconds(1))) << "each event ends one wait";
  waits.end(call);
  waits.resume(call);
}

TEST(ThreadWaits, TheEndOfTheLastCallIsAwaited) {
  ThreadWaits waits;
  EXPECT_TRUE(waits.awaitNone(std::chrono::hours(1)));
  const std::uint64_t call = waits.begin();
  EXPECT_FALSE(waits.awaitNone(std::chrono::milliseconds(1)));
  auto ended = std::async(std::launch::async, [&] { waits.end(call); });
  EXPECT_TRUE(waits.awaitNone(std::chrono::hours(1)));
}

}  // namespace
}  // namespace jobq
