// Tests of the report to the owner at the end of a connection (core/http/transport/connection_ownership.h).
#include "core/http/transport/connection_ownership.h"

#include <Poco/Net/ServerSocket.h>
#include <Poco/Net/StreamSocket.h>
#include <gtest/gtest.h>
#include <unistd.h>

#include <iterator>
#include <memory>
#include <optional>
#include <string>
#include <string_view>

#include "connection_fixture.h"
#include "core/base/connection_owner.h"
#include "core/http/transport/byte_stream.h"
#include "core/http/transport/connection.h"
#include "core/http/transport/message.h"
#include "socket_pair.h"
#include "unit_storage.h"

namespace jobq {
namespace {

class RecordingOwner final : public ConnectionOwner {
 public:
  explicit RecordingOwner(std::optional<ConnectionEnd>& end) : end_(end) {}
  bool needsConnection() const noexcept override { return false; }
  void noteFormer(const ConnectionOwner&) const noexcept override {}
  void noteEnd(ConnectionEnd end) const noexcept override { end_ = end; }

 private:
  std::optional<ConnectionEnd>& end_;
};

class ConnectionOwnershipTest : public testing::Test, protected test::ConnectionFixture {
 protected:
  using Next = Connection::Next;
  using Ready = Connection::Ready;

  void send(const std::string& text) {
    client_.send(text);
    ASSERT_EQ(connection_->receive(), Ready::yes);
  }
  void answerOne() {
    send("GET / HTTP/1.1\r\nHost: h\r\n\r\n");
    ASSERT_EQ(connection_->serve(), Next::park);
  }
  /// Ends the connection, and returns the report to the owner.
  std::optional<ConnectionEnd> endOf() {
    connection_.reset();
    return end_;
  }

