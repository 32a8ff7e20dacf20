// Tests of the requests that the reactor thread may serve (RequestHandler::isQuick in
// core/http/api/request_pipeline.h).
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <string>

#include "core/http/transport/connection.h"
#include "request_pipeline_fixture.h"
#include "socket_pair.h"

namespace jobq {
namespace {

using testing::StartsWith;
using Next = Connection::Next;

class QuickRequestTest : public RequestPipelineTest {
 protected:
  QuickRequestTest() {
    Route quick;
    quick.methods = {"POST"};
    quick.pattern = "/quick/{endpoint}";
    quick.run = [this](ApiRequest& request) {
      mayBlock_ = request.client->mayBlock();
      return ApiResponse{200, "{}"};
    };
    quick.needsBody = true;
    quick.isQuick = true;
    router_.add(std::move(quick));
  }

  /// Sends a request and lets the reactor thread serve it. Returns the answer; empty if the request needs a thread.
  std::string askQuickly(const std::string& text) {
    test::SocketPair client;
    Connection connection(1, client.releaseStream(), server_);
    client.send(text);
    EXPECT_EQ(connection.receive(), Connection::Ready::yes);
    next_ = connection.serveQuickly();
    return client.received();
  }
  std::string quick(std::size_t size) {
    return head("POST /quick/ep", client_, "Content-Length: " + std::to_string(size) + "\r\n") + std::string(size, 'x');
  }

  bool mayBlock_ = true;
};

TEST_F(QuickRequestTest, ASmallBodyOfAQuickRoute) {
  EXPECT_THAT(askQuickly(quick(16UL << 10)), StartsWith("HTTP/1.1 200"));
  EXPECT_EQ(next_, Next::park);
  EXPECT_FALSE(mayBlock_);
}

TEST_F(QuickRequestTest, ARefusalByTheHead) {
  EXPECT_THAT(askQuickly(head("POST /quick/ep", "wrong", "Content-Length: 2\r\n") + "{}"), StartsWith("HTTP/1.1 401"));
  EXPECT_THAT(askQuickly(head("GET /nowhere", client_)), StartsWith("HTTP/1.1 404"));
  limiter_.verdict = {false, Millis(1'000), 0};
  EXPECT_THAT(askQuickly(head("POST /v2/ep/run", client_, "Content-Length: 2\r\n") + "{}"), StartsWith("HTTP/1.1 429"));
}

TEST_F(QuickRequestTest, OtherRequestsNeedAThread) {
  EXPECT_EQ(askQuickly(head("GET /ping", "")), "") << "the route may block";
  EXPECT_EQ(next_, Next::needsThread);
  EXPECT_EQ(askQuickly(quick((16UL << 10) + 1)), "") << "a large body takes long to judge";
  EXPECT_EQ(next_, Next::needsThread);
  EXPECT_EQ(askQuickly(head("POST /quick/ep", client_, "Transfer-Encoding: chunked\r\n") + "2\r\n{}\r\n0\r\n\r\n"), "");
  EXPECT_EQ(next_, Next::needsThread);
}

TEST_F(QuickRequestTest, AThreadServesWhatTheReactorHasBegun) {
  test::SocketPair client;
  Connection connection(1, client.releaseStream(), server_);
  client.send(head("GET /ping", ""));
  EXPECT_EQ(connection.receive(), Connection::Ready::yes);
  EXPECT_EQ(connection.serveQuickly(), Next::needsThread);
  EXPECT_EQ(connection.serve(), Next::park);
  EXPECT_THAT(client.received(), StartsWith("HTTP/1.1 200"));
}

TEST_F(QuickRequestTest, ABodyThatComesLaterWaitsWithoutAThread) {
  test::SocketPair client;
  Connection connection(1, client.releaseStream(), server_);
  client.send(head("POST /quick/ep", client_, "Content-Length: 2\r\n") + "{");
  EXPECT_EQ(connection.receive(), Connection::Ready::yes);
  EXPECT_EQ(connection.serveQuickly(), Next::awaitInput);
  client.send("}");
  EXPECT_EQ(connection.serve(), Next::park);
  EXPECT_THAT(client.received(), StartsWith("HTTP/1.1 200"));
  EXPECT_TRUE(mayBlock_) << "a thread of the pool goes on";
}

TEST_F(QuickRequestTest, ASecondRequestBehindAQuickOneNeedsAThread) {
  test::SocketPair client;
  Connection connection(1, client.releaseStream(), server_);
  client.send(quick(2) + quick(2));
  EXPECT_EQ(connection.receive(), Connection::Ready::yes);
  EXPECT_EQ(connection.serveQuickly(), Next::needsThread);
  EXPECT_THAT(client.received(), StartsWith("HTTP/1.1 200"));
  EXPECT_EQ(connection.serve(), Next::park);
  EXPECT_THAT(client.received(), StartsWith("HTTP/1.1 200"));
}

}  // namespace
}  // namespace jobq
