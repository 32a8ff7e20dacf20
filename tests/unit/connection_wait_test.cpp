// Tests of requests and answers that wait on a connection without a thread (core/http/transport/connection.h).
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <chrono>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "connection_fixture.h"
#include "core/http/transport/connection.h"
#include "core/http/transport/message.h"
#include "core/http/transport/request_handler.h"
#include "socket_pair.h"
#include "testkit/wait_for.h"

namespace jobq {
namespace {

using testing::ElementsAre;
using testing::HasSubstr;

class ConnectionWaitTest : public testing::Test, protected test::ConnectionFixture {
 protected:
  using Next = Connection::Next;
  using Ready = Connection::Ready;

  Connection& connect(RequestHandlerFactory& handlers) {
    server_.emplace(serverOf(handlers));
    connection_ = std::make_unique<Connection>(9, client_.releaseStream(), *server_);
    return *connection_;
  }
  Connection& connectAndReceive(RequestHandlerFactory& handlers) {
    Connection& connection = connect(handlers);
    client_.send("GET / HTTP/1.1\r\nHost: h\r\n\r\n");
    EXPECT_EQ(connection.receive(), Ready::yes);
    return connection;
  }

  test::SocketPair client_;
  std::optional<const Connection::Server> server_;
  std::unique_ptr<Connection> connection_;
};

TEST_F(ConnectionWaitTest, AWaitingRequestGoesOnFromTheSamePlace) {
  using Progress = RequestHandler::Progress;
  std::vector<Progress> steps{Progress::waitsForResume, Progress::waitsForResume, Progress::answered};
  std::vector<bool> left;
  test::SteppingHandlers handlers([&](ServerRequest& request, ServerResponse& response) {
    left.push_back(request.client().hasLeft());
    EXPECT_EQ(request.client().call().id, 9U);
    const Progress step = steps.front();
    steps.erase(steps.begin());
    if (step == Progress::answered) response.sendBuffer("late", 4);
    return step;
  });
  Connection& connection = connect(handlers);
  client_.send("GET /one HTTP/1.1\r\nHost: h\r\n\r\n");
  ASSERT_EQ(connection.receive(), Ready::yes);
  EXPECT_EQ(connection.serve(), Next::suspend);
  EXPECT_EQ(connection.serve(), Next::suspend) << "a resumption without an event";
  connection.noteClientLeft();
  EXPECT_EQ(connection.serve(), Next::park);
  EXPECT_THAT(client_.received(), HasSubstr("late"));
  EXPECT_THAT(left, ElementsAre(false, false, true));
}

// The event of the end may come while the call is not suspended, and a stream must not hand chunks out then.
TEST_F(ConnectionWaitTest, AClientLeavingBetweenResumptionAndPollIsSeen) {
  using Progress = RequestHandler::Progress;
  std::vector<bool> left;
  test::SteppingHandlers handlers([&](ServerRequest& request, ServerResponse& response) {
    left.push_back(request.client().hasLeft());
    if (left.size() == 1) return Progress::waitsForResume;
    response.sendText("{}");
    return Progress::answered;
  });
  Connection& connection = connectAndReceive(handlers);
  ASSERT_EQ(connection.serve(), Next::suspend);
  client_.hangUp();
  (void)connection.serve();
  EXPECT_THAT(left, ElementsAre(false, true));
}

TEST_F(ConnectionWaitTest, ARequestWaitingForTheBodyGoesOnWithTheRest) {
  using Progress = RequestHandler::Progress;
  std::string body;
  test::SteppingHandlers handlers([&](ServerRequest& request, ServerResponse& response) {
    char piece[8];
    while (const std::size_t got = request.readBody(piece, sizeof piece, UINT64_MAX)) body.append(piece, got);
    if (request.isPaused()) return Progress::waitsForInput;
    response.sendText(body);
    return Progress::answered;
  });
  Connection& connection = connect(handlers);
  client_.send("POST / HTTP/1.1\r\nHost: h\r\nContent-Length: 6\r\n\r\nabc");
  ASSERT_EQ(connection.receive(), Ready::yes);
  EXPECT_EQ(connection.serve(), Next::awaitInput);
  EXPECT_GT(connection.timeLeft().count(), 0);
  EXPECT_LE(connection.timeLeft().count(), 1'000) << "the body needs a place after a second, even without a byte";
  EXPECT_EQ(connection.serve(), Next::awaitInput);
  client_.send("defGET / HTTP/1.1\r\nHost: h\r\n\r\n");
  body.clear();
  body = "abc";
  EXPECT_EQ(connection.serve(), Next::park) << "the second request has no body";
  EXPECT_THAT(client_.received(), HasSubstr("abcdef"));
}

TEST_F(ConnectionWaitTest, AnUnreadAnswerWaitsWithoutAThread) {
  const std::string large(32UL << 20, 'x');
  test::FunctionHandlers handlers([&](ServerRequest&, ServerResponse& response) { response.sendText(large); });
  Connection& connection = connectAndReceive(handlers);
  ASSERT_EQ(connection.serve(), Next::awaitOutput);
  EXPECT_LE(connection.timeLeft(), std::chrono::seconds(1)) << "a slot is needed then";
  EXPECT_EQ(readers_.taken(), 0U);
  std::string answer;
  Next next = Next::awaitOutput;
  testkit::waitFor("the whole answer", [&] {
    answer += client_.received();
    if (next == Next::awaitOutput) next = connection.serve();
    return answer.size() > large.size();
  });
  EXPECT_EQ(next, Next::park);
  EXPECT_EQ(answer.substr(answer.find("\r\n\r\n") + 4), large);
}

TEST_F(ConnectionWaitTest, AWatchEndsWithTheAnswerAlthoughTheClientReadsLater) {
  const std::string large(32UL << 20, 'x');
  test::FunctionHandlers handlers([&](ServerRequest& request, ServerResponse& response) {
    (void)request.client().disconnected();
    response.sendText(large);
  });
  Connection& connection = connectAndReceive(handlers);
  ASSERT_EQ(connection.serve(), Next::awaitOutput);
  EXPECT_THAT(watch_.unwatched, ElementsAre(9U)) << "the next event of the connection is the room for more bytes";
  connection_.reset();
  EXPECT_THAT(watch_.unwatched, ElementsAre(9U));
}

/// A client that reads no bytes, with a full send buffer.
class FullWayTest : public ConnectionWaitTest {
 protected:
  Connection& connectFull() {
    ByteStream& stream = client_.stream();
    Connection& connection = connect(handlers_);
    const std::string piece(65'536, 'x');
    while (stream.writeSome(piece, "").value_or(0) > 0) {
    }
    return connection;
  }
  /// A wait for the client would last 20 s (core/http/transport/byte_stream.h).
  bool hasNotWaited() const { return std::chrono::steady_clock::now() - began_ < std::chrono::seconds(15); }

  bool reads_ = false;
  test::FunctionHandlers handlers_{[this](ServerRequest& request, ServerResponse&) {
    char byte = 0;
    reads_ = request.readBody(&byte, 1, UINT64_MAX) == 1;
  }};
  const std::chrono::steady_clock::time_point began_ = std::chrono::steady_clock::now();
};

TEST_F(FullWayTest, ARefusalDoesNotWait) {
  Connection& connection = connectFull();
  client_.send("no request\r\n\r\n");
  ASSERT_EQ(connection.receive(), Ready::yes);
  EXPECT_EQ(connection.serve(), Next::close);
  EXPECT_TRUE(hasNotWaited());
}

TEST_F(FullWayTest, TheRequestForABodyDoesNotWait) {
  Connection& connection = connectFull();
  client_.send("POST / HTTP/1.1\r\nHost: h\r\nExpect: 100-continue\r\nContent-Length: 1\r\n\r\nx");
  ASSERT_EQ(connection.receive(), Ready::yes);
  EXPECT_EQ(connection.serve(), Next::close);
  EXPECT_TRUE(reads_);
  EXPECT_TRUE(hasNotWaited());
}

TEST_F(ConnectionWaitTest, AnAnswerToADepartedClientEndsTheConnection) {
  const std::string large(32UL << 20, 'x');
  test::FunctionHandlers handlers([&](ServerRequest&, ServerResponse& response) { response.sendText(large); });
  Connection& connection = connectAndReceive(handlers);
  ASSERT_EQ(connection.serve(), Next::awaitOutput);
  client_.hangUp();
  EXPECT_EQ(connection.serve(), Next::close);
}

}  // namespace
}  // namespace jobq
