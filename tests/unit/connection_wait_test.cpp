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

  test::SocketPair client_;
  std::optional<const Connection::Server> server_;
  std::unique_ptr<Connection> connection_;
};

TEST_F(ConnectionWaitTest, ARequestThatWaitsGoesOnWhereItStopped) {
  using Progress = RequestHandler::Progress;
  std::vector<Progress> steps{Progress::waitsForResume, Progress::waitsForResume, Progress::answered};
  std::vector<bool> left;
  test::SteppingHandlers handlers([&](ServerRequest& request, ServerResponse& response) {
    left.push_back(request.hasLeft());
    EXPECT_EQ(request.call().id, 9U);
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
TEST_F(ConnectionWaitTest, AClientThatLeavesBetweenResumptionAndPollIsSeen) {
  using Progress = RequestHandler::Progress;
  std::vector<bool> left;
  test::SteppingHandlers handlers([&](ServerRequest& request, ServerResponse& response) {
    left.push_back(request.hasLeft());
    if (left.size() == 1) return Progress::waitsForResume;
    response.sendText("{}");
    return Progress::answered;
  });
  Connection& connection = connect(handlers);
  client_.send("GET / HTTP/1.1\r\nHost: h\r\n\r\n");
  ASSERT_EQ(connection.receive(), Ready::yes);
  ASSERT_EQ(connection.serve(), Next::suspend);
  client_.hangUp();
  (void)connection.serve();
  EXPECT_THAT(left, ElementsAre(false, true));
}

TEST_F(ConnectionWaitTest, ARequestThatWaitsForItsBodyGoesOnWithTheRest) {
  using Progress = RequestHandler::Progress;
  std::string body;
  test::SteppingHandlers handlers([&](ServerRequest& request, ServerResponse& response) {
    char piece[8];
    while (const std::size_t got = request.readBody(piece, sizeof piece)) body.append(piece, got);
    if (request.isPaused()) return Progress::waitsForInput;
    response.sendText(body);
    return Progress::answered;
  });
  Connection& connection = connect(handlers);
  client_.send("POST / HTTP/1.1\r\nHost: h\r\nContent-Length: 6\r\n\r\nabc");
  ASSERT_EQ(connection.receive(), Ready::yes);
  EXPECT_EQ(connection.serve(), Next::awaitInput);
  EXPECT_GT(connection.inputTimeLeft().count(), 10'000);
  EXPECT_EQ(connection.serve(), Next::awaitInput);
  client_.send("defGET / HTTP/1.1\r\nHost: h\r\n\r\n");
  body.clear();
  body = "abc";
  EXPECT_EQ(connection.serve(), Next::park) << "the second request has no body";
  EXPECT_THAT(client_.received(), HasSubstr("abcdef"));
}

TEST_F(ConnectionWaitTest, AnAnswerThatItsClientDoesNotReadWaitsWithoutAThread) {
  const std::string large(32UL << 20, 'x');
  test::FunctionHandlers handlers([&](ServerRequest&, ServerResponse& response) { response.sendText(large); });
  Connection& connection = connect(handlers);
  client_.send("GET / HTTP/1.1\r\nHost: h\r\n\r\n");
  ASSERT_EQ(connection.receive(), Ready::yes);
  ASSERT_EQ(connection.serve(), Next::awaitOutput);
  EXPECT_LE(connection.outputTimeLeft(), std::chrono::seconds(1)) << "a slot is needed then";
  EXPECT_EQ(readers_.left(), 8U);
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

TEST_F(ConnectionWaitTest, AnAnswerToAClientThatHasLeftEndsTheConnection) {
  const std::string large(32UL << 20, 'x');
  test::FunctionHandlers handlers([&](ServerRequest&, ServerResponse& response) { response.sendText(large); });
  Connection& connection = connect(handlers);
  client_.send("GET / HTTP/1.1\r\nHost: h\r\n\r\n");
  ASSERT_EQ(connection.receive(), Ready::yes);
  ASSERT_EQ(connection.serve(), Next::awaitOutput);
  client_.hangUp();
  EXPECT_EQ(connection.serve(), Next::close);
}

}  // namespace
}  // namespace jobq
