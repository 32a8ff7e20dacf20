// Tests of threads that stay with a connection while the request waits (core/http/transport/thread_stay.h).
#include "core/http/transport/thread_stay.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <atomic>
#include <chrono>
#include <future>
#include <memory>
#include <optional>
#include <string>
#include <thread>
#include <utility>

#include "connection_fixture.h"
#include "core/http/transport/connection.h"
#include "core/http/transport/message.h"
#include "core/http/transport/request_handler.h"
#include "socket_pair.h"
#include "testkit/wait_for.h"

namespace jobq {
namespace {

using std::chrono::milliseconds;
using testing::HasSubstr;

TEST(ThreadStay, OnlyTheConnectionOfAStayingThreadCanBeBorrowed) {
  ThreadStay stay;
  EXPECT_FALSE(stay.borrow());
  stay.begin();
  EXPECT_TRUE(stay.borrow());
  EXPECT_FALSE(stay.borrow()) << "the connection is already borrowed";
  stay.endLoan(false);
  EXPECT_FALSE(stay.borrow()) << "a stay has a single loan";
  EXPECT_TRUE(stay.end());
  EXPECT_FALSE(stay.borrow());
  stay.begin();
  EXPECT_FALSE(stay.end()) << "the connection is not borrowed";
}

TEST(ThreadStay, TheEndOfAStayWaitsForTheLoan) {
  ThreadStay stay;
  stay.begin();
  ASSERT_TRUE(stay.borrow());
  std::atomic<bool> lent = true;
  std::thread borrower([&] {
    std::this_thread::yield();
    lent = false;
    stay.endLoan(true);
  });
  EXPECT_TRUE(stay.end());
  EXPECT_FALSE(lent);
  testkit::join("the borrower", borrower);
}

TEST(ThreadStay, AStayEndsWithBytesOrAWakeUp) {
  test::SocketPair client;
  const auto stream = client.releaseStream();
  ThreadStay stay;
  (void)ThreadStay::await(stream->descriptor(), milliseconds(0));  // a wake-up of an earlier stay of this thread
  stay.wake();
  EXPECT_FALSE(ThreadStay::await(stream->descriptor(), milliseconds(0))) << "no thread stayed";
  stay.begin();
  stay.wake();
  EXPECT_TRUE(ThreadStay::await(stream->descriptor(), testkit::kHangDeadline));
  EXPECT_FALSE(ThreadStay::await(stream->descriptor(), milliseconds(0))) << "the wake-up is used up";
  client.send("x");
  EXPECT_FALSE(ThreadStay::await(stream->descriptor(), testkit::kHangDeadline)) << "bytes came, but no wake-up";
}

class StayTest : public testing::Test, protected test::ConnectionFixture {
 protected:
  using Next = Connection::Next;
  using Progress = RequestHandler::Progress;

  StayTest() { threadsBusy_ = false; }
  Connection& connect(RequestHandlerFactory& handlers) {
    server_.emplace(serverOf(handlers));
    connection_ = std::make_unique<Connection>(9, client_->releaseStream(), *server_);
    return *connection_;
  }
  Connection& connectWithRequest(RequestHandlerFactory& handlers) {
    Connection& connection = connect(handlers);
    client_->send("GET / HTTP/1.1\r\nHost: h\r\n\r\n");
    EXPECT_EQ(connection.receive(), Connection::Ready::yes);
    return connection;
  }

  std::optional<test::SocketPair> client_{std::in_place};
  std::optional<const Connection::Server> server_;
  std::unique_ptr<Connection> connection_;
};

/// Lets each request wait briefly; continued, it answers or waits again as `later` says.
class BriefHandlers final : public test::SteppingHandlers {
 public:
  explicit BriefHandlers(RequestHandler::Progress later)
      : SteppingHandlers([this, later](ServerRequest&, ServerResponse& response) {
          if (!std::exchange(isContinued, true)) return RequestHandler::Progress::waitsBriefly;
          continuedBy = std::this_thread::get_id();
          if (later == RequestHandler::Progress::answered) response.sendText("late");
          return later;
        }) {}

  bool isContinued = false;
  std::thread::id continuedBy;
};

// The stay lasts for 20 ms, so a loan may come too late on a busy machine: then the next request is tried.
TEST_F(StayTest, ASecondThreadSendsTheAnswerAndTheFirstServesOn) {
  BriefHandlers handlers(Progress::answered);
  Connection& connection = connect(handlers);
  const auto lend = [&] {
    handlers.isContinued = false;
    client_->send("GET / HTTP/1.1\r\nHost: h\r\n\r\n");
    auto served = std::async(std::launch::async, [&] { return connection.serve(); });
    bool isLent = false;
    while (!isLent && served.wait_for(milliseconds(0)) != std::future_status::ready)
      isLent = connection.threadStay().borrow();
    if (isLent) connection.continueBorrowed();
    Next next = served.get();
    EXPECT_EQ(next, isLent ? Next::park : Next::suspend);
    if (!isLent) next = connection.serve();
    EXPECT_EQ(next, Next::park);
    EXPECT_THAT(client_->received(), HasSubstr("late"));
    return isLent;
  };
  testkit::waitFor("a loan within a stay", lend);
  EXPECT_EQ(handlers.continuedBy, std::this_thread::get_id());
  EXPECT_FALSE(connection.inHead());
}

TEST_F(StayTest, ALoanWaitingAgainSuspendsTheRequest) {
  BriefHandlers handlers(Progress::waitsBriefly);
  const auto lend = [&] {
    client_.emplace();
    handlers.isContinued = false;
    Connection& connection = connectWithRequest(handlers);
    auto served = std::async(std::launch::async, [&] { return connection.serve(); });
    bool isLent = false;
    while (!isLent && served.wait_for(milliseconds(0)) != std::future_status::ready)
      isLent = connection.threadStay().borrow();
    if (isLent) connection.continueBorrowed();
    EXPECT_EQ(served.get(), Next::suspend);
    return isLent;
  };
  testkit::waitFor("a loan within a stay", lend);
}

TEST_F(StayTest, AStayEndsAfterTheTimeLimit) {
  BriefHandlers handlers(Progress::answered);
  Connection& connection = connectWithRequest(handlers);
  const auto began = std::chrono::steady_clock::now();
  EXPECT_EQ(connection.serve(), Next::suspend);
  EXPECT_GE(std::chrono::steady_clock::now() - began, milliseconds(20));
  EXPECT_FALSE(connection.threadStay().borrow()) << "a suspended request is continued by the reactor";
}

TEST_F(StayTest, NoThreadStaysWhileMostThreadsAreBusyOrTheServerDrains) {
  const auto mayStay = [this] {
    bool began = false;
    watch_.onStay = [&] { began = true; };
    BriefHandlers handlers(Progress::answered);
    client_.emplace();
    EXPECT_EQ(connectWithRequest(handlers).serve(), Next::suspend);
    connection_.reset();
    return began;
  };
  EXPECT_TRUE(mayStay());
  threadsBusy_ = true;
  EXPECT_FALSE(mayStay());
  threadsBusy_ = false;
  closing_ = true;
  EXPECT_FALSE(mayStay());
}

TEST_F(StayTest, ARequestResumedMeanwhileGoesOnAtOnce) {
  BriefHandlers handlers(Progress::answered);
  watch_.isResumed = true;
  EXPECT_EQ(connectWithRequest(handlers).serve(), Next::park);
  EXPECT_THAT(client_->received(), HasSubstr("late"));
}

}  // namespace
}  // namespace jobq
