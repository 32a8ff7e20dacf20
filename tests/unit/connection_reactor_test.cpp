// Tests of the connection reactor over a real listener: queued connections at shutdown
// (core/http/transport/connection_reactor.h).
#include "core/http/transport/connection_reactor.h"

#include <Poco/Net/NetException.h>
#include <Poco/Net/ServerSocket.h>
#include <Poco/Net/StreamSocket.h>
#include <fcntl.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <atomic>
#include <chrono>
#include <functional>
#include <iterator>
#include <memory>
#include <string>
#include <string_view>
#include <thread>
#include <utility>
#include <vector>

#include "connection_fixture.h"
#include "core/http/transport/message.h"
#include "testkit/recording_log.h"
#include "testkit/wait_for.h"
#include "unit_storage.h"

namespace jobq {
namespace {

using test::holdsSoon;

/// Reads the whole body of each request, until the client has sent the body or the connection ends.
class BodyReadingFactory final : public test::FunctionHandlers {
 public:
  BodyReadingFactory()
      : FunctionHandlers([this](ServerRequest& request, ServerResponse& response) {
          ++begun;
          const std::string body(std::istreambuf_iterator<char>(request.stream()), {});
          response.sendBuffer(body.data(), body.size());
        }) {}

  std::atomic<int> begun = 0;
};

class ConnectionReactorTest : public testing::Test, protected test::ConnectionFixture {
 protected:
  int listener() {
    Poco::Net::ServerSocket socket;
    socket.bind(Poco::Net::SocketAddress("127.0.0.1", 0));
    socket.listen(16);
    address_ = socket.address();
    const int descriptor = ::fcntl(socket.impl()->sockfd(), F_DUPFD_CLOEXEC, 3);
    ::fcntl(descriptor, F_SETFL, ::fcntl(descriptor, F_GETFL) | O_NONBLOCK);
    return descriptor;
  }
  Poco::Net::StreamSocket ask(const std::string& text) const {
    Poco::Net::StreamSocket client(address_);
    client.sendBytes(text.data(), static_cast<int>(text.size()));
    return client;
  }

  testkit::RecordingLog log_;
  BodyReadingFactory handlers_;
  Poco::Net::SocketAddress address_;
  const ConnectionReactor::Rules rules_{{1, 1}, std::chrono::minutes(10), 0, nullptr, handlers_, *params_, waiting_};
};

TEST_F(ConnectionReactorTest, AStopForgetsTheQueuedConnections) {
  ConnectionReactor reactor(listener(), rules_, log_);
  reactor.start();
  const std::string request = "POST / HTTP/1.1\r\nHost: h\r\nContent-Length: 1\r\n\r\n";
  const auto served = ask(request);
  ASSERT_TRUE(holdsSoon([&] { return handlers_.begun == 1; })) << "the only thread is not busy";
  const auto queued = ask(request);
  ASSERT_TRUE(holdsSoon([&] { return reactor.openRequests() == 2; }))
      << "the second request does not wait for the first";
  reactor.stop();
  EXPECT_EQ(handlers_.begun, 1) << "the queued request was dropped";
  EXPECT_EQ(reactor.openRequests(), 0U) << "a later access would be a use after free";
  EXPECT_TRUE(reactor.awaitQuiet(std::chrono::milliseconds(0)));
  reactor.stop();
}

// With an idle time of 0 each deadline is seen together with the event of the connection, as by a late reactor.
TEST_F(ConnectionReactorTest, AReceivedRequestIsServedAfterTheIdleTime) {
  ConnectionReactor reactor(listener(),
                            {{1, 1}, std::chrono::milliseconds(0), 0, nullptr, handlers_, *params_, waiting_}, log_);
  auto client = ask("POST / HTTP/1.1\r\nHost: h\r\nContent-Length: 1\r\n\r\nx");
  const Poco::Net::StreamSocket silent(address_);
  reactor.start();
  client.setReceiveTimeout(Poco::Timespan(60, 0));
  char answer[512];
  const int got = client.receiveBytes(answer, sizeof answer);
  EXPECT_THAT(std::string(answer, static_cast<std::size_t>(std::max(got, 0))), testing::HasSubstr("200 OK"));
  EXPECT_TRUE(reactor.awaitQuiet(std::chrono::seconds(60))) << "a silent connection is closed";
}

/// Lets each request wait for its resumption; then answers whether the client has left.
class WaitingFactory final : public RequestHandlerFactory {
 public:
  RequestHandler* createRequestHandler(const Poco::Net::HTTPServerRequest&) override { return new Waiting(*this); }
  std::string errorBody(std::string_view sentence) const override { return std::string(sentence); }
  std::vector<SuspendedCall> calls() {
    Lock lock(mutex_);
    return calls_;
  }

