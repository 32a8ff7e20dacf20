// Tests of the requests that the reactor thread serves in a crowd (core/http/transport/connection_reactor.h, crowd.h).
#include <Poco/Net/ServerSocket.h>
#include <Poco/Net/StreamSocket.h>
#include <fcntl.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <atomic>
#include <chrono>
#include <cstddef>
#include <functional>
#include <map>
#include <memory>
#include <optional>
#include <set>
#include <string>
#include <string_view>
#include <thread>
#include <utility>
#include <vector>

#include "connection_fixture.h"
#include "core/http/transport/connection_reactor.h"
#include "core/http/transport/message.h"
#include "jobq/mutex.h"
#include "socket_pair.h"
#include "testkit/recording_log.h"
#include "testkit/wait_for.h"
#include "unit_storage.h"

namespace jobq {
namespace {

using Progress = RequestHandler::Progress;
using test::holdsSoon;

constexpr std::size_t kNoCrowd = 1'000;
const std::string kQuick = "GET /quick HTTP/1.1\r\nHost: h\r\n\r\n";
const std::string kSlow = "GET /slow HTTP/1.1\r\nHost: h\r\n\r\n";

/// Answers each request "done", and records the thread and the turn. Requests to /slow are not quick.
class RecordingHandlers final : public RequestHandlerFactory {
 public:
  RequestHandler* createRequestHandler(const Poco::Net::HTTPServerRequest& request) override {
    return new Handler(*this, request.getURI() != "/slow");
  }
  std::string errorBody(std::string_view sentence) const override { return std::string(sentence); }
  bool makesQuickly() const noexcept override { return isQuick; }
  void endTurn() noexcept override {
    reactor = std::this_thread::get_id();
    ++turns;
    const Lock lock(mutex_);
    answersAtEnd = answers_.size();
  }

  bool isQuick = true;
  /// Called by each first handle(). The result other than `answered` lets the request wait.
  std::function<Progress(ServerRequest&)> begin = [](ServerRequest&) { return Progress::answered; };
  std::atomic<std::thread::id> reactor{};
  std::atomic<int> turns = 0;
  std::atomic<std::size_t> answersAtEnd = 0;  ///< answers before the end of the last turn

  struct Answer {
    std::thread::id thread;
    int turn;
    bool mayBlock;
  };
  std::vector<Answer> answers() {
    const Lock lock(mutex_);
    return answers_;
  }
  std::vector<SuspendedCall> calls() {
    const Lock lock(mutex_);
    return calls_;
  }
  /// Returns the number of answers that the reactor thread gave.
  std::size_t byReactor() {
    const auto all = answers();
    return static_cast<std::size_t>(
        std::count_if(all.begin(), all.end(), [this](const Answer& each) { return each.thread == reactor; }));
  }

 private:
  class Handler final : public RequestHandler {
   public:
    Handler(RecordingHandlers& all, bool isQuick) : all_(all), isQuick_(isQuick) {}
    void handleRequest(Poco::Net::HTTPServerRequest& asked, Poco::Net::HTTPServerResponse& response) override {
      auto& request = static_cast<ServerRequest&>(asked);
      if (!std::exchange(hasBegun_, true)) {
        {
          const Lock lock(all_.mutex_);
          all_.calls_.push_back(request.client().call());
        }
        const Progress progress = all_.begin(request);
        request.noteProgress(progress);
        if (progress != Progress::answered) return;
      }
      {
        const Lock lock(all_.mutex_);
        all_.answers_.push_back({std::this_thread::get_id(), all_.turns, request.client().mayBlock()});
      }
      response.sendBuffer("done", 4);
    }
    bool isQuick() const noexcept override { return isQuick_; }

   private:
    RecordingHandlers& all_;
    const bool isQuick_;
    bool hasBegun_ = false;
  };

