// Tests of one connection: heads, framing and the order of answers, over a pair of sockets
// (core/http/transport/connection.h).
#include "core/http/transport/connection.h"

#include <fcntl.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <functional>
#include <iterator>

#include "connection_fixture.h"
#include "core/http/transport/message.h"
#include "socket_pair.h"

namespace jobq {
namespace {

using testing::ElementsAre;
using testing::HasSubstr;
using testing::Not;
using testing::StartsWith;

void answerWith(ServerRequest& request, ServerResponse& response, const std::string& body) {
  request.discardBody();
  response.sendBuffer(body.data(), body.size());
}

/// Serves every request with the function of the test, and records the requests.
class ActingFactory final : public test::FunctionHandlers {
 public:
  ActingFactory()
      : FunctionHandlers(
            [](ServerRequest& request, ServerResponse& response) { answerWith(request, response, "ok"); }) {}
  RequestHandler* createRequestHandler(const Poco::Net::HTTPServerRequest& request) override {
    asked.push_back(request.getMethod() + " " + request.getURI());
    return FunctionHandlers::createRequestHandler(request);
  }

  std::vector<std::string> asked;
};

/// Another stream after a handshake ended by the test.
class HandshakeStream final : public ByteStream {
 public:
  explicit HandshakeStream(std::unique_ptr<ByteStream> inner)
      : ByteStream(::open("/dev/null", O_RDONLY | O_CLOEXEC)), inner_(std::move(inner)) {}

  std::optional<std::size_t> read(char* to, std::size_t size, Wait wait) override {
    if (!agreed && wait != Wait::no) ADD_FAILURE() << "a thread waits for the handshake";
    return agreed ? inner_->read(to, size, wait) : std::nullopt;
  }
  std::optional<std::size_t> writeSome(std::string_view first, std::string_view second) override {
    return inner_->writeSome(first, second);
  }
  bool handshaking() const noexcept override { return !agreed; }

  bool agreed = false;

 private:
  const std::unique_ptr<ByteStream> inner_;
};

class ConnectionTest : public testing::Test, protected test::ConnectionFixture {
 protected:
  using Next = Connection::Next;
  using Ready = Connection::Ready;

  /// Sends the text, lets the connection read and serve the request, and returns the next step of the connection.
  Next exchange(const std::string& text) {
    client_.send(text);
    EXPECT_EQ(connection_.receive(), Ready::yes);
    return connection_.serve();
  }