  std::vector<std::thread::id> answerers() {
    Lock lock(mutex_);
    return answerers_;
  }

  std::atomic<int> left = 0;
  RequestHandler::Progress progress = RequestHandler::Progress::waitsForResume;
  std::function<void()> onAnswer = [] {};

 private:
  class Waiting final : public RequestHandler {
   public:
    explicit Waiting(WaitingFactory& factory) : factory_(factory) {}
    void handleRequest(Poco::Net::HTTPServerRequest& asked, Poco::Net::HTTPServerResponse& response) override {
      auto& request = static_cast<ServerRequest&>(asked);
      if (!std::exchange(waits_, true)) {
        Lock lock(factory_.mutex_);
        factory_.calls_.push_back(request.client().call());
        return request.noteProgress(factory_.progress);
      }
      if (request.client().hasLeft()) ++factory_.left;
      factory_.onAnswer();
      {
        Lock lock(factory_.mutex_);
        factory_.answerers_.push_back(std::this_thread::get_id());
      }
      response.sendBuffer("done", 4);
    }

   private:
    WaitingFactory& factory_;
    bool waits_ = false;
  };

  Mutex mutex_;
  std::vector<SuspendedCall> calls_ JOBQ_GUARDED_BY(mutex_);
  std::vector<std::thread::id> answerers_ JOBQ_GUARDED_BY(mutex_);
};

class SuspensionTest : public ConnectionReactorTest {
 protected:
  std::size_t waiting() { return factory_.calls().size(); }
  static std::string answerOf(Poco::Net::StreamSocket& client) {
    client.setReceiveTimeout(Poco::Timespan(60, 0));
    std::string text;
    char piece[512];
    while (text.find("done") == std::string::npos) {
      const int got = client.receiveBytes(piece, sizeof piece);
      if (got <= 0) break;
      text.append(piece, static_cast<std::size_t>(got));
    }
    return text;
  }

  /// Sends the text to a reactor with one thread, and returns when the first request is suspended: the thread begins a
  /// second request, of another client, only after the suspension.
  Poco::Net::StreamSocket askAndSuspend(const std::string& text) {
    auto client = ask(text);
    EXPECT_TRUE(holdsSoon([&] { return waiting() == 1; }));
    other_ = ask(request_);
    EXPECT_TRUE(holdsSoon([&] { return waiting() == 2; }));
    return client;
  }
  bool takesConnections() const {
    try {
      const Poco::Net::StreamSocket client(address_);
      return true;
    } catch (const Poco::Net::NetException&) {
      return false;
    }
  }