  std::optional<ConnectionEnd> end_;
  test::SocketPair client_;
  test::SteppingHandlers handlers_{[this](ServerRequest& request, ServerResponse& response) {
    request.client().setOwner(std::make_shared<RecordingOwner>(end_));
    const std::string body(std::istreambuf_iterator<char>(request.stream()), {});
    request.discardBody();
    if (waits_) return RequestHandler::Progress::waitsForResume;
    response.sendBuffer("ok", 2);
    return RequestHandler::Progress::answered;
  }};
  bool waits_ = false;
  const Connection::Server server_ = serverOf(handlers_);
  std::unique_ptr<Connection> connection_ = std::make_unique<Connection>(7, client_.releaseStream(), server_);
};

TEST_F(ConnectionOwnershipTest, AClientLeavingAfterFourteenIdleSecondsLeavesInOrder) {
  answerOne();
  time_.pass(std::chrono::milliseconds(60'000));
  answerOne();  // the time runs from the last answer on
  time_.pass(std::chrono::milliseconds(14'000));
  client_.hangUp();
  EXPECT_EQ(connection_->receive(), Ready::gone);
  EXPECT_EQ(endOf(), ConnectionEnd::inOrder);
}

TEST_F(ConnectionOwnershipTest, AClientLeavingEarlierHasTornTheConnection) {
  answerOne();
  time_.pass(std::chrono::milliseconds(13'999));
  client_.hangUp();
  EXPECT_EQ(connection_->receive(), Ready::gone);
  EXPECT_EQ(endOf(), ConnectionEnd::torn);
}

TEST_F(ConnectionOwnershipTest, AnEndRightAfterARequestIsTorn) {
  client_.send("GET / HTTP/1.1\r\nHost: h\r\n\r\n");
  client_.endSending();
  ASSERT_EQ(connection_->receive(), Ready::yes);
  EXPECT_EQ(connection_->serve(), Next::close);
  EXPECT_EQ(endOf(), ConnectionEnd::torn);
}

TEST_F(ConnectionOwnershipTest, AnEndInsideAHeadIsTorn) {
  answerOne();
  time_.pass(std::chrono::milliseconds(20'000));
  client_.send("GET /");
  EXPECT_EQ(connection_->receive(), Ready::no);
  client_.hangUp();
  EXPECT_EQ(connection_->receive(), Ready::gone);
  EXPECT_EQ(endOf(), ConnectionEnd::torn);
}

TEST_F(ConnectionOwnershipTest, AnEndInsideABodyIsTorn) {
  client_.send("POST / HTTP/1.1\r\nHost: h\r\nContent-Length: 5\r\n\r\n12");
  client_.endSending();
  ASSERT_EQ(connection_->receive(), Ready::yes);
  EXPECT_EQ(connection_->serve(), Next::discardInput);
  EXPECT_EQ(endOf(), ConnectionEnd::torn);
}

TEST_F(ConnectionOwnershipTest, AClientBreakingOffACallHasTornTheConnection) {
  waits_ = true;
  send("GET / HTTP/1.1\r\nHost: h\r\nConnection: close\r\n\r\n");
  EXPECT_EQ(connection_->serve(), Next::suspend);
  connection_->noteClientLeft();
  waits_ = false;
  EXPECT_EQ(connection_->continueSuspended(), Next::discardInput);
  EXPECT_EQ(endOf(), ConnectionEnd::torn);
}

TEST_F(ConnectionOwnershipTest, ConnectionCloseEndsTheConnectionInOrder) {
  send("GET / HTTP/1.1\r\nHost: h\r\nConnection: close\r\n\r\n");
  EXPECT_EQ(connection_->serve(), Next::discardInput);
  EXPECT_EQ(endOf(), ConnectionEnd::inOrder);
}

// nginx calls so unless it is told otherwise.
TEST_F(ConnectionOwnershipTest, SoDoesHttp10) {
  send("GET / HTTP/1.0\r\n\r\n");
  EXPECT_EQ(connection_->serve(), Next::discardInput);
  EXPECT_EQ(endOf(), ConnectionEnd::inOrder);
}

TEST_F(ConnectionOwnershipTest, AnEndByTheServerIsInOrder) {
  answerOne();
  EXPECT_EQ(endOf(), ConnectionEnd::inOrder);
}

/// A connection over the network of the machine: only there is a reset something else than an end.
class ResetTest : public testing::Test {
 protected:
  ResetTest() {
    Poco::Net::ServerSocket listener(Poco::Net::SocketAddress("127.0.0.1", 0));
    client_.connect(listener.address());
    stream_ = plainStream(::dup(listener.acceptConnection().impl()->sockfd()));
  }
  bool readsEnd() {
    return test::holdsSoon([this] {
      char byte = 0;
      return stream_->read(&byte, 1, ByteStream::Wait::linger) == std::size_t{0};
    });
  }
  static std::optional<ConnectionEnd> endAfter(const ByteStream& stream) {
    std::optional<ConnectionEnd> end;
    {
      const test::SetTime time;
      ConnectionOwnership ownership(time);
      ownership.owner() = std::make_shared<RecordingOwner>(end);
      ownership.noteAnswer();
      ownership.noteClosed(stream, true);
    }
    return end;
  }

  Poco::Net::StreamSocket client_;
  std::unique_ptr<ByteStream> stream_;
};

TEST_F(ResetTest, AProxyResetsAConnectionKeptForSomeSeconds) {
  client_.setLinger(true, 0);
  client_.close();
  ASSERT_TRUE(readsEnd());
  EXPECT_TRUE(stream_->wasReset());
  EXPECT_EQ(endAfter(*stream_), ConnectionEnd::inOrder);
}

TEST_F(ResetTest, AKilledProcessClosesTheConnection) {
  client_.close();
  ASSERT_TRUE(readsEnd());
  EXPECT_FALSE(stream_->wasReset());
  EXPECT_EQ(endAfter(*stream_), ConnectionEnd::torn);
}

}  // namespace
}  // namespace jobq