  test::SocketPair client_;
  ActingFactory handlers_;
  const Connection::Server server_ = serverOf(handlers_);
  Connection connection_{7, client_.releaseStream(), server_};
};

TEST_F(ConnectionTest, ServesARequestAndIsParkedForTheNext) {
  EXPECT_EQ(exchange("GET /a HTTP/1.1\r\nHost: h\r\n\r\n"), Next::park);
  const std::string first = client_.received();
  EXPECT_THAT(first, StartsWith("HTTP/1.1 200 OK\r\n"));
  EXPECT_THAT(first, HasSubstr("\r\nContent-Length: 2\r\n"));
  EXPECT_THAT(first, HasSubstr("\r\nDate: "));
  EXPECT_THAT(first, Not(HasSubstr("Connection:")));
  EXPECT_THAT(first, HasSubstr("\r\n\r\nok"));
  EXPECT_FALSE(client_.sawEnd());
  EXPECT_EQ(exchange("GET /b HTTP/1.1\r\nHost: h\r\n\r\n"), Next::park);
  EXPECT_THAT(handlers_.asked, ElementsAre("GET /a", "GET /b"));
}

TEST_F(ConnectionTest, AHeadMayComeInPieces) {
  EXPECT_EQ(connection_.receive(), Ready::no);
  EXPECT_FALSE(connection_.inHead());
  client_.send("GET / HTT");
  EXPECT_EQ(connection_.receive(), Ready::no);
  EXPECT_TRUE(connection_.inHead());
  client_.send("P/1.1\r\nHost: h\r\n\r");
  EXPECT_EQ(connection_.receive(), Ready::no);
  client_.send("\n");
  EXPECT_EQ(connection_.receive(), Ready::yes);
  EXPECT_EQ(connection_.serve(), Next::park);
  EXPECT_FALSE(connection_.inHead());
}

TEST_F(ConnectionTest, AnEndWithoutARequestMeansADepartedClient) {
  client_.endSending();
  EXPECT_EQ(connection_.receive(), Ready::gone);
}

TEST_F(ConnectionTest, HalfAHeadAndAnEndMeansADepartedClientToo) {
  client_.send("GET / HTT");
  client_.endSending();
  EXPECT_EQ(connection_.receive(), Ready::gone);
  EXPECT_THAT(handlers_.asked, ElementsAre());
}

TEST_F(ConnectionTest, RequestsReceivedTogetherAreAnsweredInOrder) {
  handlers_.act = [](ServerRequest& request, ServerResponse& response) {
    answerWith(request, response, request.getURI());
  };
  EXPECT_EQ(exchange("GET /1 HTTP/1.1\r\nHost: h\r\n\r\nPOST /2 HTTP/1.1\r\nHost: h\r\nContent-Length: 3\r\n\r\nabc"
                     "GET /3 HTTP/1.1\r\nHost: h\r\n\r\nGET /4"),
            Next::park);
  const std::string all = client_.received();
  EXPECT_LT(all.find("\r\n\r\n/1"), all.find("\r\n\r\n/2"));
  EXPECT_LT(all.find("\r\n\r\n/2"), all.find("\r\n\r\n/3"));
  EXPECT_EQ(all.find("/4"), std::string::npos);
  EXPECT_TRUE(connection_.inHead()) << "the reader holds half of the fourth request";
}

TEST_F(ConnectionTest, TheHandlerReadsTheBodyAndNotAByteMore) {
  std::string body;
  handlers_.act = [&body](ServerRequest& request, ServerResponse& response) {
    body.assign(std::istreambuf_iterator<char>(request.stream()), {});
    answerWith(request, response, "ok");
  };
  EXPECT_EQ(exchange("POST / HTTP/1.1\r\nHost: h\r\nTransfer-Encoding: chunked\r\n\r\n3\r\nabc\r\n0\r\n\r\n"
                     "GET /next HTTP/1.1\r\nHost: h\r\n\r\n"),
            Next::park);
  EXPECT_THAT(handlers_.asked, ElementsAre("POST /", "GET /next"));
}

TEST_F(ConnectionTest, AnIncompleteUnreadBodyEndsTheConnection) {
  EXPECT_EQ(exchange("POST / HTTP/1.1\r\nHost: h\r\nContent-Length: 10\r\n\r\nhalf"), Next::discardInput);
  EXPECT_THAT(client_.received(), HasSubstr("Connection: close"));
  EXPECT_TRUE(client_.sawEnd());
}

TEST_F(ConnectionTest, ABrokenBodyEndsTheConnection) {
  handlers_.act = [](ServerRequest& request, ServerResponse& response) {
    const std::string body(std::istreambuf_iterator<char>(request.stream()), {});
    answerWith(request, response, std::to_string(request.bodyResult().failure().status));
  };
  EXPECT_EQ(
      exchange("POST / HTTP/1.1\r\nHost: h\r\nTransfer-Encoding: chunked\r\n\r\nzzz\r\nGET /evil HTTP/1.1\r\n\r\n"),
      Next::discardInput);
  EXPECT_THAT(handlers_.asked, ElementsAre("POST /")) << "bytes after a broken body are not a request";
  EXPECT_THAT(client_.received(), HasSubstr("\r\n\r\n400"));
}

TEST_F(ConnectionTest, AClosingClientGetsTheAnswerAndTheEnd) {
  EXPECT_EQ(exchange("GET / HTTP/1.1\r\nHost: h\r\nConnection: close\r\n\r\nGET /more HTTP/1.1\r\nHost: h\r\n\r\n"),
            Next::discardInput);
  EXPECT_THAT(client_.received(), HasSubstr("\r\nConnection: close\r\n"));
  EXPECT_TRUE(client_.sawEnd());
  EXPECT_THAT(handlers_.asked, ElementsAre("GET /"));
}

TEST_F(ConnectionTest, AnHttp10ClientIsToldWhetherTheConnectionGoesOn) {
  EXPECT_EQ(exchange("GET / HTTP/1.0\r\nConnection: keep-alive\r\n\r\n"), Next::park);
  EXPECT_THAT(client_.received(), HasSubstr("\r\nConnection: keep-alive\r\n"));
  EXPECT_EQ(exchange("GET / HTTP/1.0\r\n\r\n"), Next::discardInput);
  EXPECT_THAT(client_.received(), HasSubstr("\r\nConnection: close\r\n"));
}

TEST_F(ConnectionTest, TheAnswerToAHeadHasNoBody) {
  EXPECT_EQ(exchange("HEAD / HTTP/1.1\r\nHost: h\r\n\r\n"), Next::park);
  const std::string answer = client_.received();
  EXPECT_THAT(answer, HasSubstr("\r\nContent-Length: 2\r\n"));
  EXPECT_TRUE(answer.ends_with("\r\n\r\n")) << answer;
}

TEST_F(ConnectionTest, AStreamOfUnknownLengthIsChunked) {
  handlers_.act = [](ServerRequest&, ServerResponse& response) { response.send() << "one" << std::flush << "two"; };
  EXPECT_EQ(exchange("GET / HTTP/1.1\r\nHost: h\r\n\r\n"), Next::park);
  const std::string chunked = client_.received();
  EXPECT_THAT(chunked, HasSubstr("Transfer-Encoding: chunked"));
  EXPECT_TRUE(chunked.ends_with("\r\n\r\n3\r\none\r\n3\r\ntwo\r\n0\r\n\r\n")) << chunked;
  EXPECT_EQ(exchange("GET / HTTP/1.0\r\nConnection: keep-alive\r\n\r\n"), Next::discardInput)
      << "the end of the connection is the end of the body";
  EXPECT_TRUE(client_.received().ends_with("\r\n\r\nonetwo"));
}

TEST_F(ConnectionTest, ContinueIsSaidWhenTheBodyIsAskedFor) {
  handlers_.act = [this](ServerRequest& request, ServerResponse& response) {
    std::istream& body = request.stream();
    client_.send("abc");
    answerWith(request, response, std::string(std::istreambuf_iterator<char>(body), {}));
  };
  EXPECT_EQ(exchange("POST / HTTP/1.1\r\nHost: h\r\nExpect: 100-continue\r\nContent-Length: 3\r\n\r\n"), Next::park);
  const std::string answer = client_.received();
  EXPECT_THAT(answer, StartsWith("HTTP/1.1 100 Continue\r\n\r\nHTTP/1.1 200 OK\r\n"));
  EXPECT_TRUE(answer.ends_with("\r\n\r\nabc"));
}

TEST_F(ConnectionTest, AnUnrequestedBodyEndsTheConnection) {
  EXPECT_EQ(exchange("POST / HTTP/1.1\r\nHost: h\r\nExpect: 100-continue\r\nContent-Length: 3\r\n\r\n"),
            Next::discardInput)
      << "the client may send the body or not";
  EXPECT_THAT(client_.received(), StartsWith("HTTP/1.1 200 OK\r\n"));
}

TEST_F(ConnectionTest, AnIllegalHeadIsRefusedWithASentence) {
  EXPECT_EQ(
      exchange("GET / HTTP/1.1\r\nHost: h\r\nContent-Length: 1\r\nContent-Length: 2\r\n\r\nGET / HTTP/1.1\r\n\r\n"),
      Next::discardInput);
  const std::string answer = client_.received();
  EXPECT_THAT(answer, StartsWith("HTTP/1.1 400 "));
  EXPECT_THAT(answer, HasSubstr("{\"error\":\""));
  EXPECT_THAT(answer, HasSubstr("\r\nConnection: close\r\n"));
  EXPECT_THAT(handlers_.asked, ElementsAre()) << "neither the request nor the rest is served";
}

TEST_F(ConnectionTest, ATooLargeHeadIsRefusedBeforeTheEnd) {
  client_.send("GET / HTTP/1.1\r\nHost: h\r\nX: ");
  ASSERT_EQ(connection_.receive(), Ready::no);
  for (int i = 0; i < 25; ++i) {
    client_.send(std::string(8'192, 'x'));
    if (connection_.receive() == Ready::yes) break;
  }
  ASSERT_EQ(connection_.receive(), Ready::yes);
  EXPECT_EQ(connection_.serve(), Next::discardInput);
  EXPECT_THAT(client_.received(), StartsWith("HTTP/1.1 431 "));
}

TEST_F(ConnectionTest, AHeadWithoutMemoryIsRefusedAndHoldsNoMemory) {
  const auto others = heads_.reserve(heads_.left() - 10'000);
  client_.send("GET / HTTP/1.1\r\nHost: h\r\nX: " + std::string(9'000, 'x'));
  ASSERT_EQ(connection_.receive(), Ready::no) << "there is room for twice the free bytes";
  EXPECT_LT(heads_.left(), 10'000U);
  client_.send(std::string(9'000, 'x'));
  ASSERT_EQ(connection_.receive(), Ready::yes);
  EXPECT_EQ(connection_.serve(), Next::discardInput);
  const std::string answer = client_.received();
  EXPECT_THAT(answer, StartsWith("HTTP/1.1 503 "));
  EXPECT_THAT(answer, HasSubstr("\r\nRetry-After: 1\r\n"));
  EXPECT_THAT(handlers_.asked, ElementsAre());
  EXPECT_EQ(heads_.left(), 10'000U);
}

TEST_F(ConnectionTest, ALargeHeadCountsUntilTheAnswer) {
  const std::uint64_t all = heads_.left();
  std::uint64_t meanwhile = 0;
  handlers_.act = [&](ServerRequest& request, ServerResponse& response) {
    meanwhile = heads_.left();
    answerWith(request, response, "ok");
  };
  const std::string large = "GET / HTTP/1.1\r\nHost: h\r\nX: " + std::string(20'000, 'x') + "\r\n\r\n";
  EXPECT_EQ(exchange(large + "GET /next"), Next::park);
  EXPECT_EQ(meanwhile, all - 2 * large.size()) << "only the copies of the fields hold memory";
  EXPECT_EQ(heads_.left(), all);
  const auto others = heads_.reserve(heads_.left() - 30'000);
  EXPECT_EQ(exchange(" HTTP/1.1\r\nHost: h\r\nX: " + std::string(20'000, 'x') + "\r\n\r\n"), Next::discardInput);
  EXPECT_THAT(client_.received(), HasSubstr("HTTP/1.1 503 ")) << "the copies of the fields find no room";
}

TEST_F(ConnectionTest, AHandshakeIsResumedUntilTheFirstHead) {
  test::SocketPair client;
  auto owned = std::make_unique<HandshakeStream>(client.releaseStream());
  HandshakeStream& stream = *owned;
  threadsBusy_ = false;  // a thread may wait for a next request
  Connection connection(8, std::move(owned), server_);
  EXPECT_TRUE(connection.stream().handshaking());
  EXPECT_TRUE(connection.inHead());
  EXPECT_EQ(connection.serve(), Next::resume);
  EXPECT_EQ(connection.refuseLateHead(), Next::close) << "an answer needs a complete handshake";
  stream.agreed = true;
  client.send("GET / HTTP/1.1\r\nHost: h\r\nConnection: close\r\n\r\n");
  EXPECT_EQ(connection.serve(), Next::discardInput);
  EXPECT_THAT(client.received(), StartsWith("HTTP/1.1 200 OK\r\n"));
}

TEST_F(ConnectionTest, ALateHeadIsAnswered408) {
  client_.send("GET / HTT");
  ASSERT_EQ(connection_.receive(), Ready::no);
  EXPECT_EQ(connection_.refuseLateHead(), Next::discardInput);
  EXPECT_THAT(client_.received(), StartsWith("HTTP/1.1 408 "));
  EXPECT_TRUE(client_.sawEnd());
}

TEST_F(ConnectionTest, ADepartedClientEndsTheConnection) {
  handlers_.act = [this](ServerRequest& request, ServerResponse& response) {
    client_.hangUp();
    answerWith(request, response, "ok");
  };
  EXPECT_EQ(exchange("GET / HTTP/1.1\r\nHost: h\r\n\r\n"), Next::close);
}

TEST_F(ConnectionTest, AnEndAfterTheLastRequestClosesTheConnectionAfterTheAnswer) {
  client_.send("GET / HTTP/1.1\r\nHost: h\r\n\r\n");
  client_.endSending();
  ASSERT_EQ(connection_.receive(), Ready::yes);
  EXPECT_EQ(connection_.serve(), Next::close);
  EXPECT_THAT(client_.received(), StartsWith("HTTP/1.1 200 OK\r\n"));
}

TEST_F(ConnectionTest, WithoutAnAnswerTheConnectionIsClosed) {
  handlers_.act = [](ServerRequest&, ServerResponse&) {};
  EXPECT_EQ(exchange("GET / HTTP/1.1\r\nHost: h\r\n\r\n"), Next::close);
}

TEST_F(ConnectionTest, AStoppingServerAnnouncesTheEndInEachAnswer) {
  handlers_.act = [this](ServerRequest& request, ServerResponse& response) {
    closing_ = true;  // the shutdown begins while the request is served
    answerWith(request, response, "ok");
  };
  EXPECT_EQ(exchange("GET / HTTP/1.1\r\nHost: h\r\n\r\n"), Next::discardInput);
  EXPECT_THAT(client_.received(), HasSubstr("\r\nConnection: close\r\n"));
}

TEST_F(ConnectionTest, AWaitingCallIsWatchedUntilTheEnd) {
  bool gone = false;
  handlers_.act = [&](ServerRequest& request, ServerResponse& response) {
    const std::stop_token token = request.client().disconnected();
    watch_.source.request_stop();
    gone = token.stop_requested();
    answerWith(request, response, "ok");
    EXPECT_TRUE(watch_.unwatched.empty());
  };
  EXPECT_EQ(exchange("GET / HTTP/1.1\r\nHost: h\r\n\r\n"), Next::park);
  EXPECT_TRUE(gone);
  EXPECT_THAT(watch_.watched, ElementsAre(7U));
  EXPECT_THAT(watch_.unwatched, ElementsAre(7U));
}

TEST_F(ConnectionTest, ACallWithoutAWaitIsNotWatched) {
  EXPECT_EQ(exchange("GET / HTTP/1.1\r\nHost: h\r\n\r\n"), Next::park);
  EXPECT_TRUE(watch_.watched.empty());
  EXPECT_TRUE(watch_.unwatched.empty());
}

}  // namespace
}  // namespace jobq