  WaitingFactory factory_;
  ConnectionReactor::Rules rulesFor(std::size_t threads) {
    return {{threads, threads}, std::chrono::minutes(10), 0, nullptr, factory_, *params_, waiting_};
  }
  const ConnectionReactor::Rules oneThread_ = rulesFor(1);
  const std::string request_ = "GET / HTTP/1.1\r\nHost: h\r\n\r\n";
  Poco::Net::StreamSocket other_;
};

TEST_F(SuspensionTest, ManyRequestsWaitOnASingleThread) {
  ConnectionReactor reactor(listener(), oneThread_, log_);
  reactor.start();
  std::vector<Poco::Net::StreamSocket> clients;
  for (int i = 0; i < 100; ++i) clients.push_back(ask(request_));
  ASSERT_TRUE(holdsSoon([&] { return waiting() == 100; })) << "the only thread is held by a request that waits";
  for (const SuspendedCall& call : factory_.calls()) call.resume();
  for (auto& client : clients) EXPECT_THAT(answerOf(client), testing::HasSubstr("done"));
  EXPECT_EQ(factory_.left, 0);
  reactor.stop();
  for (const SuspendedCall& call : factory_.calls()) call.resume();  // a late event changes nothing
}

TEST_F(SuspensionTest, ALeavingClientEndsTheWait) {
  ConnectionReactor reactor(listener(), oneThread_, log_);
  reactor.start();
  auto client = ask(request_);
  ASSERT_TRUE(holdsSoon([&] { return waiting() == 1; }));
  client.shutdownSend();
  EXPECT_TRUE(holdsSoon([&] { return factory_.left == 1; }));
  EXPECT_THAT(answerOf(client), testing::HasSubstr("done")) << "a half close is answered";
}

// A stay lasts for 20 ms, so an event may come too late on a busy machine: then the next request is tried.
TEST_F(SuspensionTest, AnAnswerMayBeSentByTheThreadOfTheEvent) {
  factory_.progress = RequestHandler::Progress::waitsBriefly;
  ConnectionReactor reactor(listener(), rulesFor(2), log_);
  reactor.start();
  std::size_t asked = 0;
  testkit::waitFor("an answer of this thread", [&] {
    auto client = ask(request_);
    testkit::waitFor("the request", [&] { return waiting() > asked; });
    factory_.calls()[asked++].continueHere();
    EXPECT_THAT(answerOf(client), testing::HasSubstr("done"));
    return factory_.answerers().back() == std::this_thread::get_id();
  });
}

TEST_F(SuspensionTest, TheThreadOfTheEventAnswersASuspendedRequest) {
  ConnectionReactor reactor(listener(), oneThread_, log_);
  reactor.start();
  auto client = askAndSuspend(request_);
  factory_.calls()[0].continueHere();
  EXPECT_THAT(answerOf(client), testing::HasSubstr("done"));
  EXPECT_EQ(factory_.answerers().back(), std::this_thread::get_id());

  client.sendBytes(request_.data(), static_cast<int>(request_.size()));
  ASSERT_TRUE(holdsSoon([&] { return waiting() == 3; })) << "the connection takes its next request";
  factory_.calls()[2].resume();
  EXPECT_THAT(answerOf(client), testing::HasSubstr("done"));
}

TEST_F(SuspensionTest, ARequestSentAfterASuspendedRequestIsServed) {
  ConnectionReactor reactor(listener(), oneThread_, log_);
  reactor.start();
  auto client = askAndSuspend(request_ + request_);
  factory_.calls()[0].continueHere();
  EXPECT_THAT(answerOf(client), testing::HasSubstr("done"));
  EXPECT_EQ(factory_.answerers().back(), std::this_thread::get_id());
  ASSERT_TRUE(holdsSoon([&] { return waiting() == 3; })) << "the next request was read with the first";
  factory_.calls()[2].resume();
  EXPECT_THAT(answerOf(client), testing::HasSubstr("done"));
}

TEST_F(SuspensionTest, AStopWaitsForTheAnswerOfAThreadOutsideThePool) {
  ConnectionReactor reactor(listener(), oneThread_, log_);
  reactor.start();
  auto client = askAndSuspend(request_);
  std::atomic<bool> answers = false;
  std::atomic<bool> answered = false;
  factory_.onAnswer = [&] {
    answers = true;
    EXPECT_TRUE(holdsSoon([&] { return !takesConnections(); })) << "the stop has not begun";
    answered = true;
  };
  std::thread worker([&] { factory_.calls()[0].continueHere(); });
  EXPECT_TRUE(holdsSoon([&] { return answers.load(); }));
  reactor.stop();
  EXPECT_TRUE(answered);
  worker.join();
  factory_.calls()[1].continueHere();  // a late event changes nothing
}

TEST_F(SuspensionTest, AResumptionEndsTheStayOfTheThread) {
  factory_.progress = RequestHandler::Progress::waitsBriefly;
  ConnectionReactor reactor(listener(), rulesFor(2), log_);
  reactor.start();
  for (std::size_t i = 0; i < 20; ++i) {
    auto client = ask(request_);
    testkit::waitFor("the request", [&] { return waiting() > i; });
    factory_.calls()[i].resume();
    EXPECT_THAT(answerOf(client), testing::HasSubstr("done"));
    EXPECT_NE(factory_.answerers().back(), std::this_thread::get_id());
  }
  EXPECT_EQ(factory_.left, 0);
}

TEST_F(SuspensionTest, AStopEndsSuspendedRequests) {
  ConnectionReactor reactor(listener(), oneThread_, log_);
  reactor.start();
  auto client = ask(request_);
  ASSERT_TRUE(holdsSoon([&] { return waiting() == 1; }));
  reactor.drain();
  EXPECT_FALSE(reactor.awaitQuiet(std::chrono::milliseconds(0))) << "a waiting request is in flight";
  reactor.stop();
  EXPECT_TRUE(reactor.awaitQuiet(std::chrono::milliseconds(0)));
  EXPECT_EQ(answerOf(client), "");
}

}  // namespace
}  // namespace jobq