  Mutex mutex_;
  std::vector<Answer> answers_ JOBQ_GUARDED_BY(mutex_);
  std::vector<SuspendedCall> calls_ JOBQ_GUARDED_BY(mutex_);
};

class QuickRequestsTest : public testing::Test, protected test::ConnectionFixture {
 protected:
  /// Starts a reactor for which more than `crowdFrom` requests at once are a crowd.
  void start(std::size_t crowdFrom) {
    listen(crowdFrom, std::chrono::minutes(10));
    reactor_->start();
  }
  /// Makes a reactor that does not run yet.
  void listen(std::size_t crowdFrom, std::chrono::milliseconds keepAlive) {
    Poco::Net::ServerSocket socket;
    socket.bind(Poco::Net::SocketAddress("127.0.0.1", 0));
    socket.listen(256);
    address_ = socket.address();
    const int descriptor = ::fcntl(socket.impl()->sockfd(), F_DUPFD_CLOEXEC, 3);
    ::fcntl(descriptor, F_SETFL, ::fcntl(descriptor, F_GETFL) | O_NONBLOCK);
    reactor_ = std::make_unique<ConnectionReactor>(
        descriptor,
        ConnectionReactor::Rules{{4, 4}, keepAlive, 0, nullptr, handlers_, *params_, waiting_, crowdFrom, 64}, log_);
  }
  Poco::Net::StreamSocket connect() const {
    Poco::Net::StreamSocket client(address_);
    client.setReceiveTimeout(Poco::Timespan(60, 0));
    return client;
  }
  static void send(Poco::Net::StreamSocket& client, const std::string& text) {
    client.sendBytes(text.data(), static_cast<int>(text.size()));
  }
  /// Reads `count` answers.
  static bool isAnswered(Poco::Net::StreamSocket& client, std::size_t count = 1) {
    std::string text;
    char piece[4096];
    for (std::size_t found = 0; found < count;) {
      const int got = client.receiveBytes(piece, sizeof piece);
      if (got <= 0) return false;
      text.append(piece, static_cast<std::size_t>(got));
      found = 0;
      for (std::size_t at = text.find("done"); at != std::string::npos; at = text.find("done", at + 1)) ++found;
    }
    return true;
  }

