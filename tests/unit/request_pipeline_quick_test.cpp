// Tests of the requests that the reactor thread may serve (RequestHandler::isQuick in
// core/http/api/request_pipeline.h).
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <memory>
#include <optional>
#include <string>
#include <utility>

#include "core/auth/key_record.h"
#include "core/http/api/api_request.h"
#include "core/http/api/body_memory.h"
#include "core/http/api/queue/queue_calls.h"
#include "core/http/api/router.h"
#include "core/http/transport/connection.h"
#include "core/http/transport/request_handler.h"
#include "request_pipeline_fixture.h"
#include "socket_pair.h"

namespace jobq {
namespace {

using testing::StartsWith;
using Next = Connection::Next;

class QuickRequestTest : public RequestPipelineTest {
 protected:
  QuickRequestTest() {
    Route quick{.scope = Scope::client};
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
  (void)run("{}");  // the numbers of the endpoint are known from here on
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

TEST_F(QuickRequestTest, AHeadDependingOnTheStorageNeedsAThread) {
  const std::string text = head("POST /v2/ep/run", client_, "Content-Length: 2\r\n") + "{}";
  test::SocketPair client;
  Connection connection(1, client.releaseStream(), server_);
  client.send(text);
  EXPECT_EQ(connection.receive(), Connection::Ready::yes);
  EXPECT_EQ(connection.serveQuickly(), Next::needsThread) << "the length of the queue is not known";
  EXPECT_EQ(limiter_.inside, 0) << "the call has no place yet";
  EXPECT_EQ(connection.serve(), Next::park);
  EXPECT_THAT(client.received(), StartsWith("HTTP/1.1 200"));

  EXPECT_THAT(askQuickly(quick(2)), StartsWith("HTTP/1.1 200"));
  storage.clock.advance(Millis(500));
  EXPECT_EQ(askQuickly(quick(2)), "") << "the copy of the keys has to be renewed";
  EXPECT_EQ(next_, Next::needsThread);
  EXPECT_THAT(ask(quick(2)), StartsWith("HTTP/1.1 200"));
  EXPECT_THAT(askQuickly(quick(2)), StartsWith("HTTP/1.1 200"));
}

// A small body on a thread of the pool draws on no budget.
TEST_F(QuickRequestTest, ABodyWithoutRoomInTheBudgetNeedsAThread) {
  BodyMemory::Reservation all;
  ASSERT_TRUE(all.grow(bodyMemory_, "other", bodyMemory_.left()));
  EXPECT_EQ(askQuickly(quick(2)), "");
  EXPECT_EQ(next_, Next::needsThread);
  EXPECT_THAT(ask(quick(2)), StartsWith("HTTP/1.1 200"));
}

TEST_F(QuickRequestTest, AWaitingSubmissionIsAnsweredAfterARevocationOfTheKey) {
  class Submission final : public PendingCall {
   public:
    std::optional<ApiResponse> poll(ApiRequest&) override {
      return std::exchange(waits_, false) ? std::nullopt : std::optional(ApiResponse{200, "{}"});
    }
    RequestHandler::Progress progress() const noexcept override { return RequestHandler::Progress::waitsForStorage; }

   private:
    bool waits_ = true;
  };
  Route route{.scope = Scope::client};
  route.methods = {"GET"};
  route.pattern = "/submission";
  route.isQuick = true;
  route.run = [](ApiRequest& request) -> RouteResult { return begin(std::make_unique<Submission>(), request); };
  router_.add(std::move(route));
  test::SocketPair client;
  Connection connection(1, client.releaseStream(), server_);
  client.send(head("GET /submission", client_));
  EXPECT_EQ(connection.receive(), Connection::Ready::yes);
  EXPECT_EQ(connection.serveQuickly(), Next::suspendUnwatched);
  for (const ApiKeyPtr& key : keys_.list()) (void)keys_.revoke(key->id);
  storage.clock.advance(Millis(2'000));
  EXPECT_EQ(connection.serveQuickly(), Next::park);
  EXPECT_THAT(client.received(), StartsWith("HTTP/1.1 200")) << "the job is accepted";
}

TEST_F(QuickRequestTest, AThreadServesRequestsBegunByTheReactor) {
  test::SocketPair client;
  Connection connection(1, client.releaseStream(), server_);
  client.send(head("GET /ping", ""));
  EXPECT_EQ(connection.receive(), Connection::Ready::yes);
  EXPECT_EQ(connection.serveQuickly(), Next::needsThread);
  EXPECT_EQ(connection.serve(), Next::park);
  EXPECT_THAT(client.received(), StartsWith("HTTP/1.1 200"));
}

TEST_F(QuickRequestTest, ALateBodyWaitsWithoutAThread) {
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

TEST_F(QuickRequestTest, ASecondRequestAfterAQuickRequestNeedsAThread) {
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
