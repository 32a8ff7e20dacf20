// Tests of answers whose body is sent in parts, without a thread between the parts (core/http/transport/connection.h).
#include <gmock/gmock.h>
#include <gtest/gtest.h>

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

using testing::EndsWith;
using testing::HasSubstr;

class OpenResponseTest : public testing::Test, protected test::ConnectionFixture {
 protected:
  using Next = Connection::Next;
  using Progress = RequestHandler::Progress;

  Connection& connect(RequestHandlerFactory& handlers, const std::string& version = "1.1") {
    server_.emplace(serverOf(handlers));
    connection_ = std::make_unique<Connection>(9, client_.releaseStream(), *server_);
    client_.send("GET / HTTP/" + version + "\r\nHost: h\r\n\r\n");
    EXPECT_EQ(connection_->receive(), Connection::Ready::yes);
    return *connection_;
  }

  test::SocketPair client_;
  std::optional<const Connection::Server> server_;
  std::unique_ptr<Connection> connection_;
};

/// Sends a part for each call, and the last one at the third call.
class PartHandlers final : public test::SteppingHandlers {
 public:
  explicit PartHandlers(std::string part)
      : SteppingHandlers([this, part = std::move(part)](ServerRequest& request, ServerResponse& response) {
          left.push_back(request.client().hasLeft());
          const bool isLast = left.size() == 3 || request.client().hasLeft();
          response.sendPart(isLast ? "end" : part, isLast);
          if (isLast) return RequestHandler::Progress::answered;
          return response.hasRest() ? RequestHandler::Progress::waitsForOutput
                                    : RequestHandler::Progress::waitsForResume;
        }) {}

  std::vector<bool> left;
};

TEST_F(OpenResponseTest, EachPartLeavesAtOnceAndTheConnectionGoesOn) {
  PartHandlers handlers("part");
  Connection& connection = connect(handlers);
  ASSERT_EQ(connection.serve(), Next::suspend);
  EXPECT_THAT(client_.received(), testing::AllOf(HasSubstr("Transfer-Encoding: chunked"), EndsWith("4\r\npart\r\n")));
  ASSERT_EQ(connection.serve(), Next::suspend);
  EXPECT_EQ(client_.received(), "4\r\npart\r\n");
  EXPECT_EQ(connection.serve(), Next::park);
  EXPECT_EQ(client_.received(), "3\r\nend\r\n0\r\n\r\n");
}

TEST_F(OpenResponseTest, WithoutChunksTheEndOfTheConnectionIsTheEnd) {
  PartHandlers handlers("part");
  Connection& connection = connect(handlers, "1.0");
  while (connection.serve() == Next::suspend) continue;
  EXPECT_THAT(client_.received(), EndsWith("\r\n\r\npartpartend"));
  EXPECT_TRUE(client_.sawEnd() || client_.received().empty());
}

TEST_F(OpenResponseTest, ANonReadingClientKeepsThePartsWaiting) {
  PartHandlers handlers(std::string(8UL << 20, 'x'));
  Connection& connection = connect(handlers);
  Next next = connection.serve();
  ASSERT_EQ(next, Next::awaitOutput);
  EXPECT_EQ(handlers.left.size(), 1U) << "no further part is made meanwhile";
  std::string answer;
  testkit::waitFor("the whole answer", [&] {
    answer += client_.received();
    if (next == Next::awaitOutput || next == Next::suspend) next = connection.serve();
    return next == Next::park && answer.ends_with("3\r\nend\r\n0\r\n\r\n");
  });
  EXPECT_EQ(handlers.left, (std::vector<bool>{false, false, false}));
  EXPECT_GT(answer.size(), 16UL << 20);
}

TEST_F(OpenResponseTest, AHandlerLearnsOfTheDepartureOfTheClient) {
  PartHandlers handlers(std::string(8UL << 20, 'x'));
  Connection& connection = connect(handlers);
  ASSERT_EQ(connection.serve(), Next::awaitOutput);
  client_.hangUp();
  EXPECT_EQ(connection.serve(), Next::close);
  EXPECT_EQ(handlers.left, (std::vector<bool>{false, true})) << "the job of a lost client is cancelled";
}

}  // namespace
}  // namespace jobq