  testkit::RecordingLog log_;
  RecordingHandlers handlers_;
  Poco::Net::SocketAddress address_;
  std::unique_ptr<ConnectionReactor> reactor_;
};

TEST_F(QuickRequestsTest, TheReactorServesAQuickRequestInACrowd) {
  start(0);
  auto client = connect();
  for (int i = 0; i < 3; ++i) {
    send(client, kQuick);
    EXPECT_TRUE(isAnswered(client));
  }
  EXPECT_EQ(handlers_.byReactor(), 3U);
  EXPECT_FALSE(handlers_.answers().at(0).mayBlock);
}

TEST_F(QuickRequestsTest, AThreadServesWithoutACrowd) {
  start(kNoCrowd);
  auto client = connect();
  send(client, kQuick);
  EXPECT_TRUE(isAnswered(client));
  EXPECT_EQ(handlers_.byReactor(), 0U);
  EXPECT_TRUE(handlers_.answers().at(0).mayBlock);
}

TEST_F(QuickRequestsTest, AThreadServesOtherRequests) {
  start(0);
  auto client = connect();
  send(client, kSlow);
  EXPECT_TRUE(isAnswered(client));
  EXPECT_EQ(handlers_.byReactor(), 0U);
}

TEST_F(QuickRequestsTest, AThreadServesAllWhereHeadsMayBlock) {
  handlers_.isQuick = false;
  start(0);
  auto client = connect();
  send(client, kQuick);
  EXPECT_TRUE(isAnswered(client));
  EXPECT_EQ(handlers_.byReactor(), 0U);
}

TEST_F(QuickRequestsTest, AProbeIsAnsweredWhileAllThreadsWait) {
  handlers_.isQuick = false;
  std::atomic<bool> isOpen = false;
  handlers_.begin = [&](ServerRequest& request) {
    if (request.client().mayBlock()) {
      EXPECT_TRUE(holdsSoon([&] { return isOpen.load(); }));
    }
    return Progress::answered;
  };
  start(kNoCrowd);
  std::vector<Poco::Net::StreamSocket> clients;
  for (int i = 0; i < 8; ++i) {
    clients.push_back(connect());
    send(clients.back(), kSlow);
  }
  ASSERT_TRUE(holdsSoon([&] { return handlers_.calls().size() == 4; })) << "all threads wait";
  auto probe = connect();
  send(probe, "HEAD /healthz HTTP/1.1\r\nHost: h\r\n\r\n");
  char answer[512];
  EXPECT_GT(probe.receiveBytes(answer, sizeof answer), 0);
  EXPECT_EQ(handlers_.byReactor(), 1U);
  isOpen = true;
  for (auto& client : clients) EXPECT_TRUE(isAnswered(client));
}

TEST_F(QuickRequestsTest, ASecondRequestOfTheSameMomentIsServed) {
  start(0);
  auto client = connect();
  send(client, kQuick + kQuick + kSlow);
  EXPECT_TRUE(isAnswered(client, 3));
  EXPECT_EQ(handlers_.answers().size(), 3U);
}

TEST_F(QuickRequestsTest, RequestsWaitingForTheStorageGoOnTogether) {
  handlers_.begin = [](ServerRequest&) { return Progress::waitsForStorage; };
  start(0);
  std::vector<Poco::Net::StreamSocket> clients;
  for (int i = 0; i < 50; ++i) {
    clients.push_back(connect());
    send(clients.back(), kQuick);
  }
  ASSERT_TRUE(holdsSoon([&] { return handlers_.calls().size() == 50; })) << "a request that waits holds the reactor";
  EXPECT_TRUE(holdsSoon([&] { return reactor_->openRequests() == 50; }));
  for (const SuspendedCall& call : handlers_.calls()) call.resumeAtReactor();
  for (auto& client : clients) EXPECT_TRUE(isAnswered(client));
  EXPECT_EQ(handlers_.byReactor(), 50U);
  for (const auto& answer : handlers_.answers()) EXPECT_FALSE(answer.mayBlock);

  handlers_.begin = [](ServerRequest&) { return Progress::answered; };
  send(clients[0], kQuick);
  EXPECT_TRUE(isAnswered(clients[0])) << "the connection takes the next request";
}

TEST_F(QuickRequestsTest, AResumptionBeforeTheSuspensionIsNotLost) {
  handlers_.begin = [](ServerRequest& request) {
    request.client().call().resumeAtReactor();
    return Progress::waitsForStorage;
  };
  start(0);
  auto client = connect();
  for (int i = 0; i < 20; ++i) {
    send(client, kQuick);
    EXPECT_TRUE(isAnswered(client));
  }
  EXPECT_EQ(handlers_.byReactor(), 20U);
}

TEST_F(QuickRequestsTest, AThreadOfThePoolMayWaitForTheStorageToo) {
  handlers_.begin = [](ServerRequest&) { return Progress::waitsForStorage; };
  start(kNoCrowd);
  auto client = connect();
  send(client, kQuick);
  ASSERT_TRUE(holdsSoon([&] { return handlers_.calls().size() == 1; }));
  handlers_.calls()[0].resumeAtReactor();
  EXPECT_TRUE(isAnswered(client));
}

TEST_F(QuickRequestsTest, ATurnHasABoundAndThreadsServeTheRest) {
  constexpr std::size_t kClients = 200;
  std::atomic<bool> isOpen = false;
  std::atomic<bool> isHeld = false;
  std::atomic<bool> holds = false;
  handlers_.begin = [&](ServerRequest&) {
    if (holds.exchange(false)) {
      isHeld = true;
      EXPECT_TRUE(holdsSoon([&] { return isOpen.load(); }));
    }
    return Progress::answered;
  };
  start(0);
  std::vector<Poco::Net::StreamSocket> clients;
  for (std::size_t i = 0; i < kClients; ++i) {
    clients.push_back(connect());
    send(clients.back(), kQuick);
    ASSERT_TRUE(isAnswered(clients.back())) << "the connection is accepted";
  }
  holds = true;
  send(clients[0], kQuick);
  ASSERT_TRUE(holdsSoon([&] { return isHeld.load(); }));
  for (std::size_t i = 1; i < kClients; ++i) send(clients[i], kQuick);  // all are ready in the turn behind
  isOpen = true;
  for (auto& client : clients) EXPECT_TRUE(isAnswered(client));
  std::map<int, int> turns;
  std::size_t byThreads = 0;
  for (const auto& answer : handlers_.answers()) {
    if (answer.mayBlock)
      ++byThreads;
    else
      ++turns[answer.turn];
  }
  for (const auto& [turn, count] : turns) EXPECT_LE(count, 64) << "turn " << turn;
  EXPECT_GT(byThreads, 0U);
  EXPECT_EQ(handlers_.answers().size(), 2 * kClients);
}

// A turn that ended before its last answer would leave the dispatcher asleep.
TEST_F(QuickRequestsTest, ATurnEndsAfterTheExpiredConnections) {
  listen(0, std::chrono::milliseconds(0));
  auto client = connect();
  send(client, kQuick);
  reactor_->start();
  EXPECT_TRUE(isAnswered(client));
  EXPECT_TRUE(holdsSoon([&] { return handlers_.answersAtEnd == 1; }));
  EXPECT_EQ(handlers_.byReactor(), 1U);  // the reactor thread is known from the end of its first turn on
}

TEST_F(QuickRequestsTest, AStopEndsRequestsWaitingForTheStorage) {
  handlers_.begin = [](ServerRequest&) { return Progress::waitsForStorage; };
  start(0);
  auto client = connect();
  send(client, kQuick);
  ASSERT_TRUE(holdsSoon([&] { return handlers_.calls().size() == 1; }));
  reactor_->drain();
  EXPECT_FALSE(reactor_->awaitQuiet(std::chrono::milliseconds(0))) << "the request is in flight";
  reactor_->stop();
  EXPECT_TRUE(reactor_->awaitQuiet(std::chrono::milliseconds(0)));
  EXPECT_FALSE(isAnswered(client));
  handlers_.calls()[0].resumeAtReactor();  // a late event changes nothing
  EXPECT_EQ(handlers_.answers().size(), 0U);
}

TEST_F(QuickRequestsTest, ADrainAnswersRequestsWaitingForTheStorage) {
  handlers_.begin = [](ServerRequest&) { return Progress::waitsForStorage; };
  start(0);
  auto client = connect();
  send(client, kQuick);
  ASSERT_TRUE(holdsSoon([&] { return handlers_.calls().size() == 1; }));
  reactor_->drain();
  handlers_.calls()[0].resumeAtReactor();
  EXPECT_TRUE(isAnswered(client));
  EXPECT_TRUE(reactor_->awaitQuiet(std::chrono::seconds(60)));
}

/// A stream with one request, which records whether reads wait.
class RecordingStream final : public ByteStream {
 public:
  RecordingStream(std::string text, std::vector<Wait>& waits, bool isSecure)
      : ByteStream(::dup(0)), text_(std::move(text)), waits_(waits), isSecure_(isSecure) {}
  bool secure() const noexcept override { return isSecure_; }
  std::optional<std::size_t> read(char* to, std::size_t size, Wait wait) override {
    waits_.push_back(wait);
    if (text_.empty()) return std::nullopt;
    const std::size_t count = text_.copy(to, size);
    text_.erase(0, count);
    return count;
  }
  std::optional<std::size_t> writeSome(std::string_view first, std::string_view second) override {
    return first.size() + second.size();
  }

 private:
  std::string text_;
  std::vector<Wait>& waits_;
  const bool isSecure_;
};

// A thread that stayed with a connection would take quick requests away from the reactor thread.
TEST_F(QuickRequestsTest, AThreadStaysBehindAQuickRequestOnlyWithoutACrowd) {
  threadsBusy_ = false;
  const Connection::Server server = serverOf(handlers_);
  const auto lastWait = [&](const std::string& text, bool isSecure = false) {
    std::vector<ByteStream::Wait> waits;
    Connection connection(1, std::make_unique<RecordingStream>(text, waits, isSecure), server);
    EXPECT_EQ(connection.receive(), Connection::Ready::yes);
    EXPECT_EQ(connection.serve(), Connection::Next::park);
    return waits.back();
  };
  EXPECT_EQ(lastWait(kQuick), ByteStream::Wait::linger);
  crowd_.noteThreads(1);
  EXPECT_EQ(lastWait(kQuick), ByteStream::Wait::no);
  EXPECT_EQ(lastWait(kSlow), ByteStream::Wait::linger);
  EXPECT_EQ(lastWait(kQuick, true), ByteStream::Wait::linger) << "threads serve all requests with TLS";
}

}  // namespace
}  // namespace jobq
